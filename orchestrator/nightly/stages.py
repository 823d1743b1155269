"""The stages of a nightly run, each a `tfcompare run` in a separate process, and the history that they read."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.catalog.variables import find_of_tensorflow
from orchestrator.errors import ArmsDied, ContractBroken, EnvironmentFailed, TfCompareError
from orchestrator.history.alarms import steps
from orchestrator.history.model import Point, Stage
from orchestrator.history.store import Read
from orchestrator.model import Extended, Finished, Lost
from orchestrator.nightly.options import NightContext, NightOptions
from orchestrator.nightly.subprocess_run import Child, ChildEnd
from orchestrator.redact import redact_words
from orchestrator.results.exit_error import find_error
from orchestrator.results.more_rounds import check_sources
from orchestrator.results.run import Run, load_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View

STAMP = "%Y%m%d-%H%M%S"


def make_child(
    options: NightOptions,
    night: NightContext,
    limit_s: float,
    view: View,
    what: str = "the nightly run",
) -> Child:
    log = night.store.path / "log" / f"{night.started:{STAMP}}.log"
    return Child(log, limit_s, view, options.variables, what, night.lock)


def run_stage(
    options: NightOptions, night: NightContext, stage: Stage, child: Child, cases: Iterable[str], rounds: int
) -> tuple[Run | None, ChildEnd]:
    """Run `tfcompare run` once and read whatever it measured, however it ended.

    A run with lost, duplicate or foreign results is not returned, so that it does not get into the history.
    """
    path = stage_path(night, stage)
    ended = child.run(["run", "--output", str(path), *_list_arguments(options, night, cases, rounds)])
    if not (path / "manifest.json").is_file():
        return None, ended
    run = _move_to_history(load_run(path), night)
    if broken := run.evaluation.broken:
        reason = f"{'; '.join(broken)}. This run was not added to the history; its folder is {run.path}"
        return None, replace(ended, exit_code=ContractBroken.exit_code, last_lines=reason)
    return run, ended


def _list_arguments(options: NightOptions, night: NightContext, cases: Iterable[str], rounds: int) -> list[str]:
    words = ["--versions", ",".join(night.resolved.versions), "--control", "--rounds", str(rounds)]
    words += ["--suite", options.suite] if options.suite else []
    words += [word for case in cases for word in ("--case", case)]
    return [*words, "--format", "json", *options.flags]


def _move_to_history(run: Run, night: NightContext) -> Run:
    """Rename the folder of a run that has ended to its name in the history."""
    path = night.store.runs / run.plan.run
    run.path.rename(path)
    return replace(run, path=path)


def find_screen(options: NightOptions, night: NightContext, counted: Collection[str]) -> tuple[Run, ChildEnd] | None:
    """Return a complete screen with tonight's options that a killed nightly run of this day measured, if any.

    `counted` are the runs whose results a nightly run has recorded.
    """
    for day in (night.started, night.started - timedelta(days=1)):
        for path in sorted(night.store.runs.glob(f"{day:%Y%m%d}-*"), reverse=True):
            # A run that is damaged, belongs to another user or is being measured does not count.
            with suppress(TfCompareError, OSError, ValueError):
                if _is_screen(options, night, path):
                    run = load_run(path)
                    is_ours = run.plan.run not in counted and run.manifest.host.get("id") == night.host
                    if is_ours and not run.evaluation.broken:
                        run = _move_to_history(run, night)
                        return run, _describe_end(run)
    return None


def _is_screen(options: NightOptions, night: NightContext, path: Path) -> bool:
    """Return whether a run folder holds all that tonight's screen would measure, measured on the same day."""
    folder = RunFolder(path)
    run, flag, output, *words = folder.read_begun().command
    started, _, stage = Path(output).name.rpartition("-")
    if (run, flag, stage) != ("run", "--output", "screen"):
        return False
    day = options.find_date(datetime.strptime(started, STAMP).replace(tzinfo=UTC))
    wanted = redact_words(_list_arguments(options, night, options.selected, options.rounds))
    if day != night.date or tuple(words) != wanted:
        return False
    with folder.hold():
        *entries, last = folder.entries()
    if not isinstance(last, Finished) or last.cut or any(isinstance(entry, Extended) for entry in entries):
        return False
    manifest = folder.read_manifest()
    check_sources(folder.read_plan(), manifest, folder, options.own_workloads)
    return manifest.variables == (find_of_tensorflow() if "--inherit-env" in options.flags else {})


def _describe_end(run: Run) -> ChildEnd:
    """Return how the process that measured a complete run ended, or would have ended."""
    lost = [
        entry for entry in RunFolder(run.path).entries() if isinstance(entry, Lost) and entry.stage == "environment"
    ]
    failures = [EnvironmentFailed(entry.reason, target=str(entry.target)) for entry in lost]
    error = find_error(run.arms, failures, run.evaluation.broken)
    return ChildEnd(error.exit_code if error else 0, hung=False, last_lines=str(error or ""))


def stage_path(night: NightContext, stage: Stage) -> Path:
    return night.store.runs / f"{night.started:{STAMP}}-{stage}"


def read_history(night: NightContext) -> Read:
    """Read the history, without results of this machine that are dated in the future."""
    return night.store.read().until(datetime.now(UTC), night.host)


def describe_ending(ended: ChildEnd, what: str) -> list[str]:
    if ended.hung:
        return [f"{what} took too long and was ended; its results so far are kept"]
    if ended.exit_code in (0, ArmsDied.exit_code, EnvironmentFailed.exit_code):
        # The arms and versions themselves are reported with their reasons.
        return []
    return [f"{what} ended with exit code {ended.exit_code}: {ended.last_lines}"]


def count_cells(points: Sequence[Point]) -> int:
    return len(steps.list_cells(point.key for point in points if not point.key.is_control))
