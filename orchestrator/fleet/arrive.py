"""Checks what hosts send, and adds it to the run folder as it arrives.

The results of a unit are kept below `unused/`, by unit, copy and attempt. Once they are complete and in order, they
move to `parts/` and belong to the run. Whatever stays behind is from attempts that were lost, and does not count.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from orchestrator import files
from orchestrator.errors import ContractBroken, UsageError
from orchestrator.fleet.model import Contents, HostReport
from orchestrator.fleet.units import Unit
from orchestrator.model import Ended, Manifest, MergedHost, Plan
from orchestrator.results.merge import (
    MANIFEST_PROPERTIES,
    PLAN_PROPERTIES,
    MergedPart,
    find_difference,
    join_hosts,
    read_merged_part,
)
from orchestrator.results.part_files import check_files, write_files
from orchestrator.results.parts import find_last_number
from orchestrator.results.run_folder import PARTS, RunFolder
from orchestrator.results.streams import read_stream

UNUSED = "unused"
# No real unit has nearly this many, and a column can hold the numbers of all units together.
MOST_REPLICATES_OF_UNIT = 100_000
# A unit for claims has only the targets and changed versions that its claims name.
UNIT_FIELDS = {name: word for name, word in PLAN_PROPERTIES.items() if name not in ("targets", "definitions")}


class Arrivals:
    """The run folder of a fleet's run, to which results are added as they arrive."""

    def __init__(self, run: RunFolder, plan: Plan, manifest: Manifest) -> None:
        self._run = run
        self._plan = plan
        self._manifest = manifest
        # These files of each attempt have been written already, and are not written again.
        self._kept: dict[Path, Contents] = {}

    def keep(self, unit: Unit, copy: int, attempt: int, contents: Contents) -> Path:
        """Keep what a unit has measured so far, in place of what was kept of it before."""
        check_files(contents)
        place = self._run.path / UNUSED / f"{unit.number}-{copy}-{attempt}"
        before = self._kept.get(place, {})
        with files.writing(place, "make room, and continue the run"):
            # When a worker ends, its stream moves to another place.
            for name in before.keys() - contents.keys():
                (place / name).unlink(missing_ok=True)
            write_files(place, {name: data for name, data in contents.items() if before.get(name) != data})
        self._kept[place] = contents
        return place

    def accept(self, unit: Unit, copy: int, attempt: int, report: HostReport, contents: Contents) -> None:
        """Add a unit that was measured to its end; raise ContractBroken if it is not in order.

        Whether its rows match its journal is checked later, when they are judged.
        """
        place = self.keep(unit, copy, attempt, contents)
        try:
            part = read_merged_part(place)
        except UsageError as error:
            raise ContractBroken(error.what) from error
        for stream in part.folder.worker_output.streams():
            read_stream(stream.path, stream.root, live=stream.live)
        self._check(unit, part)
        host = {**part.manifest.host, "id": report.id}
        self._manifest = add_host(self._manifest, part, host)
        parts = self._run.path / PARTS
        with files.writing(parts, "make room, and continue the run"):
            files.sync_tree(place)
            # The part is moved last, since a unit without a part is measured again.
            self._run.write_manifest(self._manifest)
            parts.mkdir(mode=0o700, exist_ok=True)
            for before in parts.glob(f"{unit.number}-{copy}-*"):
                # An earlier part left cases out, and the whole unit has been measured again.
                before.rename(place.parent / before.name)
            place.rename(parts / place.name)
            files.sync(self._run.path, parts)
        del self._kept[place]

    def count_attempts(self, unit: Unit, copy: int) -> int:
        """Return the number of the last attempt that was kept of a unit; the next one gets the next number."""
        paths = (path for kept in (UNUSED, PARTS) for path in (self._run.path / kept).glob(f"{unit.number}-{copy}-*"))
        numbers = (path.name.rpartition("-")[2] for path in paths)
        return max((int(number) for number in numbers if number.isdecimal()), default=0)

    def _check(self, unit: Unit, part: MergedPart) -> None:
        if told := find_difference(self._plan, part.plan, UNIT_FIELDS) or find_difference(
            self._manifest, part.manifest, MANIFEST_PROPERTIES
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
        if not 0 < find_last_number(iter(part.entries)) <= MOST_REPLICATES_OF_UNIT:
            raise ContractBroken(f"it measured nothing, or numbered it beyond {MOST_REPLICATES_OF_UNIT}")


def add_host(manifest: Manifest, part: MergedPart, host: Mapping[str, str | int | float | None]) -> Manifest:
    """Return the manifest of a run, with the host and the environments of a part added."""
    cases = tuple(case.label for case in part.plan.cases)
    # If the part of a unit was never moved into place, the unit is measured again, perhaps on another host.
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
