"""Checks what hosts send, and adds it to the run folder as it arrives.

What a unit has measured so far is kept below `unused/`, by unit and attempt. Once all of it is there and in order, it
becomes part of the run, and leaves that place. What stays in it belongs to attempts that were lost, and counts nowhere.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from orchestrator import files
from orchestrator.errors import ContractBroken, UsageError
from orchestrator.fleet.model import Contents, HostReport
from orchestrator.fleet.units import Unit
from orchestrator.model import Ended, Manifest, MergedHost, Plan, Target
from orchestrator.results.merge import (
    OF_MANIFESTS,
    OF_PLANS,
    MergedPart,
    add_part,
    find_difference,
    join_hosts,
    read_merged_part,
)
from orchestrator.results.part_files import check_files, write_files
from orchestrator.results.run_folder import RunFolder

UNUSED = "unused"
# Claims name different targets, and a program may be measured on any number of machines.
OF_UNITS = {name: word for name, word in OF_PLANS.items() if name not in ("targets", "definitions")}


class Arrivals:
    """The run folder of a fleet's run, as results arrive."""

    def __init__(self, run: RunFolder, plan: Plan, manifest: Manifest) -> None:
        self._run = run
        self._plan = plan
        self._manifest = manifest
        entries = tuple(run.entries())
        self._numbers = max((entry.replicate for entry in entries if isinstance(entry, Ended)), default=0)
        self._workers = run.worker_output.parts()
        # By attempt, what has been kept of it, which is not written again.
        self._kept: dict[Path, Contents] = {}

    def keep(self, unit: Unit, copy: int, attempt: int, contents: Contents) -> Path:
        """Keep what a unit has measured so far; what is kept of it already is replaced."""
        check_files(contents)
        place = self._run.path / UNUSED / f"{unit.number}-{copy}-{attempt}"
        before = self._kept.get(place, {})
        with files.writing(place, "make room, and continue the run"):
            # Streams of workers move when these end.
            for name in before.keys() - contents.keys():
                (place / name).unlink(missing_ok=True)
            write_files(place, {name: data for name, data in contents.items() if before.get(name) != data})
            for folder in ("results", "streams", "logs"):
                (place / folder).mkdir(parents=True, exist_ok=True)
        self._kept[place] = contents
        return place

    def accept(self, unit: Unit, copy: int, attempt: int, report: HostReport, contents: Contents) -> None:
        """Add a unit that was measured to its end; raise ContractBroken if it is not in order."""
        place = self.keep(unit, copy, attempt, contents)
        try:
            part = read_merged_part(place)
        except UsageError as error:
            raise ContractBroken(error.what) from error
        self._check(unit, part)
        host = {**part.manifest.host, "id": report.id}
        self._manifest = add_host(self._manifest, part, host)
        # The journal comes last: without its lines the rows count nowhere, and the unit is measured again.
        write = partial(self._run.write_manifest, self._manifest)
        self._numbers += add_part(part, self._run, self._plan.run, self._numbers, self._workers, write)
        # What workers and installs printed, by unit.
        for log in sorted(part.folder.logs.glob("*.log")):
            kept = self._run.logs / f"{unit.number}-{copy}-{log.name}"
            with files.writing(self._run.logs, "make room, and continue the run"):
                if data := log.read_bytes():
                    files.replace(self._run.path, kept, data, 0o600, durable=False)
        self._run.sync_journal()
        del self._kept[place]
        files.remove_tree(place)

    def count_attempts(self, unit: Unit, copy: int) -> int:
        """Return the number of the last attempt that was kept of a unit; the next one gets the next number."""
        names = (path.name.rpartition("-") for path in (self._run.path / UNUSED).glob(f"{unit.number}-{copy}-*"))
        return max((int(number) for _, _, number in names if number.isdecimal()), default=0)

    def _check(self, unit: Unit, part: MergedPart) -> None:
        if told := find_difference(self._plan, part.plan, OF_UNITS) or find_difference(
            self._manifest, part.manifest, OF_MANIFESTS
        ):
            raise ContractBroken(f"it measured something else: {told}")
        if set(part.plan.cases) != set(unit.cases) or not set(part.plan.targets) <= set(self._plan.targets):
            raise ContractBroken("it measured other cases or targets than it was asked for")
        for name, digest in part.manifest.sources.items():
            if self._manifest.sources.get(name) != digest:
                raise ContractBroken(f"it measured another source of {name}; install the same tfcompare there")
        for target, facts in part.manifest.environments.items():
            known = self._manifest.environments.get(target)
            if known and known.lock != facts.lock:
                raise ContractBroken(f"it has other packages in {target} than hosts before it")
        if not any(isinstance(entry, Ended) for entry in part.entries):
            raise ContractBroken("it measured nothing")


def add_host(manifest: Manifest, part: MergedPart, host: Mapping[str, str | int | float | None]) -> Manifest:
    """Return the manifest of a run with what a part was measured on and in."""
    cases = tuple(case.label for case in part.plan.cases)
    # A unit whose lines the journal never got is measured again, perhaps on another host.
    again = set(cases)
    known = [
        each
        if again.isdisjoint(each.cases)
        else replace(each, cases=tuple(case for case in each.cases if case not in again))
        for each in manifest.hosts
    ]
    own = tuple(case for each in known if each.host["id"] == host["id"] for case in each.cases)
    others = [each for each in known if each.host["id"] != host["id"] and each.cases]
    hosts = (*others, MergedHost(run=part.plan.run, host=dict(host), cases=(*own, *cases)))
    return replace(
        manifest,
        host=join_hosts(hosts),
        environments={**part.manifest.environments, **manifest.environments},
        workers={**part.manifest.workers, **manifest.workers},
        notes=tuple(dict.fromkeys((*manifest.notes, *part.manifest.notes))),
        hosts=hosts,
    )


def find_measured(run: RunFolder) -> set[str]:
    """Return the labels of the cases that have arrived."""
    return {entry.case for entry in run.entries() if isinstance(entry, Ended)}


def find_hosts(run: RunFolder) -> dict[str, str]:
    """Return the id of the host that measured each case that has arrived, by the label of the case."""
    ids = {case: str(each.host.get("id")) for each in run.read_manifest().hosts for case in each.cases}
    return {case: ids.get(case, "unknown") for case in find_measured(run)}


def drop_unfinished(run: RunFolder) -> None:
    """Remove rows whose lines never reached the journal: their unit arrived when the run was killed."""
    known: dict[Target, set[int]] = {}
    for entry in run.entries():
        if isinstance(entry, Ended) and entry.part is not None:
            known.setdefault(entry.target, set()).add(entry.part)
    for stream in run.worker_output.streams():
        if stream.target and stream.part not in known.get(stream.target, ()):
            stream.path.unlink(missing_ok=True)
