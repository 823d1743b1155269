"""Profiles each case in each version, to show where its time goes. Nothing here is measured or judged."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from orchestrator import files, formats
from orchestrator.engines.worker.client import Ready
from orchestrator.errors import UsageError
from orchestrator.measure.profiler import Profiler
from orchestrator.measure.session import (
    Session,
    make_manifest,
    open_session,
    pin_workloads,
    prepare_environments,
)
from orchestrator.measure.workers import RunningWorkers, employ
from orchestrator.model import Target
from orchestrator.model.profile import ProfiledArm
from orchestrator.options import PROFILED_CALLS, SHOWN_FUNCTIONS
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import PlannedRun, RunOptions
from orchestrator.profiling.flamegraph import collapse, speedscope
from orchestrator.profiling.model import Heading, ProfileResult, stem
from orchestrator.profiling.stored import ARM, HEADING, PROFILE_FILE
from orchestrator.results.endings import read_endings
from orchestrator.results.exit_error import find_error
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal import strict_json
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.view import View

# Fewer calls would make functions called once per step look like functions called once or twice.
FEWEST_CALLS = 3
TIMEOUT_HINT = " (raise --timeout or lower --calls)"


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """The options given on the command line: those of a run that concern a profile, and those of the profile itself."""

    run: RunOptions
    # If this is 0, layers are compared.
    calls: int = PROFILED_CALLS
    top: int = SHOWN_FUNCTIONS


def plan_profile(options: ProfileOptions, view: View) -> PlannedRun:
    """Validate the options and return the planned run.

    Only the part of it that starts workers is used: there are no rounds, and nothing is judged.
    """
    if not options.run.versions:
        raise UsageError("--versions names no version; e.g. --versions 1.14,2.0")
    if 0 < options.calls < FEWEST_CALLS:
        raise UsageError(f"--calls {options.calls}: a profile takes at least {FEWEST_CALLS} calls")
    return plan_run(options.run, view, fewest=1)


def profile(options: ProfileOptions, view: View) -> ProfileResult:
    planned = plan_profile(options, view)
    with open_session(planned, Path("runs") / f"profile-{planned.run}", view) as opened:
        (opened.folder.path / "profiles").mkdir()
        cases, targets = len(planned.selection.cases), len(planned.selection.targets)
        view.say(
            f"plan: {format_count(cases, 'case')} x {format_count(targets, 'version')}, "
            f"{format_count(cases * targets, 'profile')}"
        )
        for note in planned.fitting.notes:
            view.say(f"note: {note}")
        opened = pin_workloads(opened)
        session = prepare_environments(opened)
        session.folder.write_manifest(make_manifest(opened.planned, session.environments, session.plan.large))
        return _profile(options, session)


def _profile(options: ProfileOptions, session: Session) -> ProfileResult:
    plan, folder, view = session.plan, session.folder, session.view
    heading: Heading | None = None
    arms: list[ProfiledArm] = []

    def remove_streams(employed: RunningWorkers) -> None:
        # A worker opens its stream before it gets its first command; a profile writes no rows to it.
        for streams in (folder.results, folder.settled):
            shutil.rmtree(streams, ignore_errors=True)

    with employ(session, remove_streams) as employed:
        heading = _write_heading(options, session, employed.start())
        profiler = Profiler(plan, employed.workers, options.calls, set(session.fitting.slow_starts), TIMEOUT_HINT)
        for case in plan.cases:
            for target in plan.targets:
                view.preparing(str(target), f"profiling {case.label}")
                arms.append(profiler.profile(case, target, len(arms)))
                _write_arm(arms[-1], folder)
                reason = f": {arms[-1].reason}" if arms[-1].reason else ""
                view.say(f"{target} {arms[-1].outcome} {case.label}{reason}")
    error = employed.error
    if error and (heading is None or not any(arm.outcome == "profiled" for arm in arms)):
        raise error
    assert heading is not None
    error = error or find_error(arms, session.failures, read_endings(folder).broken)
    return ProfileResult(heading=heading, arms=tuple(arms), path=folder.path, error=error)


def _write_heading(options: ProfileOptions, run: Session, ready: dict[Target, Ready]) -> Heading:
    """Write and return what is known before the first profile."""
    plan, folder = run.plan, run.folder
    heading = Heading(
        run=plan.run,
        created=plan.created,
        engine=next(iter(run.environments.values())).facts.kind,
        device=plan.device,
        host=folder.read_manifest().host,
        targets=plan.targets,
        cases=plan.cases,
        calls=options.calls,
        seed=plan.seed,
        top=options.top,
        pythons={target: str(answer.facts.get("python")) for target, answer in ready.items()},
    )
    _write(folder.path / PROFILE_FILE, formats.PROFILE.stamp(HEADING.dump_json(heading, indent=1)) + b"\n")
    return heading


def _write_arm(arm: ProfiledArm, folder: RunFolder) -> None:
    """Write the arm's files: all that is known about it, and its stacks for flame graphs."""
    stem_path = folder.path / "profiles" / stem(arm.case, arm.target)
    _write(Path(f"{stem_path}.json"), formats.PROFILE.stamp(ARM.dump_json(arm, indent=1)) + b"\n")
    if arm.profile:
        stacks = arm.profile.stacks
        _write(Path(f"{stem_path}.collapsed.txt"), collapse(stacks).encode())
        _write(Path(f"{stem_path}.speedscope.json"), strict_json.dump(speedscope(arm, stacks)).encode() + b"\n")


def _write(path: Path, data: bytes) -> None:
    """Write a file as a whole: a profile that is killed can be read as far as it went."""
    with files.writing(path, "the profiles that were written before are kept"):
        files.write_atomically(path, data)
