"""More rounds for a run that has ended: `tfcompare run --resume RUN`."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from orchestrator import catalog
from orchestrator.catalog import changed, program
from orchestrator.catalog.gpu_support import GpuSupport
from orchestrator.catalog.version import FlavourName, Version
from orchestrator.engines import ENGINES, Engine, Environment
from orchestrator.engines.remains import sweep
from orchestrator.errors import EnvironmentFailed, NothingSelected, UsageError
from orchestrator.machine.host import host_facts, is_here
from orchestrator.machine.occupied import occupy
from orchestrator.measure.capacity import OpenAtOnce, open_at_once, read_capacity
from orchestrator.measure.outline import note_too_few
from orchestrator.measure.round_range import Enough, RoundRange
from orchestrator.measure.run import Done, measure_rounds
from orchestrator.measure.session import (
    Session,
    assign_environments,
    find_revisions,
    find_workloads,
    make_environments,
    make_layers,
    record_lost,
)
from orchestrator.model import (
    ArmKey,
    Case,
    Extended,
    Manifest,
    Plan,
    Target,
)
from orchestrator.options import EngineOptions
from orchestrator.plan import gpus
from orchestrator.results.evaluation import judge_run
from orchestrator.results.exit_error import join_failures
from orchestrator.results.more_rounds import ResumeOptions, check_sources, plan_extension
from orchestrator.results.past import (
    Past,
    Progress,
    beyond,
    choose_cases,
    describe_deaths,
    describe_nothing_open,
    find_open_arms,
    read_past,
)
from orchestrator.results.replicates import load_replicates
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.sealed import read_request, require_seal
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.view import View


@dataclass(frozen=True, kw_only=True)
class PlannedRounds:
    """The rounds with which a run continues: they are planned, and have not begun."""

    # This session has no environments yet.
    session: Session
    engine: Engine
    past: Past
    cases: tuple[Case, ...]
    undecided: frozenset[ArmKey]
    ahead: Extended
    # These versions of the run have an environment.
    versions: tuple[Version, ...]


@contextmanager
def plan_rounds(options: ResumeOptions, view: View) -> Iterator[PlannedRounds]:
    """Check that a run can be continued, and yield its next rounds while its folder is locked."""
    folder = RunFolder.open(options.run, unprepared=True)
    if folder.fleet.is_file():
        raise UsageError(f"{options.run} was measured by a fleet, which can measure what is missing: add --on FLEET")
    if folder.parts:
        raise UsageError(f"{options.run} is put together from other runs: continue these, and merge them again")
    with ExitStack() as held:
        held.enter_context(folder.hold())
        held.enter_context(occupy(alone=False))
        plan, manifest = read_request(folder)
        check_sources(plan, manifest, folder, options.own_workloads)
        _require_same_machine(manifest, view)
        require_seal(folder, plan, manifest)
        past, undecided = Past(Progress(), 0), frozenset(arm.key for arm in plan.arms())
        if folder.is_prepared:
            written = load_replicates(folder.worker_output.streams(), plan.run).replicates
            past = beyond(read_past(plan, tuple(folder.entries())), written, plan)
            undecided = find_open_arms(judge_run(folder), past)
        cases = tuple(choose_cases(plan.cases, undecided))
        if not cases:
            raise NothingSelected(describe_nothing_open(options.run, past))
        for line in describe_deaths(past):
            view.say(line)
        changed.provide_targets(plan.definitions, view, _device(plan))
        by_name = versions_of(plan)
        versions = tuple(
            by_name[target.name] for target in plan.targets if target.name in by_name and not target.control
        )
        fitting = gpus.find_gpus_again(plan.gpus, list(versions))
        # The run continues with the variables that it began with.
        inherited = tuple(manifest.variables.items())
        engine = _make_engine(replace(options.environments, variables=inherited), plan, fitting)
        held.callback(engine.close)
        yield PlannedRounds(
            session=Session(plan, {}, folder, fitting=fitting, held=held),
            engine=engine,
            past=past,
            cases=cases,
            undecided=undecided,
            ahead=plan_extension(options, plan, past),
            versions=tuple(
                version
                for version in versions
                if not folder.is_prepared or Target(version.name) in manifest.environments
            ),
        )


def versions_of(plan: Plan) -> dict[str, Version]:
    """Return the versions that the targets of a plan may refer to, by name."""
    return {version.name: version for version in catalog.all_versions()} | changed.by_name(
        plan.definitions, _device(plan)
    )


def _device(plan: Plan) -> FlavourName:
    return "gpu" if plan.device == "gpu" else "cpu"


def add_rounds(options: ResumeOptions, view: View, enough: Enough | None = None) -> Done:
    with plan_rounds(options, view) as more:
        folder, plan, ahead = more.session.folder, more.session.plan, more.ahead
        view.say(outline_more_rounds(more))
        view.say(f"engine: {more.engine.check()}")
        sweep(more.engine, view)
        manifest = None if folder.is_prepared else read_request(folder)[1]
        environments, failures = _remake_environments(folder, plan, more.engine, view)
        if manifest:
            facts = {target: environment.facts for target, environment in environments.items()}
            folder.write_plan(plan)
            folder.write_manifest(replace(manifest, environments=facts))
        folder.record(ahead)
        record_lost(failures, folder)
        environments = {target: made for target, made in environments.items() if target not in more.past.unable}
        own = find_workloads(plan, folder, more.session.held)
        named = {case.workload for case in plan.cases}
        available = program.find_measurable(plan.program, plan.requirements, own)
        workloads = [workload for name, workload in available.items() if name in named]
        session = replace(
            more.session,
            environments=environments,
            own_workloads=own,
            revisions=find_revisions(plan, folder, more.session.held),
            failures=tuple(failures.values()),
            layers=make_layers(workloads, environments, options.environments, view),
            view=view,
        )
        rounds = RoundRange(
            cases=more.cases,
            looks=ahead.looks,
            budget_s=ahead.budget_s,
            seed=ahead.seed,
            first_round=ahead.first_round,
            keep_going=options.keep_going,
            undecided=more.undecided,
            enough=enough,
        )
        return measure_rounds(session, rounds, more.past.progress)


def outline_more_rounds(more: PlannedRounds) -> str:
    ahead = more.ahead
    last, cases = ahead.looks[-1], len(more.cases)
    text = f"more: rounds {ahead.first_round} to {last} for {format_count(cases, 'case')} without a verdict"
    text += note_too_few(ahead.looks)
    if ahead.exploratory:
        alpha = more.session.plan.alpha
        text += f"; the allowed error of {alpha:.0%} is already spent, so these rounds are exploratory"
    return f"{text}; {find_open_of_more(more)}"


def find_open_of_more(more: PlannedRounds) -> OpenAtOnce:
    return open_at_once(more.session.plan, more.cases, read_capacity(more.session.plan))


def _require_same_machine(manifest: Manifest, view: View) -> None:
    if not is_here(manifest.host):
        raise UsageError(
            f"the run was measured on another machine ({manifest.host.get('cpu')}): it can be continued only there; "
            "start a new run here"
        )
    if manifest.host.get("boot") != host_facts()["boot"]:
        view.say("warning: this machine has been restarted since the run; ratios are still computed within each round")


def _make_engine(options: EngineOptions, plan: Plan, fitting: GpuSupport) -> Engine:
    """Make the run's engine again, with the limits and the GPUs of its plan."""
    if plan.engine not in ENGINES:
        raise UsageError(
            f"{plan.run} was measured on the engine {plan.engine!r}, which this version of tfcompare does not have"
        )
    limits = replace(options, cpus=plan.cpus, memory_mb=plan.memory_mb, runtime=plan.runtime)
    return ENGINES[plan.engine].make(
        replace(limits, gpu=plan.device == "gpu", gpus=plan.gpus, chosen_gpus=fitting.gpus)
    )


def _remake_environments(
    folder: RunFolder, plan: Plan, engine: Engine, view: View
) -> tuple[dict[Target, Environment], dict[str, EnvironmentFailed]]:
    """Make the run's environments ready again.

    An environment that has changed is left out: it must not continue under the old name.
    """
    by_name = versions_of(plan)
    known = folder.read_manifest().environments if folder.is_prepared else {}
    ready = [version for version in plan.targets if version in known or not folder.is_prepared]
    measured = [version.name for version in ready if not version.control]
    wanted = [by_name[name] for name in measured if name in by_name]
    environments, failures = make_environments(tuple(wanted), engine, folder, view)
    for name in measured:
        if name not in by_name:
            failures[name] = EnvironmentFailed("left out because it is no longer in the table of versions", target=name)
    for version in list(environments):
        now = environments[version].facts.identity
        was = known[Target(version)].identity if Target(version) in known else now
        if was != now:
            del environments[version]
            failures[version] = EnvironmentFailed(
                f"its environment was {was} and is {now}", "start a new run", target=version
            )
    messages = join_failures(failures.values())
    if not environments:
        raise EnvironmentFailed("\n".join(["no version could be made ready:", *messages]))
    for message in messages:
        view.say(f"warning: {message}")
    return assign_environments(environments, plan), failures
