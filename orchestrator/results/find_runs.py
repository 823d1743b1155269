"""Search for run folders, with a short description of each; no run is judged for that."""

import time
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import ContractBroken, UsageError

# A run has the first of these files, a search of `bisect` the second, a question of `why` the third, an upgrade the
# fourth, a table of saved models the fifth, and an atlas the last.
PLAN, SEARCH, QUESTION, UPGRADE, MODELS = "plan.json", "bisect.json", "why.json", "upgrade.json", "models.json"
ATLAS = "atlas.json"
# Runs without --output are stored here.
RUNS = Path("runs")
# A file that is dated further in the future was written while the clock was ahead. The clocks of a network file system
# and of this machine may differ by less.
FUTURE_S = 600.0


@dataclass(frozen=True)
class FoundRun:
    """A run folder, and what its plan says."""

    path: Path
    created: str
    targets: tuple[str, ...]
    cases: int


def runs_in(folder: Path, file: str = PLAN) -> list[Path]:
    """Return the subfolders that hold this file, the newest first; by default, these are run folders.

    Those that are dated in the future come last: the clock was set back after them, so all others may be newer.
    """
    plans = []
    latest = time.time() + FUTURE_S
    for plan in folder.glob(f"*/{file}"):
        try:
            written = plan.stat().st_mtime
        except OSError:
            continue
        plans.append((written > latest, -written, plan.parent))
    return [path for *_, path in sorted(plans)]


def newest_run(folder: Path = RUNS) -> Path:
    return _find_newest(folder, PLAN, "run", "name a run folder, or make one with `tfcompare run`")


def newest_search(folder: Path = RUNS) -> Path:
    return _find_newest(folder, SEARCH, "search", "name its folder, or begin one with `tfcompare bisect`")


def newest_question(folder: Path = RUNS) -> Path:
    return _find_newest(folder, QUESTION, "question", "name its folder, or ask one with `tfcompare why`")


def newest_upgrade(folder: Path = RUNS) -> Path:
    return _find_newest(folder, UPGRADE, "upgrade", "name its folder, or begin one with `tfcompare upgrade`")


def newest_atlas(folder: Path = RUNS) -> Path:
    return _find_newest(folder, ATLAS, "atlas", "name its folder, or begin one with `tfcompare atlas`")


def _find_newest(folder: Path, file: str, what: str, advice: str) -> Path:
    paths = runs_in(folder, file)
    if not paths:
        raise UsageError(f"there is no {what} in {folder}/; {advice}")
    return paths[0]


def holds_runs(path: Path) -> bool:
    """Return whether this folder holds runs and is not a run itself."""
    return not any((path / name).exists() for name in ("plan.json", "begun.json")) and bool(runs_in(path))


def describe_runs(folder: Path) -> list[FoundRun]:
    # Completion with the Tab key uses this module as well, and does not need to read runs.
    from orchestrator.results.run_folder import RunFolder

    found = []
    for path in runs_in(folder):
        try:
            plan = RunFolder(path).read_plan()
        except (ContractBroken, UsageError):
            found.append(FoundRun(path, "", (), 0))
            continue
        created = plan.created.isoformat().replace("+00:00", "Z")
        found.append(FoundRun(path, created, tuple(map(str, plan.targets)), len(plan.cases)))
    return found
