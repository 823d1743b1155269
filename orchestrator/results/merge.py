"""Merges the runs of several machines into one run folder, in which each run stays as it was measured.

Each case was measured on one machine, so no ratio is between two machines. The runs must have the same settings.
"""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.model import Entry, Finished, Manifest, MergedHost, Plan, Target
from orchestrator.results.evaluation import gather
from orchestrator.results.part_files import copy_files
from orchestrator.results.run_folder import PARTS, RunFolder
from orchestrator.terminal.counts import format_count

# These properties must be the same in all runs; the values are their names for users.
PLAN_PROPERTIES = {
    "targets": "targets",
    "definitions": "changes to targets",
    "engine": "engine",
    "device": "device",
    "looks": "looks (--rounds)",
    "alpha": "share of errors",
    "margin": "margin",
    "margins": "margins of metrics",
    "judge": "judged time (--judge)",
    "threads": "threads",
    "untuned_datasets": "tuning of datasets (--untuned-datasets)",
    "keeps_xla_code": "keeping of XLA's code (--keep-xla-code)",
    "isolation": "isolation",
    "metrics": "metrics",
    "outputs": "comparison of results",
    "cpus": "number of CPUs",
    "memory_mb": "memory limit",
    "runtime": "container runtime",
    "exclusive": "exclusive use of the GPU",
}
MANIFEST_PROPERTIES = {"contract": "contract with workers", "variables": "variables"}
LONGEST_VALUE = 60


@dataclass(frozen=True)
class MergedPart:
    """A run that is merged with others."""

    folder: RunFolder
    plan: Plan
    manifest: Manifest
    entries: tuple[Entry, ...]

    @property
    def path(self) -> Path:
        return self.folder.path


def read_merged_part(path: Path) -> MergedPart:
    folder = RunFolder.open(path)
    if folder.is_held:
        raise UsageError(f"{path} is still being measured; wait until it has finished")
    return MergedPart(folder, folder.read_plan(), folder.read_manifest(), folder.read_journal().entries)


def merge_runs(paths: Sequence[Path], output: Path, command: Sequence[str]) -> RunFolder:
    """Merge runs into a new folder, and return it."""
    parts = [read_merged_part(path) for path in paths]
    check_parts(parts)
    plan, manifest = merge_plans(parts), merge_manifests(parts, command)
    with RunFolder.begin(output, command) as run:
        try:
            run.write_manifest(manifest)
            run.write_plan(plan)
            # If several parts have one of the user's workloads, they all have the same copy of it.
            for part in parts:
                if part.folder.workloads.is_dir():
                    with files.writing(run.workloads, "choose another --output"):
                        shutil.copytree(part.folder.workloads, run.workloads, dirs_exist_ok=True, symlinks=True)
            for number, part in enumerate(parts, 1):
                with files.writing(run.path, "choose another --output"):
                    copy_files(part.path, run.path / PARTS / str(number))
            # This checks that the merged run can be read again.
            gather(run)
            run.record(_finish(parts))
            run.sync_journal()
        except BaseException:
            # Nothing is lost, because the parts still have all of their files.
            files.remove_tree(run.path)
            raise
    return run


def check_parts(parts: Sequence[MergedPart]) -> None:
    """Raise UsageError for runs that do not belong together, or cannot be merged."""
    if len(parts) < 2:
        raise UsageError("a merge takes two runs or more, e.g. tfcompare merge shard-1 shard-2 --output whole")
    first_part = parts[0]
    for part in parts:
        if part.plan.claims or part.plan.program or part.manifest.hosts:
            kind = "of claims" if part.plan.claims else "of a program" if part.plan.program else "that was merged"
            raise UsageError(f"{part.path} is a run {kind}; it cannot be merged")
    for part in parts[1:]:
        for of_first, of_part, names in (
            (first_part.plan, part.plan, PLAN_PROPERTIES),
            (first_part.manifest, part.manifest, MANIFEST_PROPERTIES),
        ):
            if difference := find_difference(of_first, of_part, names):
                raise UsageError(f"{first_part.path} and {part.path} do not belong together: {difference}")
    locks: dict[Target, tuple[str, Path]] = {}
    for part in parts:
        for target, facts in part.manifest.environments.items():
            lock, path = locks.setdefault(target, (facts.lock, part.path))
            if lock != facts.lock:
                raise UsageError(f"{path} and {part.path} have different packages in {target}; measure both again")
    seen: dict[str, tuple[str, Path]] = {}
    for part in parts:
        for name, digest in part.manifest.sources.items():
            known_digest, path = seen.setdefault(name, (digest, part.path))
            if known_digest != digest:
                raise UsageError(f"{path} and {part.path} were measured with different sources of {name}")
    where: dict[str, Path] = {}
    for part in parts:
        for case in part.plan.cases:
            if case.label in where:
                raise UsageError(
                    f"{case.label} is in {where[case.label]} and in {part.path}; each case is measured on one machine"
                )
            where[case.label] = part.path


def find_difference(one: object, other: object, names: Mapping[str, str]) -> str:
    """Return the first of these properties that differs, with its name for users and both values, or ''."""
    for name, word in names.items():
        was, now = getattr(one, name), getattr(other, name)
        if was != now:
            return f"{word}: {_show(was)} and {_show(now)}"
    return ""


def _show(value: object) -> str:
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return (text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…") or "none"


def merge_plans(parts: Sequence[MergedPart]) -> Plan:
    plans = [part.plan for part in parts]
    created = min(plan.created for plan in plans)
    ids = hashlib.sha256(" ".join(sorted(plan.run for plan in plans)).encode()).hexdigest()
    return replace(
        plans[0],
        run=f"{created:%Y%m%d-%H%M%S}-{ids[:4]}",
        created=created,
        cases=tuple(case for plan in plans for case in plan.cases),
        pairs=tuple(dict.fromkeys(pair for plan in plans for pair in plan.pairs)),
        large=tuple(dict.fromkeys(file for plan in plans for file in plan.large)),
        budget_s=sum(budgets) if all(budgets := [plan.budget_s or 0.0 for plan in plans]) else None,
    )


def merge_manifests(parts: Sequence[MergedPart], command: Sequence[str]) -> Manifest:
    manifests = [part.manifest for part in parts]
    hosts = tuple(
        MergedHost(run=part.plan.run, host=part.manifest.host, cases=tuple(case.label for case in part.plan.cases))
        for part in parts
    )
    return replace(
        manifests[0],
        command=tuple(command),
        host=join_hosts(hosts),
        sources={name: digest for one in manifests for name, digest in one.sources.items()},
        environments={target: facts for one in reversed(manifests) for target, facts in one.environments.items()},
        workers={target: facts for one in reversed(manifests) for target, facts in one.workers.items()},
        notes=tuple(dict.fromkeys(note for one in manifests for note in one.notes)),
        hosts=hosts,
    )


def join_hosts(hosts: Sequence[MergedHost]) -> dict[str, str | int | float | None]:
    """Return one record for all machines; that of several machines matches none, so no run is continued on them."""
    by_id = {str(each.host.get("id")): each.host for each in hosts}
    if len(by_id) == 1:
        # One machine has measured all parts, one after the other.
        boots = {each.host.get("boot") for each in hosts}
        left_out = () if len(boots) == 1 else ("boot", "booted")
        return {name: value for name, value in hosts[0].host.items() if name not in left_out}
    digest = hashlib.sha256(" ".join(sorted(by_id)).encode()).hexdigest()
    cpus = ", ".join(dict.fromkeys(str(host.get("cpu")) for host in by_id.values()))
    cores = sorted({host.get("usable_cores") for host in by_id.values()}, key=str)
    return {
        "id": f"merged-{digest[:12]}",
        "cpu": f"{format_count(len(by_id), 'machine')}: {cpus}",
        "usable_cores": cores[0] if len(cores) == 1 else f"{cores[0]} to {cores[-1]}",
    }


def _finish(parts: Sequence[MergedPart]) -> Finished:
    """Return the end of the merged run; its seconds are 0, because those of its parts count."""
    ends = [next((entry for entry in reversed(part.entries) if isinstance(entry, Finished)), None) for part in parts]
    endings = [f"{part.path.name}: {end.how}" for part, end in zip(parts, ends, strict=True) if end and end.how]
    endings += [f"{part.path.name} was cut short" for part, end in zip(parts, ends, strict=True) if end is None]
    return Finished(
        how="; ".join(endings),
        seconds=0.0,
        start_s=0.0,
        cut=any(end is None or end.cut for end in ends),
        at_budget=bool(endings) and all(end and (end.at_budget or not end.how) for end in ends),
    )
