"""A run in progress: the engine and the run folder, then the workloads, the environments and the frozen plan."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator import contract
from orchestrator.bundled import find_own_number
from orchestrator.catalog import changed, pinned, program
from orchestrator.catalog import workloads as suites
from orchestrator.catalog.gpu_support import NO_GPUS, GpuSupport
from orchestrator.catalog.imports import imports_keras_alone
from orchestrator.catalog.revisions import copy_revision, find_commits, name_folder
from orchestrator.catalog.version import Version
from orchestrator.engines import ENGINES, Engine, Environment
from orchestrator.engines.choose import choose_engine, find_candidates
from orchestrator.engines.cuda_libraries import KEEPS_XLA_CODE, keeps_xla_code
from orchestrator.engines.layers import Layer, make_layer
from orchestrator.engines.remains import sweep
from orchestrator.engines.scratch import Scratch
from orchestrator.errors import EnvironmentFailed, Interrupted
from orchestrator.machine.host import host_facts
from orchestrator.measure import alternative
from orchestrator.measure.failures import classify_environment
from orchestrator.measure.prepare import ReadyEnvironment, make_ready
from orchestrator.model import LargeFile, Lost, Manifest, Plan, Target, Workload
from orchestrator.options import EngineOptions
from orchestrator.plan.request import PlannedRun
from orchestrator.results import exit_error
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.sealed import seal_run
from orchestrator.terminal.view import View


@dataclass(frozen=True)
class Session:
    """A run in progress: its plan, its locked folder and, once they are ready, what its workers need.

    The plan is final when the environments are ready, because the engine is not known for certain before.
    """

    plan: Plan
    environments: Mapping[Target, Environment]
    folder: RunFolder
    own_workloads: Path | None = None
    # Targets with a revision of the user's own code load it from these folders.
    revisions: Mapping[str, Path] = field(default_factory=dict)
    fitting: GpuSupport = NO_GPUS
    failures: tuple[EnvironmentFailed, ...] = ()
    # A layer has what a workload requires beyond a target's own packages; the keys are targets and workloads.
    layers: Mapping[Target, Mapping[str, Layer]] = field(default_factory=dict)
    view: View = field(default_factory=View)
    # These resources are released at the end of the run.
    held: ExitStack = field(default_factory=ExitStack)


@dataclass(frozen=True, kw_only=True)
class NewSession(Session):
    """A run that begins, with the request that its plan is made from."""

    planned: PlannedRun
    # A fleet has its engines on other machines.
    engine: Engine | None

    def begin(self) -> None:
        """Write and seal what is measured, before anything is measured."""
        manifest = make_manifest(self.planned, {})
        seal_run(self.folder, self.plan, manifest)
        self.folder.write_begun(self.plan, manifest)


@contextmanager
def open_session(planned: PlannedRun, path: Path, view: View, *, of_fleet: str = "") -> Iterator[NewSession]:
    """Choose the engine, unless `of_fleet` names that of a fleet; then create and lock the run folder."""
    options = planned.options
    with ExitStack() as held:
        name, engine = of_fleet, None
        if not name:
            name, engine = choose_engine(options.engine, options.isolation, options.environments, view)
            held.callback(engine.close)
            sweep(engine, view)
        yield NewSession(
            plan=planned.freeze(name),
            environments={},
            folder=held.enter_context(RunFolder.begin(options.out or path, options.command)),
            fitting=planned.fitting,
            view=view,
            held=held,
            planned=planned,
            engine=engine,
        )


def pin_workloads(session: NewSession) -> NewSession:
    """Copy the user's own workloads into the run folder, if any of them is measured, and use the copies."""
    planned, folder = session.planned, session.folder
    own = planned.options.own_workloads
    if own is None or all(workload.builtin for workload in planned.workloads.values()):
        return session
    large = pinned.pin(own, folder.workloads, planned.options.outside)
    commits = dict.fromkeys(find_commits(session.plan.definitions).values())
    copies = [copy_revision(own, commit, folder.workloads) for commit in commits]
    for name, workload in planned.workloads.items():
        # A program is alone in its folder.
        inner = "" if planned.options.program else f"{name}/"
        data = {f"{inner}{key}": place for key, place in workload.data.items()}
        large += pinned.place_data(data, folder.workloads)
        for copy in copies:
            pinned.place_data(data, copy)
    for note in pinned.describe_large_files(large):
        session.view.say(f"note: {note}")
    mine = {
        name: replace(workload, path=folder.workloads / workload.path.relative_to(own))
        for name, workload in planned.workloads.items()
        if not workload.builtin
    }
    planned = replace(planned, workloads=planned.workloads | mine)
    return replace(session, planned=planned, plan=planned.freeze(session.plan.engine, large))


def prepare_environments(session: NewSession, *, enough: Callable[[Collection[str]], bool] = bool) -> Session:
    """Make the versions ready and freeze the plan; `enough` says whether those that are ready can be measured.

    Failures are journaled and reported.
    """
    planned, folder, view = session.planned, session.folder, session.view
    engine_name, environments, failures = _make_on_first_able_engine(session)
    if failures and not enough(environments):
        raise alternative.make_error(planned.options, planned.selection.versions, failures)
    for message in exit_error.join_failures(failures.values()):
        view.say(f"warning: {message}")
    record_lost(failures, folder)
    plan = planned.freeze(engine_name, session.plan.large)
    of_targets = assign_environments(environments, plan)
    return replace(
        session,
        plan=plan,
        environments=of_targets,
        own_workloads=find_workloads(plan, folder, session.held),
        revisions=find_revisions(plan, folder, session.held),
        failures=tuple(failures.values()),
        layers=make_layers(planned.workloads.values(), of_targets, planned.options.environments, view),
    )


def make_layers(
    workloads: Iterable[Workload],
    environments: Mapping[Target, Environment],
    options: EngineOptions,
    view: View,
) -> dict[Target, dict[str, Layer]]:
    """Make what workloads require beyond each target's packages; if it is not available, these arms are refused."""
    layers: dict[Target, dict[str, Layer]] = {}
    for workload in workloads:
        for target, environment in environments.items() if workload.requirements else ():
            layer = make_layer(workload.requirements, environment.facts, options, environment.uv)
            layers.setdefault(target, {})[workload.name] = layer
            told = layer.refusal or f"has what {workload.name} requires"
            view.say(f"{target}: {told}")
    return layers


def _make_on_first_able_engine(
    session: NewSession,
) -> tuple[str, dict[str, Environment], dict[str, EnvironmentFailed]]:
    """Make the versions ready on the chosen engine, or on the next candidate if it can make none of them.

    There are other candidates only if the choice of the engine was left open. Returns the name of the engine, the
    environments, and the failures.
    """
    options, versions = session.planned.options, session.planned.selection.versions
    name, engine, folder, view = session.plan.engine, session.engine, session.folder, session.view
    assert engine
    environments, failures = make_environments(versions, engine, folder, view)
    candidates = find_candidates(options.engine, options.isolation, options.environments)
    for other in candidates[candidates.index(name) + 1 :]:
        if environments:
            break
        first = next(iter(failures.values()))
        view.say(f"no image could be made ({first}); taking {ENGINES[other].title} instead")
        name, engine = other, ENGINES[other].make(options.environments)
        session.held.callback(engine.close)
        environments, failures = make_environments(versions, engine, folder, view)
    return name, environments, failures


def make_environments(
    versions: tuple[Version, ...], engine: Engine, folder: RunFolder, view: View
) -> tuple[dict[str, Environment], dict[str, EnvironmentFailed]]:
    """Make every version ready on this engine, side by side, and return the environments and the failures.

    A version that cannot be made ready affects only itself.
    """
    try:
        results = make_ready(versions, engine, folder.logs, view)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted before anything was measured; environments that are done are kept") from stop
    ready = {number: result.environment for number, result in results.items() if isinstance(result, ReadyEnvironment)}
    return ready, {number: result for number, result in results.items() if isinstance(result, EnvironmentFailed)}


def record_lost(failures: Mapping[str, EnvironmentFailed], folder: RunFolder) -> None:
    """Journal the versions that have no environment."""
    for number, error in failures.items():
        failure = classify_environment(error.headline)
        folder.record(
            Lost(
                target=Target(number),
                stage="environment",
                reason=failure.reason,
                failure=failure.kind,
                external=failure.external,
            )
        )


def assign_environments(environments: Mapping[str, Environment], plan: Plan) -> dict[Target, Environment]:
    """Return the environment of each target, given those by version; the control arm takes the baseline's."""
    controls = [version for version in plan.targets if version.control and version.name in environments]
    own = {Target(number): environment for number, environment in environments.items()}
    return own | {target: environments[target.name] for target in controls}


def find_workloads(plan: Plan, folder: RunFolder, held: ExitStack) -> Path | None:
    """Return the folder from which workers load the user's own workloads."""
    if not folder.workloads.is_dir():
        return None
    if ENGINES[plan.engine].detached or not plan.large:
        return folder.workloads
    return pinned.stage_copy(folder.workloads, plan.large, held.enter_context(Scratch()).path)


def find_revisions(plan: Plan, folder: RunFolder, held: ExitStack) -> dict[str, Path]:
    """Return the folders from which targets with a revision of the user's own code load it, by their names.

    Of what is not copied, such a folder has the data alone.
    """
    kept = {name: folder.workloads / name_folder(commit) for name, commit in find_commits(plan.definitions).items()}
    data = list_data(plan)
    if ENGINES[plan.engine].detached or not data:
        return kept
    return {name: pinned.stage_copy(copy, data, held.enter_context(Scratch()).path) for name, copy in kept.items()}


def list_data(plan: Plan) -> tuple[LargeFile, ...]:
    """Return the data of a run, which all revisions of the user's code have in common."""
    return tuple(file for file in plan.large if pinned.find_data_name(file))


def note_variables(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Say which variables of the caller reached every target."""
    named = [f"{name}={value}" for name, value in variables.items()]
    return (f"variables of your shell reached every target: {', '.join(named)}",) if named else ()


def note_xla_code(environments: Mapping[Target, Environment], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Say which targets cannot keep the code that XLA compiles; `variables` of the caller reached every target."""
    unable = [
        str(target)
        for target, each in environments.items()
        if not keeps_xla_code(each.facts, {**variables, **each.facts.variables})
    ]
    advice = f"it keeps its code from {KEEPS_XLA_CODE} on, unless TF_XLA_FLAGS names a file"
    return (f"XLA compiles in every replicate of {', '.join(unable)}: {advice}",) if unable else ()


def note_keras(planned: PlannedRun) -> tuple[str, ...]:
    """Say which of the user's workloads import the package keras, which `keras=2` does not change."""
    targets = [
        version.name
        for version in planned.selection.versions
        if version.changes and changed.LEGACY in version.changes.variables
    ]
    own = [workload for workload in planned.workloads.values() if targets and not workload.builtin]
    script = program.find_script(planned.options.program) if planned.options.program else None
    return tuple(
        f"{workload.name} imports keras, which is Keras 3 in {', '.join(targets)} as well: keras=2 changes tf.keras "
        "alone. Use tf.keras, or import tf_keras where it exists"
        for workload in own
        if imports_keras_alone(workload.path, script)
    )


def judge_notes(notes: Iterable[str], environments: Mapping[Target, Environment]) -> Iterator[str]:
    """Yield notes on how versions fit the GPUs; what an image was built for is known once it was looked into."""
    judged = {
        str(target): facts.details for target, each in environments.items() if "fit" in (facts := each.facts).details
    }
    for note in notes:
        name = next((name for name in judged if note.startswith(f"{name} on ")), "")
        if not name:
            yield note
        elif judged[name]["fit"] != "fine":
            by_force = "MEASURED BY FORCE: " if judged[name]["fit"] == "unsupported" else ""
            end = ". Believe no figure of it" if by_force else ""
            yield f"{by_force}{name}: {judged[name]['fit_reason']}{end}"


def make_manifest(
    planned: PlannedRun, environments: Mapping[Target, Environment], large: Sequence[LargeFile] = ()
) -> Manifest:
    hashed = pinned.hash_all_data(large) if planned.options.hash_data else {}
    notes = judge_notes(planned.fitting.notes, environments)
    variables = dict(planned.options.environments.variables)
    xla = note_xla_code(environments, variables) if planned.options.environments.keeps_xla_code else ()
    return Manifest(
        tool=find_own_number(),
        contract=contract.FINGERPRINT,
        command=planned.options.command,
        host=host_facts(),
        sources=suites.source_hashes(list(planned.workloads.values())) | hashed,
        environments={target: environment.facts for target, environment in environments.items()},
        workers={},
        notes=(*notes, *xla, *note_keras(planned), *note_variables(variables)),
        variables=variables,
        hosts=(),
    )
