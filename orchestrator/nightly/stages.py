"""The stages of a nightly run, each a `tfcompare run` in a separate process, and the history as they find it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.errors import ArmsDied, EnvironmentFailed
from orchestrator.history.alarms import steps
from orchestrator.history.model import Point, Stage
from orchestrator.history.store import Read
from orchestrator.nightly.options import NightContext, NightOptions
from orchestrator.nightly.subprocess_run import Child, ChildEnd
from orchestrator.results.run import Run, load_run


def make_child(
    options: NightOptions,
    night: NightContext,
    limit_s: float,
    say: Callable[[str], None],
    what: str = "the nightly run",
) -> Child:
    return Child(log_path(night), limit_s, say, options.variables, what, night.lock)


def run_stage(
    options: NightOptions, night: NightContext, stage: Stage, child: Child, cases: Iterable[str], rounds: int
) -> tuple[Run | None, ChildEnd]:
    """Run `tfcompare run` once and read whatever it measured, however it ended."""
    path = stage_path(night, stage)
    joined = ",".join(night.resolved.versions)
    words = ["run", "--versions", joined, "--control", "--rounds", str(rounds)]
    words += ["--suite", options.suite] if options.suite else []
    words += [word for case in cases for word in ("--case", case)]
    ended = child.run([*words, "--output", str(path), "--format", "json", *options.flags])
    if not (path / "manifest.json").is_file():
        return None, ended
    run = load_run(path)
    settled = night.store.runs / run.plan.run
    path.rename(settled)
    return replace(run, path=settled), ended


def log_path(night: NightContext) -> Path:
    return night.store.path / "log" / f"{night.started:%Y%m%d-%H%M%S}.log"


def stage_path(night: NightContext, stage: Stage) -> Path:
    return night.store.runs / f"{night.started:%Y%m%d-%H%M%S}-{stage}"


def read_past(night: NightContext) -> Read:
    """Read the history without what this machine measured in its future."""
    return night.store.read().until(datetime.now(UTC), night.host)


def describe_ending(ended: ChildEnd, what: str) -> list[str]:
    if ended.hung:
        return [f"{what} took too long and was ended; what it had measured is kept"]
    if ended.exit_code in (0, ArmsDied.exit_code, EnvironmentFailed.exit_code):
        # The arms and versions themselves are reported with their reasons.
        return []
    return [f"{what} ended with exit code {ended.exit_code}: {ended.last_lines}"]


def count_cells(points: Sequence[Point]) -> int:
    return len(steps.cells_of(point.key for point in points if not point.key.is_control))
