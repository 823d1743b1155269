"""The whole course of a search: the question, every step, and the result."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import contract, files
from orchestrator.bisect import state as state_file
from orchestrator.bisect.actions import SearchActions
from orchestrator.bisect.candidates import add_nightlies, is_nightly_number
from orchestrator.bisect.ends import settle_ends
from orchestrator.bisect.findings import (
    compare_sizes,
    extract_findings,
    find_end_error,
    find_timed_out_versions,
    order_versions,
    version_of,
)
from orchestrator.bisect.search import PlannedStep, SearchResult
from orchestrator.bisect.state import Question, SkippedVersion, State, Step
from orchestrator.bisect.wording import announce_step, describe_search_progress
from orchestrator.bundled import find_own_number
from orchestrator.catalog import workloads as suites
from orchestrator.catalog.selectors import select_cases
from orchestrator.engines import Environment
from orchestrator.engines.choose import choose_engine
from orchestrator.errors import (
    ContractBroken,
    EngineUnavailable,
    EnvironmentFailed,
    Interrupted,
    NothingSelected,
    TfCompareError,
    UsageError,
)
from orchestrator.measure import session
from orchestrator.measure.run import Done
from orchestrator.metrics.followed import RESULTS, SIZE, TIME, Followed
from orchestrator.model import Case, Metric, Target
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import PlannedRun, RunOptions, check_judge, suite_of
from orchestrator.results.run_folder import RunFolder, refuse_strangers
from orchestrator.terminal.view import RoundDone, View

# A step gets this many rounds if the usual ones decide nothing; they are judged only once.
MORE_ROUNDS = 40
# Such a step gets this multiple of the budget, and of --rounds if it was given.
MORE_TIMES = 2
# A step usually ends once its verdicts are decided. This limit is for cases that take minutes per round.
BUDGET_S = 600.0


@dataclass(frozen=True)
class SearchOutcome:
    """A search as far as it has gone, and the error that determines its exit code."""

    state: State
    result: SearchResult
    path: Path
    error: TfCompareError | None


def begin(
    question: Question, folder: Path | None, view: View, actions: SearchActions | None = None
) -> tuple[Path, State]:
    """Check the question, and return the folder and the state of its search.

    If the folder already holds this search, it is resumed.
    """
    actions = actions or SearchActions()
    if question.metric == SIZE and actions.obstacle:
        raise UsageError("--metric size compares the environments of this machine; leave --on out")
    question = replace(question, run=replace(question.run, command=()))
    question, candidates = settle_ends(question, actions, view)
    case = select_one_case(question.run)
    # The full name selects one case, whatever the suite holds.
    options = add_metric(resolve_paths(replace(question.run, selected=(case.label,))), question.metric)
    check_judge(options.judge, gpu=options.environments.gpu, metrics=options.metrics or ())
    question = replace(question, run=options)
    fresh = State(
        created=datetime.now(UTC).replace(microsecond=0),
        tool=find_own_number(),
        contract=contract.FINGERPRINT,
        host=actions.host(),
        sources=sources(question.run, case),
        question=question,
        case=case,
        candidates=candidates,
    )
    folder = folder or Path("runs") / f"bisect-{fresh.created:%Y%m%d-%H%M%S}"
    if state_file.exists(folder):
        return folder, resume_search(folder, question, question.run.environments.index_url, actions)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty, and holds no search to continue; choose another --output")
    return folder, fresh


def select_one_case(options: RunOptions) -> Case:
    workloads = suites.all_workloads(options.own_workloads)
    cases = select_cases(options.selected, suite_of(options, workloads).cases, workloads)
    if len(cases) != 1:
        listed = "\n".join(f"  --case '{case.label}'" for case in cases[:5]) + ("\n  ..." if len(cases) > 5 else "")
        raise UsageError(f"a search is about one case, and the selection has {len(cases)}; name one of them:\n{listed}")
    return cases[0]


def resolve_paths(options: RunOptions) -> RunOptions:
    """Return the options with absolute paths, because a search may be continued from another folder."""
    environments, own = options.environments, options.own_workloads
    return replace(
        options,
        own_workloads=own and own.resolve(),
        environments=replace(
            environments,
            wheelhouse=environments.wheelhouse and environments.wheelhouse.resolve(),
            ca_bundle=environments.ca_bundle and environments.ca_bundle.resolve(),
        ),
    )


def add_metric(options: RunOptions, metric: Followed) -> RunOptions:
    """Return the options with a metric to decide about, or the comparison of results, added to the times."""
    if metric == TIME:
        return replace(options, metrics=())
    decided: tuple[Metric, ...] = () if metric == RESULTS else (metric,)
    return replace(options, metrics=(metric,), decided=decided)


def sources(options: RunOptions, case: Case) -> dict[str, str]:
    return suites.source_hashes([suites.all_workloads(options.own_workloads)[case.workload]])


def resume_search(
    folder: Path, question: Question | None = None, index_url: str | None = None, actions: SearchActions | None = None
) -> State:
    """Return the state of a search to resume, unless something that it depends on has changed.

    The index's address is not stored and has to be given again.
    """
    refuse_strangers(folder)
    state = state_file.read_state(folder)
    state_file.require_search_seal(folder, state)
    if question is not None and question.with_index(None) != state.question:
        raise UsageError(f"{folder} holds a search with different options; --resume {folder} continues it")
    if state.contract != contract.FINGERPRINT:
        raise UsageError(
            f"{folder} was measured under contract {state.contract}, this tfcompare has {contract.FINGERPRINT}; "
            f"use tfcompare {state.tool}, or start a new search"
        )
    if state.sources != sources(state.question.run, state.case):
        raise UsageError(
            f"the workload has changed since the search in {folder} began; old and new times cannot be compared, so "
            "start a new search"
        )
    if not (actions or SearchActions()).is_here(state.host):
        raise UsageError(
            f"{folder} was measured on another machine ({state.host.get('cpu')}): continue it there, or "
            "start a new search here"
        )
    return state_file.retry_skipped(replace(state, question=state.question.with_index(index_url)))


def run_search(
    folder: Path, state: State, view: View, most_steps: int | None = None, actions: SearchActions | None = None
) -> SearchOutcome:
    """Measure and save one step after another until the version that made most of the change is found.

    If `most_steps` is given, that many steps are measured, as long as one can still be informative.
    """
    actions = actions or SearchActions()
    begun = len(state.measured)
    if not state.search_result.wanted and (state.deepened or not _deep(state)):
        return _finish(folder, state)
    with files.writing(f"the folder {folder}", "choose another --output"):
        for part in ("steps", "logs"):
            (folder / part).mkdir(parents=True, exist_ok=True)
    with RunFolder(folder).hold():
        state_file.write_state(folder, state)
        while most_steps is None or len(state.measured) - begun < most_steps:
            result = state.search_result
            if result.wanted and not (most_steps is None and result.main and not state.question.every):
                with _add_resume_hint(folder, state):
                    state = _step(folder, state, result.wanted[0], view, actions)
                if so_far := describe_search_progress(state):
                    view.say(so_far)
            elif _deep(state) and not state.deepened:
                state = _add_nightlies(state, result, view, actions)
            else:
                break
            state_file.write_state(folder, state)
        return _finish(folder, state)


@contextmanager
def _add_resume_hint(folder: Path, state: State) -> Iterator[None]:
    """Add the findings so far and the command to resume to an error, since every finished step is kept."""
    try:
        yield
    except (Interrupted, EngineUnavailable, EnvironmentFailed) as error:
        lines = (str(error), describe_search_progress(state), f"continue with: tfcompare bisect --resume {folder}")
        raise type(error)("\n".join(filter(None, lines))) from error


def _deep(state: State) -> bool:
    return state.question.nightlies or any(map(is_nightly_number, (state.question.good, state.question.bad)))


def _add_nightlies(state: State, result: SearchResult, view: View, actions: SearchActions) -> State:
    """Return the state with the nightlies between neighbouring releases that differ."""
    neighbours = [(part.earlier, part.later) for part in result.parts if part.kind == "change"]
    candidates, notes = add_nightlies(state.candidates, neighbours, actions.nightlies() if neighbours else ())
    for note in notes:
        view.say(note)
    if len(candidates) > len(state.candidates):
        view.say(f"{len(candidates) - len(state.candidates)} nightlies are added between the releases that differ")
    return replace(state, candidates=candidates, notes=(*state.notes, *notes), deepened=True)


def _step(folder: Path, state: State, wanted: PlannedStep, view: View, actions: SearchActions) -> State:
    """Return the state after one more step: a run, or a version that cannot be made ready."""
    number = len(state.measured) + 1
    view.say(announce_step(wanted, number))
    options = replace(state.question.run, engine=state.engine or state.question.run.engine)
    begun = time.monotonic()
    if unready := _skip_middle(folder, wanted, options, state, view, actions):
        step = Step(
            kind=wanted.kind,
            versions=wanted.versions,
            run=None,
            seconds=time.monotonic() - begun,
            skipped=(unready,),
        )
        return replace(state, steps=(*state.steps, step))
    if state.question.metric == SIZE:
        sizes, engine = _measure_sizes(folder, wanted, options, state, view, actions)
        findings = compare_sizes(state.case, wanted, sizes, state.question.margin)
        seconds = time.monotonic() - begun
        step = Step(kind=wanted.kind, versions=wanted.versions, run=None, seconds=seconds, findings=findings)
        return replace(state, engine=engine, steps=(*state.steps, step))
    path = find_unused_folder(folder / "steps", number)
    measured_as = _name_targets(folder, state, order_versions(wanted), view, actions)
    done = actions.measure(replace(choose_step_options(options, wanted), versions=measured_as, out=path), view)
    _check_run(done, path, state)
    metric = state.question.metric
    # A timeout is evidence about time only, not about another metric.
    earlier = (RunFolder(folder / step.run) for step in state.steps if step.run)
    late = find_timed_out_versions(RunFolder(done.path), earlier) if metric == TIME else {}
    if wanted.kind == "ends" and (lost := find_end_error(done.evaluation, wanted, late)):
        raise done.error if isinstance(done.error, EnvironmentFailed) else lost
    findings, unmeasured = extract_findings(done.evaluation, wanted, late, metric)
    for skipped in unmeasured:
        view.say(f"{skipped.version} is left out: {skipped.reason}")
    step = Step(
        kind=wanted.kind,
        versions=wanted.versions,
        run=str(done.path.relative_to(folder)) if done.path.is_relative_to(folder) else str(done.path),
        seconds=time.monotonic() - begun,
        findings=findings,
        skipped=unmeasured,
    )
    return replace(state, engine=done.evaluation.plan.engine, steps=(*state.steps, step))


def _measure_sizes(
    folder: Path, wanted: PlannedStep, options: RunOptions, state: State, view: View, actions: SearchActions
) -> tuple[dict[str, int], str]:
    """Make the environments of a step ready; return the disk space of each, and the name of their engine."""
    named = _name_targets(folder, state, wanted.versions, view, actions)
    planned = plan_run(replace(options, versions=named), view)
    name, made, failures = install_planned(planned, RunFolder(folder), view)
    if failures:
        raise next(iter(failures.values()))
    sizes = {version_of(Target(version)): environment.facts.size_bytes for version, environment in made.items()}
    if unknown := [version for version, size in sizes.items() if not size]:
        raise NothingSelected(f"the engine {name} does not state the size of {', '.join(unknown)}")
    return {version: size for version, size in sizes.items() if size}, name


def _skip_middle(
    folder: Path, wanted: PlannedStep, options: RunOptions, state: State, view: View, actions: SearchActions
) -> SkippedVersion | None:
    """Return why the version in the middle cannot be made ready, or None."""
    if len(wanted.versions) < 3:
        return None
    middle = wanted.versions[1]
    obstacle: TfCompareError | None
    try:
        (measured_as,) = _name_targets(folder, state, (middle,), view, actions)
        obstacle = (actions.obstacle or find_obstacle)(options, measured_as, RunFolder(folder), view)
    except EnvironmentFailed as error:
        obstacle = error
    if obstacle is None:
        return None
    view.say(f"{middle} is left out: {obstacle.headline}")
    return SkippedVersion(version=middle, reason=str(obstacle), environment=True)


def _name_targets(
    folder: Path, state: State, versions: tuple[str, ...], view: View, actions: SearchActions
) -> tuple[str, ...]:
    """Return the targets of some candidates; commits are built first."""
    wheels = actions.build(folder, state, versions, view) if state.question.is_over_commits else {}
    return state.question.targets(versions, wheels)


def _check_run(done: Done, path: Path, state: State) -> None:
    """Raise an error if the search cannot continue after this run."""
    if isinstance(done.error, Interrupted | EngineUnavailable | ContractBroken):
        raise done.error
    # A commit does not change.
    measured = done.evaluation.manifest.sources.items()
    sources_of_run = {name: digest for name, digest in measured if not suites.REVISION.fullmatch(name)}
    if sources_of_run and sources_of_run != state.sources:
        raise UsageError(
            f"the workload was changed during the search; old and new times cannot be compared. {path} holds the "
            "last run; start a new search"
        )


def choose_step_options(options: RunOptions, wanted: PlannedStep) -> RunOptions:
    """Return the options of a step, with more rounds and time if the usual ones decided nothing."""
    budget_s = options.budget_s or BUDGET_S
    if not wanted.thorough:
        return replace(options, budget_s=budget_s)
    rounds = options.rounds * MORE_TIMES if options.rounds else MORE_ROUNDS
    return replace(options, rounds=rounds, budget_s=budget_s * MORE_TIMES)


def find_obstacle(options: RunOptions, target: str, folder: RunFolder, view: View) -> TfCompareError | None:
    """Return why a version cannot be made ready, or None.

    A problem that is found here excludes only that version, and no round is lost.
    """
    try:
        planned = plan_run(replace(options, versions=(target,)), view, fewest=1)
    except UsageError as error:
        return error
    _, _, failures = install_planned(planned, folder, view)
    return next(iter(failures.values()), None)


def install_planned(
    planned: PlannedRun, folder: RunFolder, view: View
) -> tuple[str, dict[str, Environment], dict[str, EnvironmentFailed]]:
    """Return the name of the engine, the environments that it could make, and the errors for the rest."""
    options = planned.options
    name, engine = choose_engine(options.engine, options.isolation, options.environments, view)
    with closing(engine):
        return name, *session.make_environments(planned.selection.versions, engine, folder, view)


def find_unused_folder(folder: Path, number: int) -> Path:
    """Return an unused folder for a run; an interrupted run keeps its folder."""
    names = (f"{number:02}", *(f"{number:02}-{attempt}" for attempt in range(2, 1000)))
    return next(folder / name for name in names if not (folder / name).exists())


def _finish(folder: Path, state: State) -> SearchOutcome:
    result = state.search_result
    error = None
    if result.overall is not None and not result.wanted and not result.overall.changed and not state.question.every:
        ends = f"{state.question.good} and {state.question.bad}"
        error = NothingSelected(f"nothing to find: {ends} are not shown to differ")
    return SearchOutcome(state, result, folder, error)


class DeduplicatingView(View):
    """A view that shows a line only the first time: the engine, a version that is ready, or an unchanged plan."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._shown_lines: set[str] = set()

    def say(self, text: str) -> None:
        if text not in self._shown_lines:
            self._shown_lines.add(text)
            self._view.say(text)

    def preparing(self, version: str, text: str) -> None:
        self._view.preparing(version, text)

    def measuring(self, version: Target, case: Case, number: int) -> None:
        self._view.measuring(version, case, number)

    def round_done(self, done: RoundDone) -> None:
        self._view.round_done(done)

    def look_done(self, number: int, new: Sequence[str], decided: int, comparisons: int) -> None:
        self._view.look_done(number, new, decided, comparisons)
