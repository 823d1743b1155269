"""What a run prepares before its first round: workloads, and environments on one engine or another."""

from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.catalog import pinned
from orchestrator.catalog.version import Version
from orchestrator.engines import ENGINES, Engine, Environment
from orchestrator.engines.choose import find_candidates
from orchestrator.errors import EnvironmentFailed, Interrupted
from orchestrator.measure import alternative
from orchestrator.measure.prepare import Ready, make_ready
from orchestrator.model import Lost, Plan
from orchestrator.plan.request import Options, PlannedRun
from orchestrator.results import exit_error
from orchestrator.results.rundir import RunDir
from orchestrator.terminal.progress import View


def pin_workloads(asked: PlannedRun, own: Path | None, directory: RunDir, say: Callable[[str], None]) -> PlannedRun:
    """Copy the user's own workloads into the run directory, if any of them is measured, and use the copies."""
    if own is None or all(workload.builtin for workload in asked.workloads.values()):
        return asked
    large = pinned.pin(own, directory.workloads)
    for note in pinned.noted(large):
        say(f"note: {note}")
    workloads = {
        name: workload if workload.builtin else replace(workload, path=directory.workloads / workload.path.name)
        for name, workload in asked.workloads.items()
    }
    return replace(asked, plan=replace(asked.plan, large=large), workloads=workloads)


def workload_folder(plan: Plan, directory: RunDir, held: ExitStack) -> Path | None:
    """Return the folder from which workers load the user's own workloads."""
    if not directory.workloads.is_dir():
        return None
    if ENGINES[plan.engine].detached or not plan.large:
        return directory.workloads
    scratch = held.enter_context(TemporaryDirectory(prefix="tfcompare-", ignore_cleanup_errors=True))
    return pinned.staged(directory.workloads, plan.large, Path(scratch))


def prepare_somewhere(
    options: Options,
    versions: tuple[Version, ...],
    name: str,
    engine: Engine,
    directory: RunDir,
    view: View,
    held: ExitStack,
    *,
    enough: Callable[[Collection[str]], bool] = bool,
) -> tuple[str, dict[str, Environment], dict[str, EnvironmentFailed]]:
    """Make the versions ready on the chosen engine, or on the next candidate if it can make none of them.

    There are other candidates only if the choice of the engine was left open. Failures are journaled and reported. If
    Pythons are missing, `enough` must hold.
    """
    environments, failures = prepare(versions, engine, directory, view)
    names = find_candidates(options.engine, options.isolation, options.environments)
    for other in names[names.index(name) + 1 :]:
        if environments:
            break
        first = next(iter(failures.values()))
        view.say(f"no image could be had ({first}); taking {ENGINES[other].title} instead")
        name, engine = other, ENGINES[other].make(options.environments)
        held.callback(engine.close)
        environments, failures = prepare(versions, engine, directory, view)
    lacks_python = any(failure.lacks_python for failure in failures.values())
    if not environments or (lacks_python and not enough(environments)):
        raise alternative.make_error(options, versions, failures)
    for message in exit_error.join_failures(failures.values()):
        view.say(f"warning: {message}")
    for version, failure in failures.items():
        directory.record(Lost(version=version, stage="environment", reason=failure.headline))
    return name, environments, failures


def prepare(
    versions: tuple[Version, ...], engine: Engine, directory: RunDir, view: View
) -> tuple[dict[str, Environment], dict[str, EnvironmentFailed]]:
    """Make every version ready, side by side; a version that cannot be made ready affects only itself."""
    try:
        made = make_ready(versions, engine, directory.logs, view)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted before anything was measured; environments that are done are kept") from stop
    ready = {number: result.environment for number, result in made.items() if isinstance(result, Ready)}
    return ready, {number: result for number, result in made.items() if isinstance(result, EnvironmentFailed)}
