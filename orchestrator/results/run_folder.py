"""The run folder: everything needed to redraw every report.

begun.json      when it began, by what command, and what it is going to do
plan.json       what is measured, written once the environments are ready
manifest.json   tool, machine, sources, environments
journal.jsonl   how each replicate ended, in order
results/        one folder per worker, the only place that it may write to while it runs
streams/        the Arrow stream of each worker that has ended, taken out of its folder; no worker ever sees this place
workloads/      the user's own workload folder as it was when the run began; workers load from here
logs/           what workers, installs and image builds printed
seal            the mark that this user began the run as it is; without it, `tfcompare trust` is needed to continue
fleet.json      what a fleet was asked for, if one measured the run
parts/          the runs that this one is merged from, each a run folder as it was measured
unused/         what hosts of a fleet had measured of cases that other hosts then measured from the start
replicas/       the same cases on other hosts, each a run folder

Only its owner may look into it. It may also come from another person, and workers may leave anything in their folders,
so no link in it is followed.
"""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from orchestrator import files
from orchestrator.catalog import seals
from orchestrator.errors import ContractBroken, UsageError
from orchestrator.file_lock import try_lock
from orchestrator.formats import RUN, NoFormat, OtherFormat
from orchestrator.model import Case, Ended, Entry, Manifest, Plan, Synced
from orchestrator.results.check_plan import check_plan
from orchestrator.results.damaged import damage_error, format_error
from orchestrator.results.worker_output import WorkerOutput, list_names, writing_in

T = TypeVar("T")


@dataclass(frozen=True)
class RunStart:
    """The facts about a run before its environments are ready; if they include a plan, the run can be continued."""

    created: datetime
    command: tuple[str, ...]
    plan: Plan | None = None
    # This manifest has no environments.
    manifest: Manifest | None = None


@dataclass(frozen=True)
class Journal:
    """The lines of a journal that can be read, and a sentence about those that were skipped."""

    entries: tuple[Entry, ...] = ()
    skipped: str = ""


BEGUN = TypeAdapter(RunStart)
PLAN: TypeAdapter[Plan] = TypeAdapter(Annotated[Plan, AfterValidator(check_plan)])
MANIFEST = TypeAdapter(Manifest)
# Trying all kinds of entries would take several times as long, and a large run has a hundred thousand lines.
ENTRY: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])

BEGUN_NAME, PARTS = "begun.json", "parts"
# A process that is killed while it replaces the file leaves such a name.
LEFT = re.compile(r"\.begun\.json\.\w+")
ANOTHER = "choose another --output"
# No plan, manifest or journal is larger; parsing one takes ten times as much memory.
MOST_BYTES = 2**28
# These fields of a replicate's end are left out if they are empty.
NOT_WRITTEN = ("how", "reason", "log", "once", "failure", "external")


class RunFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.results = path / "results"
        self.settled = path / "streams"
        self.workloads = path / "workloads"
        self.logs = path / "logs"
        self.journal = path / "journal.jsonl"
        self.fleet = path / "fleet.json"
        self.worker_output = WorkerOutput(path, self.record, self.entries)
        self._held = False

    @classmethod
    @contextmanager
    def begin(cls, path: Path, command: Sequence[str] = ()) -> Iterator["RunFolder"]:
        """Create a run folder, or take over one whose run ended before it had a plan, and lock it."""
        run = cls(path)
        cls.refuse_taken(path)
        with run._creating():
            new = [each for each in (path, *path.parents) if not each.exists()]
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            # A folder that existed before gets this mode as well: no other user should reach the files of workers.
            path.chmod(0o700)
        with run.hold(f"wait for its end, or {ANOTHER}"):
            # Another process may have been here since.
            cls.refuse_taken(path, held=True)
            with run._creating():
                files.remove_tree(run.workloads)
                seals.remove_seals(path)
                for folder in (run.results, run.settled, run.logs):
                    folder.mkdir(exist_ok=True)
                begun = RunStart(datetime.now(UTC).replace(microsecond=0), tuple(command))
                files.replace(path, path / BEGUN_NAME, RUN.stamp(BEGUN.dump_json(begun, indent=1)) + b"\n")
                for each in new:
                    # This user may be able to write to a folder but not to list it.
                    with suppress(PermissionError):
                        files.sync(each.parent, each.parent)
            yield run

    @classmethod
    def create(cls, path: Path, command: Sequence[str] = ()) -> "RunFolder":
        """Create a run folder that no other process knows of."""
        with cls.begin(path, command) as run:
            return run

    def _creating(self) -> AbstractContextManager[None]:
        return files.writing(f"the run folder {self.path}", ANOTHER)

    @classmethod
    def refuse_taken(cls, path: Path, *, held: bool = False) -> None:
        """Raise UsageError if a folder belongs to another user, or holds more than a run that has no plan yet.

        Such a run is left alone while its process lives, unless this process holds it.
        """
        run = cls(path)
        with run._creating():
            if path.is_dir() and path.stat().st_uid != os.getuid():
                raise UsageError(f"{path} belongs to another user; {ANOTHER}")
            if not path.is_dir() or not any(path.iterdir()):
                return
        if not run._has_nothing():
            raise UsageError(f"{path} is not empty; {ANOTHER}, or `tfcompare report {path}` if it holds a run")
        if not held and run.is_held:
            raise UsageError(f"another tfcompare is measuring into {path}; wait for its end, or {ANOTHER}")

    def _has_nothing(self) -> bool:
        """Return whether the folder holds only what a run leaves behind that ended before it had a plan."""
        names = {name for name in list_names(self.path) if not LEFT.fullmatch(name)}
        folders = {self.results.name, self.settled.name, self.logs.name}
        copied = {self.workloads.name, seals.NAME} if BEGUN_NAME in names else set()
        if names - {BEGUN_NAME, ".lock"} - folders - copied:
            return False
        if any((self.path / name).is_symlink() or list_names(self.path / name) for name in folders):
            return False
        try:
            return BEGUN_NAME not in names or self.read_begun().plan is None
        except (UsageError, ContractBroken):
            return False

    @classmethod
    def open(cls, path: Path, *, unprepared: bool = False) -> "RunFolder":
        """Return a run folder; `unprepared` also takes one whose environments were not ready when it ended."""
        run = cls(path)
        # Path.is_file would raise an error for a folder that this user may not enter.
        if not os.path.isfile(path / "plan.json"):
            # A profile has a manifest and no plan.
            if not os.path.isfile(path / BEGUN_NAME) or os.path.isfile(path / "manifest.json"):
                raise UsageError(f"{path} holds no run (no plan.json in it); `tfcompare run --output FOLDER` makes one")
            refuse_strangers(path)
            if not unprepared or run.is_held or run.read_begun().plan is None:
                raise UsageError(run._explain_missing_plan())
        refuse_strangers(path)
        return run

    def _explain_missing_plan(self) -> str:
        begun = self.read_begun()
        command = f"`{shlex.join(['tfcompare', *begun.command])}`" if begun.command else "a run"
        if self.is_held:
            return f"{self.path} holds no run yet: {command} is still making its environments ready; wait for its end"
        if begun.plan:
            advice = f"`tfcompare run --resume {self.path}`"
        else:
            # The same command begins the run again in this folder, because a run takes over one without a plan.
            name, *flags = begun.command or ("run",)
            of_program = flags.index("--") if "--" in flags else len(flags)
            if not any(word.partition("=")[0] in ("--output", "-o") for word in flags[:of_program]):
                flags = ["--output", str(self.path), *flags]
            advice = f"repeat `{shlex.join(('tfcompare', name, *flags))}`"
        return (
            f"{self.path} holds no run: {command}, begun {begun.created:%Y-%m-%d %H:%M} UTC, ended before its "
            f"environments were ready, and nothing was measured. {self.logs} may say why; then {advice}"
        )

    @contextmanager
    def hold(self, advice: str = "wait for its end") -> Iterator[None]:
        """Lock the folder while a run is in progress, and repair files that a killed process left incomplete.

        Raise UsageError if it belongs to another user, or is locked already.
        """
        refuse_strangers(self.path)
        # A run executes the workloads in its folder, and the folder's owner could replace them meanwhile.
        if (owner := self.path.stat().st_uid) != os.getuid():
            raise UsageError(
                f"{self.path} belongs to another user (uid {owner}); to measure with it, copy it: "
                f"cp -r {self.path} runs/"
            )
        try:
            handle = files.open_below(self.path, self.path / ".lock", os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise UsageError(f"cannot write into {self.path}: {error.strerror}") from error
        try:
            if not try_lock(handle):
                raise UsageError(f"another tfcompare is measuring into {self.path}; {advice}")
            files.remove_partial(self.path)
            self._mend_journal()
            self._held = True
            yield
        finally:
            self._held = False
            os.close(handle)

    @property
    def is_held(self) -> bool:
        """Whether a run is in progress."""
        with suppress(OSError):
            handle = files.open_below(self.path, self.path / ".lock", os.O_RDONLY)
            try:
                return not try_lock(handle, shared=True)
            finally:
                os.close(handle)
        return False

    @property
    def is_held_elsewhere(self) -> bool:
        """Whether a run is in progress that does not belong to this object."""
        return not self._held and self.is_held

    def _mend_journal(self) -> None:
        """Drop a last line that a kill or a full disk cut short, because the next entry would become part of it."""
        if not self.journal.exists():
            return
        data = self._content("journal.jsonl")
        end = data.rfind(b"\n") + 1
        if end < len(data):
            handle = files.open_below(self.path, self.journal, os.O_WRONLY)
            try:
                os.truncate(handle, end)
            finally:
                os.close(handle)

    def write_begun(self, plan: Plan, manifest: Manifest) -> None:
        """Write what a run is going to do, so that it can be continued if it is ended before its first round."""
        begun = replace(self.read_begun(), plan=plan, manifest=manifest)
        self._write(BEGUN_NAME, BEGUN.dump_json(begun, indent=1))

    def write_plan(self, plan: Plan) -> None:
        self._write("plan.json", PLAN.dump_json(plan, indent=1))

    def write_manifest(self, manifest: Manifest) -> None:
        self._write("manifest.json", MANIFEST.dump_json(manifest, indent=1))

    def _write(self, name: str, data: bytes) -> None:
        with writing_in(self.path, name):
            files.replace(self.path, self.path / name, RUN.stamp(data) + b"\n")

    def record(self, *entries: Entry) -> None:
        """Append lines to the journal, all of them or none."""
        with writing_in(self.path, self.journal.name):
            lines = []
            for entry in entries:
                # A long run has tens of thousands of these entries, so fields that most of them lack are not written.
                usual = {name for name in NOT_WRITTEN if not getattr(entry, name)} if isinstance(entry, Ended) else None
                lines.append(ENTRY.dump_json(entry, exclude=usual) + b"\n")
            files.append(self.path, self.journal, b"".join(lines))

    def sync(self) -> None:
        """Flush all that was measured to the disk, and then the journal, with a line that records it."""
        with writing_in(self.path, self.results.name):
            for stream in self.worker_output.streams():
                # A stream that its worker has removed, replaced or made unreadable is found when it is read.
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError, files.RefusedEntry):
                    if stream.live:
                        files.sync(self.path, stream.path)
                        files.sync(self.path, stream.path.parent)
            # If a user has removed the folder, the next worker creates it again.
            with suppress(FileNotFoundError):
                files.sync(self.path, self.results)
        self.record(Synced())
        self.sync_journal()

    def sync_workloads(self) -> None:
        """Flush the copy of the user's own workloads to the disk, because more rounds need it."""
        with writing_in(self.path, self.workloads.name):
            files.sync_tree(self.workloads)

    def sync_journal(self) -> None:
        with writing_in(self.path, self.journal.name):
            files.sync(self.path, self.journal)
            files.sync(self.path, self.path)

    @property
    def parts(self) -> list["RunFolder"]:
        """The runs that this one is merged from; none if it was measured as a whole."""
        return [RunFolder(self.path / PARTS / name) for name in list_names(self.path / PARTS)]

    @property
    def is_prepared(self) -> bool:
        """Whether its environments were once ready, so that it may have rounds."""
        return os.path.isfile(self.path / "plan.json") and os.path.isfile(self.path / "manifest.json")

    def read_begun(self) -> RunStart:
        return self._read(BEGUN_NAME, BEGUN, context={})

    def read_plan(self) -> Plan:
        return self._read("plan.json", PLAN, context={})

    def read_manifest(self) -> Manifest:
        return self._read("manifest.json", MANIFEST)

    def _read(self, name: str, adapter: TypeAdapter[T], context: dict[str, Case] | None = None) -> T:
        try:
            return adapter.validate_json(RUN.unstamp(self._content(name)), context=context)
        except FileNotFoundError as error:
            missing = f"{self.path / name} is missing: it was removed, or the run ended before its first round"
            # A run can be continued if begun.json has its plan.
            with suppress(ContractBroken, UsageError):
                if name != BEGUN_NAME and self.read_begun().plan:
                    missing += f". In the second case, `tfcompare run --resume {self.path}` continues it"
            raise ContractBroken(missing) from error
        except PermissionError as error:
            raise UsageError(f"{self.path / name} cannot be read: {error.strerror}") from error
        except OSError as error:
            raise ContractBroken(f"{self.path / name} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise damage_error(self.path / name, error) from error
        except (NoFormat, OtherFormat) as error:
            raise format_error(self.path / name, error) from error

    def _content(self, name: str) -> bytes:
        # A backup may have hard links to these files; only files that workers write must have a single name.
        return files.read(self.path, self.path / name, MOST_BYTES, names=None)

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the journal that can be read, after those of the parts."""
        for folder in (*self.parts, self):
            yield from folder.read_journal().entries

    def read_journal(self) -> Journal:
        """Read the journal, without a last line that a kill cut short and without damaged lines."""
        try:
            journal = self._content("journal.jsonl")
        except FileNotFoundError:
            return Journal()
        except OSError as error:
            raise ContractBroken(f"{self.journal} cannot be read: {error.strerror}") from error
        entries: list[Entry] = []
        damages: list[ContractBroken] = []
        # Only `\n` ends a line; what follows the last one was cut short.
        for number, line in enumerate(journal.split(b"\n")[:-1], 1):
            try:
                entries.append(ENTRY.validate_json(line))
            except ValidationError as error:
                damages.append(damage_error(self.journal, error, number))
        count = "1 line" if len(damages) == 1 else f"{len(damages)} lines"
        return Journal(tuple(entries), f"the journal has {count} that cannot be used: {damages[0]}" if damages else "")


def refuse_strangers(path: Path) -> None:
    """Raise UsageError if a folder holds a link, a pipe or a device, which tfcompare never writes but would follow."""
    for stranger in files.strangers(path, skip=("results",)):
        kind = "a link" if stranger.is_symlink() else "not a regular file"
        raise UsageError(f"{stranger} is {kind}; a run folder must not contain any. Remove it and try again")
