"""Finds the workloads whose source or data changed between two runs."""

from dataclasses import dataclass

from orchestrator import contract
from orchestrator.catalog.workloads import NEIGHBOURS
from orchestrator.results.run import Run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.counts import name_some
from orchestrator.terminal.text import escape_unprintable

# The sources of a run list the program that measures workloads under this name.
WORKER = "worker"


@dataclass(frozen=True)
class ChangedWorkloads:
    """The workloads that are not the same in two runs, and the changed files next to them."""

    workloads: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        files = f" ({name_some(self.files)})" if self.files else ""
        return escape_unprintable(f"{', '.join(sorted(self.workloads))}{files}")


def find_rewritten(earlier: Run, later: Run) -> ChangedWorkloads:
    """Return the workloads whose source or data changed, because that changes their times as well."""
    old, new = earlier.manifest.sources, later.manifest.sources
    changed = [name for name in sorted((old.keys() | new.keys()) - {WORKER}) if old.get(name) != new.get(name)]
    if later.plan.program:
        # A program is alone in its folder, and all files in it are one source.
        both = any(name in old and name in new for name in changed)
        return ChangedWorkloads(frozenset({later.plan.cases[0].workload} if both else ()))
    files = [name.removeprefix(NEIGHBOURS) for name in changed if name.startswith(NEIGHBOURS)]
    # Any workload of the folder may read these files.
    affected = _find_own(earlier) & _find_own(later) if files else set()
    own = {_find_workload(name) for name in changed if name in old and name in new and not name.startswith(NEIGHBOURS)}
    return ChangedWorkloads(frozenset(own | affected), tuple(files if affected else ()))


def _find_own(run: Run) -> set[str]:
    """Return the workloads of a run that are not built in, which are those whose files the run keeps."""
    copy = RunFolder.open(run.path).workloads
    return {case.workload for case in run.plan.cases if (copy / f"{case.workload}.py").is_file()}


def _find_workload(source: str) -> str:
    """Return the workload that a source belongs to: its own file, or data that it reads."""
    folder, _, data = source.partition("/")
    return data.partition("/")[0] if folder == contract.DATA else source
