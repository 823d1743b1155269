"""The course of a profile: where the time of each case goes in each version. Nothing here is measured or judged."""

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from orchestrator import files, formats
from orchestrator.engines.worker.client import Died, Ready, Refused, WorkerDied
from orchestrator.errors import UsageError
from orchestrator.measure.session import (
    Session,
    make_manifest,
    open_session,
    pin_workloads,
    prepare_environments,
)
from orchestrator.measure.starting import SLOW_START_TIMEOUT_S
from orchestrator.measure.workers import Employed, Workers, employ
from orchestrator.model import Case, Plan, Target
from orchestrator.model.profile import Profile
from orchestrator.options import PROFILED_CALLS, SHOWN_FUNCTIONS
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import PlannedRun, RunOptions
from orchestrator.profiling.flamegraph import collapse, speedscope
from orchestrator.profiling.layers import LayerOutput
from orchestrator.profiling.model import Heading, Profiled, ProfiledArm, stem
from orchestrator.profiling.stored import ARM, HEADING, PROFILE_FILE
from orchestrator.results.endings import read_endings
from orchestrator.results.exit_error import find_error
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal import strict_json
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.view import View

# With fewer calls, functions called once per step look like functions called once or twice.
FEWEST_CALLS = 3

PROFILE = TypeAdapter(Profile)
LAYERS = TypeAdapter(dict[Literal["layers"], tuple[LayerOutput, ...]])


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """The options given on the command line: those of a run that concern a profile, and those of the profile itself."""

    run: RunOptions
    # Without any, layers are compared.
    calls: int = PROFILED_CALLS
    top: int = SHOWN_FUNCTIONS


def plan_profile(options: ProfileOptions, view: View) -> PlannedRun:
    """Validate the options and return the planned run.

    Of it, only what starts workers is used: there are no rounds, and nothing is judged.
    """
    if not options.run.versions:
        raise UsageError("--versions names no version; e.g. --versions 1.14,2.0")
    if 0 < options.calls < FEWEST_CALLS:
        raise UsageError(f"--calls {options.calls}: a profile takes at least {FEWEST_CALLS} calls")
    return plan_run(options.run, view, fewest=1)


def profile(options: ProfileOptions, view: View) -> Profiled:
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
        session.folder.write_manifest(make_manifest(opened.planned, session.environments))
        return _profile(options, session)


def _profile(options: ProfileOptions, session: Session) -> Profiled:
    plan, folder, view = session.plan, session.folder, session.view
    heading: Heading | None = None
    arms: list[ProfiledArm] = []

    def remove_streams(employed: Employed) -> None:
        # A worker opens its stream before it gets its first command; a profile writes no rows to it.
        for streams in (folder.results, folder.settled):
            shutil.rmtree(streams, ignore_errors=True)

    with employ(session, remove_streams) as employed:
        heading = _write_heading(options, session, employed.start())
        profiler = Profiler(plan, employed.workers, options.calls, set(session.fitting.slow_starts))
        for case in plan.cases:
            for target in plan.targets:
                view.preparing(str(target), f"profiling {case.label}")
                arms.append(profiler.profile(case, target, len(arms)))
                _keep(arms[-1], folder)
                reason = f": {arms[-1].reason}" if arms[-1].reason else ""
                view.say(f"{target} {arms[-1].outcome} {case.label}{reason}")
    error = employed.error
    if error and (heading is None or not any(arm.outcome == "profiled" for arm in arms)):
        raise error
    assert heading is not None
    error = error or find_error(arms, session.failures, read_endings(folder).broken)
    return Profiled(heading=heading, arms=tuple(arms), path=folder.path, error=error)


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


@dataclass(frozen=True)
class Profiler:
    plan: Plan
    workers: Workers
    calls: int
    # Numbers: the driver compiles the GPU code of these versions in their first replicate.
    cold: set[str]

    def profile(self, case: Case, target: Target, number: int) -> ProfiledArm:
        arm = self._profile(case, target, number)
        # A refused case has compiled nothing. A deadline that was missed once will be missed again.
        if arm.outcome != "refused":
            self.cold.discard(target.name)
        return arm

    def _profile(self, case: Case, target: Target, number: int) -> ProfiledArm:
        died = partial(ProfiledArm, case=case, target=target, outcome="died")
        worker = self.workers.acquire(target)
        if worker is None:
            return died(reason=self.workers.describe_loss(target))
        plan = self.plan
        timeout_s = max(plan.timeout_s, SLOW_START_TIMEOUT_S) if target.name in self.cold else plan.timeout_s
        try:
            answer = worker.profile(case, replicate=number, calls=self.calls, seed=plan.seed, timeout_s=timeout_s)
        except WorkerDied as death:
            self.workers.restart(target)
            return died(reason=f"its worker died: {death}")
        if isinstance(answer, Refused):
            return ProfiledArm(case=case, target=target, outcome="refused", reason=answer.reason)
        if isinstance(answer, Died):
            hint = " (--timeout allows longer, --calls fewer)" if answer.how == "timeout" else ""
            return died(reason=answer.reason + hint, log=answer.log)
        profiled = partial(ProfiledArm, case=case, target=target, outcome="profiled")
        try:
            if self.calls:
                return profiled(profile=PROFILE.validate_python(answer))
            return profiled(layers=LAYERS.validate_python(answer)["layers"])
        except ValidationError as error:
            return died(reason=f"its worker sent no profile: {error.errors()[0]['msg']}")


def _keep(arm: ProfiledArm, folder: RunFolder) -> None:
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
