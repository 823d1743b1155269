"""The course of an upgrade: both ends, the warnings, the cause of a change, what helps, and the releases between."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import InvalidVersion, Version

from orchestrator import catalog, contract, files
from orchestrator.bisect.run import DeduplicatingView, install_planned, resolve_paths
from orchestrator.bundled import find_own_number
from orchestrator.catalog.active import find_active
from orchestrator.catalog.architectures import read_number_pair
from orchestrator.catalog.changed import KERAS_3
from orchestrator.catalog.freeze import read_freeze
from orchestrator.catalog.targets import name_pinned
from orchestrator.engines import Environment
from orchestrator.engines.choose import choose_engine
from orchestrator.engines.layers import find_conflict
from orchestrator.errors import (
    ContractBroken,
    EngineUnavailable,
    Interrupted,
    NothingSelected,
    TfCompareError,
    UsageError,
)
from orchestrator.machine.host import host_facts, is_here
from orchestrator.measure.resume import add_rounds
from orchestrator.measure.run import Done, plan_and_measure
from orchestrator.measure.warned import WarnedCase, collect_warnings
from orchestrator.metrics.followed import RESULTS, SIZE, TIME
from orchestrator.metrics.gates import DIED, Gate, parse_gates
from orchestrator.model import Evaluation
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import PlannedRun, RunOptions
from orchestrator.results.evaluation import judge_run
from orchestrator.results.find_runs import PLAN
from orchestrator.results.more_rounds import ResumeOptions
from orchestrator.results.run_folder import RunFolder, refuse_strangers
from orchestrator.results.whole_report import correct_for_report
from orchestrator.terminal.view import View
from orchestrator.upgrade import state as stored
from orchestrator.upgrade.active import freeze_active
from orchestrator.upgrade.judgement import Obstacle, TargetJudgement, judge_target
from orchestrator.upgrade.state import (
    BETWEEN,
    HELPED,
    RUN,
    WHY,
    CodeWarning,
    MeasuredRun,
    Requirement,
    UpgradeQuestion,
    UpgradeState,
)
from orchestrator.why import run as asking
from orchestrator.why.ends import read_target
from orchestrator.why.report import WhyAnswer, tell_help, tell_why
from orchestrator.why.state import WhyQuestion, holds_question

# After one of these, nothing more can be measured.
STOPS = (Interrupted, EngineUnavailable, ContractBroken)
# A part that has less time than this would show nothing.
LEAST_S = 20.0
# The search for the cause gets the first share of the time left, and the run that checks what helps the second.
OF_CAUSE, OF_HELP = 0.55, 0.5
MOST_HELPING, MOST_BETWEEN = 2, 3
# Nothing in a case explains these metrics.
NOT_ASKED = frozenset((SIZE, "import"))


@dataclass(frozen=True)
class UpgradeActions:
    """The functions through which an upgrade acts on the outside world; a test can replace them."""

    install: Callable[[PlannedRun, RunFolder, View], tuple[str, dict[str, Environment], dict[str, TfCompareError]]] = (
        install_planned  # type: ignore[assignment]
    )
    measure: Callable[[RunOptions, View], Done] = plan_and_measure
    resume: Callable[[ResumeOptions, View], Done] = add_rounds
    judge: Callable[[RunFolder], Evaluation] = judge_run
    warn: Callable[[PlannedRun, View], Sequence[WarnedCase]] = collect_warnings
    ask: Callable[[WhyQuestion, Path, View], WhyAnswer] | None = None


@dataclass(frozen=True)
class UpgradeOutcome:
    """An upgrade as far as it was answered, and the error that cut it short."""

    state: UpgradeState
    path: Path
    error: TfCompareError | None = None
    actions: UpgradeActions = UpgradeActions()

    @property
    def gates(self) -> tuple[Gate, ...]:
        return parse_gates(self.state.question.gates)

    def evaluate(self, name: str) -> Evaluation | None:
        """Return the judged run with this name, or None if it was not measured."""
        folder = self.path / name
        # The folder of another person may hold a link to somewhere else.
        if name not in self.state.runs or folder.is_symlink() or not (folder / PLAN).is_file():
            return None
        return correct_for_report(self.actions.judge(RunFolder.open(folder)))

    def judge(self, name: str) -> dict[str, TargetJudgement]:
        """Return the judgements of the targets of a run against its first, by their names."""
        evaluation = self.evaluate(name)
        if evaluation is None:
            return {}
        targets = [str(target) for target in evaluation.plan.targets[1:]]
        return {target: judge_target(evaluation, self.gates, target) for target in targets}


def begin_upgrade(question: UpgradeQuestion, folder: Path | None, view: View) -> tuple[Path, UpgradeState]:
    """Check the question, and return its folder and state; a folder that already holds it is continued.

    Without an old target, the active environment is used, and its packages are written into the folder.
    """
    created = datetime.now(UTC).replace(microsecond=0)
    folder = folder or Path("runs") / f"upgrade-{created:%Y%m%d-%H%M%S}"
    is_known = stored.holds_upgrade(folder)
    if not is_known and folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty, and holds no upgrade to continue; choose another --output")
    question = replace(question, run=resolve_paths(replace(question.run, command=())))
    if not question.old:
        active = find_active()
        if active is None:
            raise UsageError(
                "the active environment has no TensorFlow, or several: name what you have as well, e.g. `tfcompare "
                "upgrade 2.8 2.20 -- python train.py`"
            )
        view.say(f"from TensorFlow {active.number} and the packages of {active.prefix}")
        question = replace(question, old=freeze_active(active, folder))
    if is_known:
        return folder, resume_upgrade(folder, question)
    return folder, UpgradeState(
        created=created,
        tool=find_own_number(),
        contract=contract.FINGERPRINT,
        host=host_facts(),
        question=question,
    )


def resume_upgrade(folder: Path, question: UpgradeQuestion | None = None, index_url: str | None = None) -> UpgradeState:
    """Return the state of an upgrade to continue, unless something that it depends on has changed."""
    refuse_strangers(folder)
    state = stored.read_upgrade(folder)
    stored.require_upgrade_seal(folder, state)
    if question is not None and question.with_index(None) != state.question:
        raise UsageError(f"{folder} holds an upgrade with different options; --resume {folder} continues it")
    if state.contract != contract.FINGERPRINT:
        raise UsageError(
            f"{folder} was measured under contract {state.contract}, this tfcompare has {contract.FINGERPRINT}; "
            f"use tfcompare {state.tool}, or start again"
        )
    if not is_here(state.host):
        raise UsageError(
            f"{folder} was measured on another machine ({state.host.get('cpu')}): continue it there, or start again"
        )
    url = question.run.environments.index_url if question else index_url
    return replace(state, question=state.question.with_index(url))


def read_upgrade_outcome(folder: Path) -> UpgradeOutcome:
    """Return an upgrade as far as its folder holds it. The folder may be another person's: nothing in it is run."""
    return UpgradeOutcome(stored.read_upgrade(folder), folder)


def answer_upgrade(
    folder: Path, state: UpgradeState, view: View, actions: UpgradeActions | None = None
) -> UpgradeOutcome:
    """Measure until the question is answered or its time is over; every part is kept."""
    upgrade = _Upgrade(folder, state, DeduplicatingView(view), actions or UpgradeActions())
    with files.writing(f"the folder {folder}", "choose another --output"):
        (folder / "logs").mkdir(parents=True, exist_ok=True)
    error: TfCompareError | None = None
    with RunFolder(folder).hold():
        upgrade.keep()
        try:
            upgrade.answer()
        except STOPS as stop:
            if RUN not in upgrade.state.runs:
                raise
            error = type(stop)(
                f"{stop}\ncontinue with: {shlex.join(['tfcompare', 'upgrade', '--resume', str(folder)])}"
            )
    return replace(upgrade.outcome, error=error)


@dataclass
class _Upgrade:
    folder: Path
    state: UpgradeState
    view: View
    actions: UpgradeActions

    @property
    def outcome(self) -> UpgradeOutcome:
        return UpgradeOutcome(self.state, self.folder, actions=self.actions)

    @property
    def run(self) -> RunOptions:
        """The options of a run, with the packages that the program has in both ends."""
        options = self.state.question.run
        named = tuple(each.text for each in self.state.requirements if each.outcome != "cannot move")
        return replace(
            options,
            engine=self.state.engine or options.engine,
            requirements=tuple(dict.fromkeys((*options.requirements, *named))) if options.program else (),
        )

    def keep(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]
        stored.write_upgrade(self.folder, self.state)

    def answer(self) -> None:
        self._settle_engine()
        if not self.state.ends:
            self._install_ends()
        (_, old), (name, new) = self.state.ends
        self._measure(RUN, (old, new), self.state.question.budget_s)
        if self.state.warnings is None:
            self._collect_warnings(new)
        found = self.outcome.judge(RUN).get(name)
        if found is None or not found.tripped or not self.state.question.remedies:
            return
        helping = self._find_help(found, old, new)
        if helping:
            self._measure(HELPED, (old, *helping), self.state.more_left_s * OF_HELP)
        between = choose_between(old, new)
        if between:
            self._measure(BETWEEN, (old, *between), self.state.more_left_s)

    def _settle_engine(self) -> None:
        """Choose the engine once, so that all parts have the same."""
        if self.state.engine is None:
            run = self.state.question.run
            name, engine = choose_engine(run.engine, run.isolation, run.environments, self.view)
            engine.close()
            self.keep(engine=name)

    def _install_ends(self) -> None:
        """Install both ends, and find out which of the user's packages the new one can have."""
        question = self.state.question
        planned = plan_run(replace(self.run, versions=(question.old, question.new)), self.view)
        versions = planned.selection.versions
        if versions[0].name == versions[1].name:
            raise UsageError(f"both ends are {versions[0].name}: there is nothing to move")
        _, environments, failures = self.actions.install(planned, RunFolder(self.folder), self.view)
        if failures:
            raise next(iter(failures.values()))
        ends = tuple(
            (version.name, version.changes.definition if version.changes else version.number) for version in versions
        )
        self.keep(ends=ends, requirements=self._settle_requirements(environments[versions[1].name]))

    def _settle_requirements(self, new: Environment) -> tuple[Requirement, ...]:
        """Return what becomes of the packages of the program and of the environment that it runs in now."""
        run, freeze = self.state.question.run, read_target(self.state.question.old).freeze
        frozen = read_freeze(freeze).pins if freeze else ()
        wanted = [*run.requirements, *(pin for pin in frozen if name_pinned(pin) not in new.facts.packages)]

        def conflict(requirements: Sequence[str]) -> str:
            return find_conflict(requirements, new.facts, run.environments, new.uv) if requirements else ""

        if not conflict(wanted):
            return tuple(Requirement(text=text, outcome="stays") for text in wanted)
        self.view.say("not all of your packages fit the new version: trying them one by one")
        settled = []
        for text in wanted:
            reason, name = conflict([text]), name_pinned(text)
            if not reason:
                settled.append(Requirement(text=text, outcome="stays"))
            elif not conflict([name]):
                settled.append(Requirement(text=name, outcome="moves", reason=f"{text}: {reason}"))
            else:
                settled.append(Requirement(text=text, outcome="cannot move", reason=reason))
        return tuple(settled)

    def _measure(self, name: str, texts: Sequence[str], budget_s: float) -> None:
        """Measure a run of the upgrade, or continue it if it has begun and is not done."""
        known = self.state.runs.get(name)
        if (known and known.is_done) or budget_s < LEAST_S:
            return
        path = self.folder / name
        options = replace(self.run, versions=tuple(texts), out=path, budget_s=budget_s)
        if (path / PLAN).is_file():
            more = ResumeOptions(run=path, budget_s=budget_s, environments=self.run.environments)
            try:
                done = self.actions.resume(more, self.view)
            except NothingSelected:
                self._keep_run(name, known or MeasuredRun(targets=()), done=True)
                return
        else:
            done = self.actions.measure(options, self.view)
        stopped = isinstance(done.error, STOPS)
        targets = tuple(zip(map(str, done.evaluation.plan.targets), texts, strict=False))
        self._keep_run(name, MeasuredRun(targets=targets, seconds=done.evaluation.seconds), done=not stopped)
        if stopped:
            assert done.error
            raise done.error

    def _keep_run(self, name: str, run: MeasuredRun, *, done: bool) -> None:
        self.keep(runs={**self.state.runs, name: replace(run, is_done=done)})

    def _collect_warnings(self, new: str) -> None:
        planned = plan_run(replace(self.run, versions=(new,), metrics=()), self.view, fewest=1)
        self.view.say("what will break next: running again, to collect warnings")
        cases = self.actions.warn(planned, self.view)
        given = dict.fromkeys(
            CodeWarning(
                kind=each.kind, text=each.text, place=each.place, line=each.line, own=each.own, case=of_case.case.label
            )
            for of_case in cases
            for each in of_case.warnings
        )
        notes = [f"the warnings of {each.case.label} are not known: {each.reason}" for each in cases if each.reason]
        self.keep(warnings=tuple(given), notes=(*self.state.notes, *notes))

    def _find_help(self, found: TargetJudgement, old: str, new: str) -> tuple[str, ...]:
        """Ask for the cause of the largest obstacle, and return the targets that may help."""
        worst = next((each for each in (found.worst, *found.tripped) if each and each.metric not in NOT_ASKED), None)
        if worst is None or self.state.more_left_s < LEAST_S:
            return ()
        path = self.folder / WHY
        question = _ask_about(worst, old, new, self.run, self.state.more_left_s * OF_CAUSE)
        try:
            answer = (self.actions.ask or ask_for_cause)(question, path, self.view)
        except TfCompareError as error:
            if isinstance(error, STOPS):
                raise
            self.keep(notes=(*self.state.notes, f"the cause was not found: {error.headline}"))
            return ()
        told = (*tell_why(answer), *tell_help(answer))
        self.keep(asked=str(worst), why=told, why_s=answer.state.seconds)
        return answer.helping[:MOST_HELPING]


def _ask_about(worst: Obstacle, old: str, new: str, run: RunOptions, budget_s: float) -> WhyQuestion:
    # The cause of a death is found by whether a call runs, whatever is measured.
    metric = TIME if worst.metric in (DIED, "step") else RESULTS if worst.metric == RESULTS else worst.metric
    options = replace(run, metrics=None, of_gates=(), budget_s=None, out=None)
    if not run.program:
        options = replace(options, selected=(worst.case,))
    return WhyQuestion(old=old, new=new, run=options, budget_s=budget_s, metric=metric, search=False)


def ask_for_cause(question: WhyQuestion, folder: Path, view: View) -> WhyAnswer:
    """Ask why the case differs, or continue a question that has begun; raise the error that cuts it short."""
    state = asking.resume(folder) if holds_question(folder) else asking.begin_question(question, folder)[1]
    outcome = asking.answer(folder, state, view)
    if outcome.error:
        raise outcome.error
    return WhyAnswer(outcome)


def choose_between(old: str, new: str) -> tuple[str, ...]:
    """Return a few releases between two, evenly spread, with the last one that has Keras 2; none for other targets."""
    first, last = (read_target(text) for text in (old, new))
    number = first.version or (read_freeze(first.freeze).number if first.freeze else "")
    try:
        low, high = Version(number), Version(last.version)
    except InvalidVersion:
        return ()
    numbers = [each.number for each in catalog.releases() if low < Version(each.number) < high]
    if last.changes or len(numbers) <= MOST_BETWEEN:
        return () if last.changes else tuple(numbers)
    places = {round(index * (len(numbers) - 1) / (MOST_BETWEEN - 1)) for index in range(MOST_BETWEEN)}
    with_keras_2 = sum(read_number_pair(each) < KERAS_3 for each in numbers)
    if 0 < with_keras_2 < len(numbers):
        places -= {min(places, key=lambda place: abs(place - (with_keras_2 - 1)))}
        places |= {with_keras_2 - 1}
    return tuple(numbers[place] for place in sorted(places))
