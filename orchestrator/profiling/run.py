"""The course of a profile: where the time of each case goes in each version. Nothing here is measured or judged."""

import json
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchestrator.catalog.lock_on_demand import provide
from orchestrator.engines import Environment
from orchestrator.engines.choose import choose_engine
from orchestrator.engines.worker.client import Died, Ready, Refused, WorkerDied
from orchestrator.errors import (
    ArmsDied,
    ContractBroken,
    EngineUnavailable,
    EnvironmentFailed,
    Interrupted,
    NothingSelected,
    TfCompareError,
    UsageError,
)
from orchestrator.measure.prepare_run import pin_workloads, prepare_somewhere, workload_folder
from orchestrator.measure.run import make_manifest
from orchestrator.measure.workers import SLOW_START_TIMEOUT_S, Crew
from orchestrator.model import Case, Lost, Plan
from orchestrator.plan.gpus import fit
from orchestrator.plan.request import Options, PlannedRun, ask
from orchestrator.profiling.flamegraph import collapsed, speedscope
from orchestrator.profiling.model import Heading, Profile, Profiled, ProfiledArm, stem
from orchestrator.results.rundir import RunDir, refuse_strangers
from orchestrator.terminal.progress import View

CALLS, TOP = 20, 15
# Fewer could not tell what is called once a step from what is called once or twice.
FEWEST_CALLS = 3
PROFILE_FILE = "profile.json"

HEADING = TypeAdapter(Heading)
PROFILE = TypeAdapter(Profile)
ARM = TypeAdapter(ProfiledArm)


@dataclass(frozen=True, kw_only=True)
class ProfileOptions:
    """The options given on the command line: those of a run that concern a profile, and those of the profile itself."""

    run: Options
    calls: int = CALLS
    top: int = TOP


def asked_of(options: ProfileOptions) -> PlannedRun:
    """Validate the options and return the checked request.

    Every mistake in the options is found here. Of the plan, only what starts workers is used: there are no rounds, and
    nothing is judged.
    """
    if not options.run.versions:
        raise UsageError("--versions names no version; e.g. --versions 1.14,2.0")
    if options.calls < FEWEST_CALLS:
        raise UsageError(f"--calls {options.calls}: a profile takes at least {FEWEST_CALLS} calls")
    return ask(options.run, fewest=1)


def profile(options: ProfileOptions, view: View) -> Profiled:
    options = replace(options, run=replace(options.run, versions=provide(options.run.versions, view.say)))
    run, asked = fit(options.run, asked_of(options))
    options = replace(options, run=run)
    run = options.run
    name, engine = choose_engine(run.engine, run.isolation, run.environments, view.say)
    with ExitStack() as held:
        held.callback(engine.close)
        directory = make_directory(options.run.out or Path("runs") / f"profile-{asked.plan.run}")
        held.enter_context(directory.hold())
        arms = len(asked.plan.cases) * len(asked.versions)
        view.say(f"plan: {len(asked.plan.cases)} cases x {len(asked.versions)} versions, {arms} profiles")
        for note in asked.fitting.notes:
            view.say(f"note: {note}")
        asked = pin_workloads(asked, options.run.own_workloads, directory, view.say)
        name, environments, failures = prepare_somewhere(
            options.run, asked.versions, name, engine, directory, view, held
        )
        asked = replace(asked, plan=replace(asked.plan, engine=name))
        own = workload_folder(asked.plan, directory, held)
        return _profile(options, asked, environments, list(failures.values()), directory, own, view)


def make_directory(path: Path) -> RunDir:
    """Create a run directory that no report mistakes for a run."""
    directory = RunDir.create(path)
    (directory.path / "plan.json").unlink()
    (directory.path / "profiles").mkdir()
    return directory


def _profile(
    options: ProfileOptions,
    asked: PlannedRun,
    environments: dict[str, Environment],
    failures: list[EnvironmentFailed],
    directory: RunDir,
    own: Path | None,
    view: View,
) -> Profiled:
    """Start the workers, profile, and end the workers whatever happens."""
    plan = asked.plan
    crew = Crew(plan, environments, directory, own, view.say, fitting=asked.fitting)
    heading: Heading | None = None
    arms: list[ProfiledArm] = []
    error: TfCompareError | None = None
    try:
        for version in environments:
            view.preparing(version, "starting its worker")
        heading = _head(options, asked, environments, crew.start_all(), directory)
        # The driver makes the code of these in their first replicate.
        cold = set(asked.fitting.slow_starts)
        for case in plan.cases:
            for version in plan.versions:
                view.preparing(version, f"profiling {case.label}")
                patient = replace(plan, timeout_s=max(plan.timeout_s, SLOW_START_TIMEOUT_S))
                timed = patient if version in cold else plan
                arms.append(_arm(case, version, len(arms), crew, options, timed, directory))
                # A refusal says nothing of the card; a deadline that was missed once will be missed again.
                if arms[-1].outcome != "refused":
                    cold.discard(version)
                _keep(arms[-1], directory)
                reason = f": {arms[-1].reason}" if arms[-1].reason else ""
                view.say(f"{version} {arms[-1].outcome} {case.label}{reason}")
        crew.dismiss()
    except EngineUnavailable as gone:
        error = gone
    except KeyboardInterrupt:
        error = Interrupted("interrupted")
    finally:
        crew.kill()
        # A worker opens its stream before it knows what for; no row has come of it.
        for folder in (directory.results, directory.settled):
            shutil.rmtree(folder, ignore_errors=True)
    if error and (heading is None or not any(arm.profile for arm in arms)):
        raise error
    assert heading is not None
    return Profiled(heading=heading, arms=tuple(arms), path=directory.path, error=error or verdict_on(arms, failures))


def _head(
    options: ProfileOptions,
    asked: PlannedRun,
    environments: dict[str, Environment],
    ready: dict[str, Ready],
    directory: RunDir,
) -> Heading:
    """Write and return what is known before the first profile."""
    plan = asked.plan
    workers = {version: answer.facts for version, answer in ready.items()}
    manifest = replace(make_manifest(options.run, asked, environments), workers=workers)
    heading = Heading(
        run=plan.run,
        created=plan.created,
        engine=next(iter(environments.values())).facts.kind,
        device=plan.device,
        host=manifest.host,
        versions=plan.versions,
        cases=plan.cases,
        calls=options.calls,
        seed=plan.seed,
        top=options.top,
        pythons={version: str(answer.facts.get("python")) for version, answer in ready.items()},
    )
    directory.write_manifest(manifest)
    (directory.path / PROFILE_FILE).write_bytes(HEADING.dump_json(heading, indent=1) + b"\n")
    return heading


def _arm(
    case: Case, version: str, number: int, crew: Crew, options: ProfileOptions, plan: Plan, directory: RunDir
) -> ProfiledArm:
    client = crew.engage(version)
    if client is None:
        lost = [entry for entry in directory.entries() if isinstance(entry, Lost) and entry.version == version]
        reason = "; ".join(f"{entry.stage}: {entry.reason}" for entry in lost[-1:])
        return ProfiledArm(case=case, version=version, outcome="died", reason=reason)
    try:
        answer = client.profile(case, replicate=number, calls=options.calls, seed=plan.seed, timeout_s=plan.timeout_s)
    except WorkerDied as death:
        crew.bury(version)
        return ProfiledArm(case=case, version=version, outcome="died", reason=f"its worker died: {death}")
    if isinstance(answer, Refused):
        return ProfiledArm(case=case, version=version, outcome="refused", reason=answer.reason)
    if isinstance(answer, Died):
        hint = " (--timeout allows longer, --calls fewer)" if answer.how == "timeout" else ""
        return ProfiledArm(case=case, version=version, outcome="died", reason=answer.reason + hint, log=answer.log)
    try:
        found = PROFILE.validate_python(answer)
    except ValidationError as error:
        reason = f"its worker sent no profile: {error.errors()[0]['msg']}"
        return ProfiledArm(case=case, version=version, outcome="died", reason=reason)
    return ProfiledArm(case=case, version=version, outcome="profiled", profile=found)


def _keep(arm: ProfiledArm, directory: RunDir) -> None:
    """Write the arm's files: all that is known about it, and its stacks for flame graphs."""
    named = directory.path / "profiles" / stem(arm.case, arm.version)
    Path(f"{named}.json").write_bytes(ARM.dump_json(arm, indent=1) + b"\n")
    if arm.profile:
        stacks = arm.profile.stacks
        Path(f"{named}.collapsed.txt").write_text(collapsed(stacks))
        Path(f"{named}.speedscope.json").write_text(json.dumps(speedscope(arm, stacks)) + "\n")


def read(path: Path) -> Profiled:
    """Read a profile from its directory."""
    refuse_strangers(path)
    try:
        heading = HEADING.validate_json((path / PROFILE_FILE).read_bytes())
        files = [
            path / "profiles" / f"{stem(case, version)}.json" for case in heading.cases for version in heading.versions
        ]
        arms = tuple(ARM.validate_json(file.read_bytes()) for file in files if file.exists())
    except OSError as error:
        raise UsageError(
            f"{path} holds no profile ({error.strerror}); `tfcompare profile --out DIR` makes one"
        ) from error
    except ValidationError as error:
        raise ContractBroken(f"{path} is not what this tfcompare writes: {error}") from error
    return Profiled(heading=heading, arms=arms, path=path)


def verdict_on(arms: list[ProfiledArm], failures: list[EnvironmentFailed]) -> TfCompareError | None:
    """Return the error, if any, that determines the exit code."""
    if failures:
        return EnvironmentFailed("\n".join(map(str, failures)))
    if died := [arm for arm in arms if arm.outcome == "died"]:
        told = [f"{arm.version} {arm.case.label}: {arm.reason}" for arm in died]
        return ArmsDied(f"{len(told)} of {len(arms)} arms died:\n" + "\n".join(told))
    if all(arm.outcome == "refused" for arm in arms):
        reasons = sorted({arm.reason for arm in arms})
        return NothingSelected("no version can run what was selected:\n" + "\n".join(reasons))
    return None
