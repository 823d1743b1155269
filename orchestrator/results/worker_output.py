"""The output of workers: a folder for each while it runs, the streams of those that have ended, and logs."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.model import Discarded, Ended, Entry, Target
from orchestrator.results import streams
from orchestrator.results.streams import Stream, compact_stream
from orchestrator.terminal.counts import name_some

STREAM = "stream.arrow"
NAMED = re.compile(r"(?P<target>.+)-(?P<part>\d{1,9})(\.arrow)?", re.ASCII)
LONGEST_NAME = 60


class WorkerOutput:
    """The files of workers in a run folder; `record` and `read_entries` write and read its journal."""

    def __init__(
        self, path: Path, record: Callable[[Entry], None], read_entries: Callable[[], Iterable[Entry]]
    ) -> None:
        self.path = path
        self.results = path / "results"
        self.settled = path / "streams"
        self.logs = path / "logs"
        self.xla_code = path / "xla"
        self._record = record
        self._read_entries = read_entries

    def parts(self) -> Counter[Target]:
        """Return the number of each version's last worker; the next worker gets the next number."""
        used = [_find_worker(name) for folder in (self.settled, self.results) for name in list_names(folder)]
        used += [
            (entry.target, entry.part or 0) for entry in self._read_entries() if isinstance(entry, Ended | Discarded)
        ]
        last: Counter[Target] = Counter()
        for target, part in used:
            if target:
                last[target] = max(last[target], part)
        return last

    def create_results_folder(self, target: Target, part: int) -> Path:
        """Create a results folder for one worker, which will write its stream there."""
        folder = self.results / f"{target}-{part}"
        with writing_in(self.path, f"results/{folder.name}"):
            self.results.mkdir(exist_ok=True)
            folder.mkdir(mode=0o700)
        return folder

    def create_xla_folder(self, target: Target) -> Path:
        """Return the folder in which all workers of a target keep the code that XLA compiles."""
        folder = self.xla_code / str(target)
        with writing_in(self.path, f"{self.xla_code.name}/{folder.name}"):
            self.xla_code.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def remove_xla_code(self) -> None:
        """Remove the code of XLA; what lies in the run folder of a stranger must reach no worker."""
        files.remove_tree(self.xla_code)

    def create_worker_log(self, target: Target) -> Path:
        """Return the log of a version's workers; create its folder again if a user has removed it."""
        with writing_in(self.path, self.logs.name):
            self.logs.mkdir(exist_ok=True)
        return self.logs / f"worker-{target}.log"

    def stream(self, target: Target, part: int) -> Stream:
        """Return the stream in a worker's results folder."""
        return Stream(target, part, self.results / f"{target}-{part}" / STREAM, self.path, live=True)

    def settle(self, stream: Stream) -> None:
        """Move the stream of an ended worker out of its folder; remove and journal what else is left there.

        If that fails, for example on a full disk, or if the stream cannot be read, it stays where it is and is read
        from there.
        """
        folder = stream.path.parent
        names = list_names(folder)
        try:
            if stream.path.name in names:
                self._keep(stream)
            others = [name.encode("utf-8", "replace").decode() for name in names if name != stream.path.name]
            if others:
                self._discard(stream, name_some([name[:LONGEST_NAME] for name in others]), of_stream=False)
        except (OSError, UsageError):
            return
        files.remove_tree(folder)

    def _keep(self, stream: Stream) -> None:
        try:
            data = files.read(self.path, stream.path, streams.MOST_BYTES)
        except files.RefusedEntry as refused:
            self._discard(stream, f"{stream.path} is not used: {refused.strerror}", of_stream=True)
            return
        self.settled.mkdir(exist_ok=True)
        copy = self.settled / f"{stream.path.parent.name}.arrow"
        files.replace(self.path, copy, compact_stream(stream.path, data), 0o600)

    def _discard(self, stream: Stream, what: str, *, of_stream: bool) -> None:
        # Only streams of workers that this host started are settled, and these have a version.
        assert stream.target
        self._record(Discarded(target=stream.target, part=stream.part, what=what, stream=of_stream))

    def streams(self) -> list[Stream]:
        """Return one stream per worker; if it was taken out of its folder, the copy that no worker could reach."""
        by_worker: dict[tuple[Target | None, int, str], Stream] = {}
        for folder in (self.settled, self.results):
            for name in list_names(folder):
                # A host that was killed had not finished writing this file.
                if name.startswith("."):
                    continue
                target, part = _find_worker(name)
                live = folder == self.results
                file = folder / name / STREAM if live else folder / name
                if (live or name.endswith(".arrow")) and os.path.lexists(file):
                    stream = Stream(target, part, file, self.path, live=live)
                    by_worker.setdefault((target, part, "" if target else stream.name), stream)
        return sorted(by_worker.values(), key=lambda stream: (str(stream.target or ""), stream.part, stream.path))


@contextmanager
def writing_in(path: Path, name: str) -> Iterator[None]:
    """Turn an operating system's error into a UsageError: what cannot be written, why, and what to do."""
    try:
        yield
    except OSError as error:
        if not os.path.lexists(path):
            raise UsageError(
                f"{path} was removed or renamed while the run was in progress; start a new run, or continue "
                "the renamed one with `tfcompare run --resume`"
            ) from error
        raise UsageError(
            f"cannot write {path / name}: {error.strerror or error}; what was written before is kept. Once it "
            f"can be written, `tfcompare run --resume {path}` continues the run"
        ) from error


def list_names(folder: Path) -> list[str]:
    """Return the sorted names in a folder; there are none if it is a link or cannot be read."""
    with suppress(OSError):
        if not folder.is_symlink():
            return sorted(os.listdir(folder))
    return []


def _find_worker(name: str) -> tuple[Target | None, int]:
    """Return the version and the number of the worker that a file or a folder is named after, or None and 0."""
    with suppress(ValueError):
        if named := NAMED.fullmatch(name):
            return Target.parse(named["target"]), int(named["part"])
    return None, 0
