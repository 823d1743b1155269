"""The course of a question: the ends, one ladder after another, the remedies, the release, and the profile."""

import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import Version

from orchestrator import contract, files
from orchestrator.bisect import run as searching
from orchestrator.bisect import state as searches
from orchestrator.bisect.findings import RESULT_VERDICTS, convert_comparison
from orchestrator.bisect.run import DeduplicatingView, find_obstacle, find_unused_folder, select_one_case
from orchestrator.bisect.search import BisectFinding
from orchestrator.bundled import find_own_number
from orchestrator.catalog import program
from orchestrator.catalog import workloads as suites
from orchestrator.engines.choose import choose_engine
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
from orchestrator.measure.round_range import Enough
from orchestrator.measure.run import Done, plan_and_measure
from orchestrator.metrics.followed import RESULTS, SIZE, TIME, Followed
from orchestrator.model import Case, Evaluation
from orchestrator.plan.request import RunOptions, check_judge
from orchestrator.profiling.model import ProfileResult
from orchestrator.profiling.run import ProfileOptions, profile
from orchestrator.results.evaluation import judge_run
from orchestrator.results.find_runs import PLAN
from orchestrator.results.more_rounds import ResumeOptions
from orchestrator.results.run_folder import RunFolder, refuse_strangers
from orchestrator.results.sketches import show_share
from orchestrator.results.whole_report import correct_for_report
from orchestrator.terminal.view import View
from orchestrator.why import state as stored
from orchestrator.why.cause import Cause, End, pin_package
from orchestrator.why.causes import find_causes
from orchestrator.why.climb import Climb, build_ladder, join_rest, name_target, separate_packages, write_named
from orchestrator.why.ends import install_ends, name_rest, read_target, write_target
from orchestrator.why.ladder import (
    MOST_RUNGS,
    Explanation,
    JudgedRung,
    Ladder,
    MeasuredLadder,
    explain,
    find_divisible,
    group_causes,
    is_settled,
)
from orchestrator.why.remedies import find_claimed_remedies
from orchestrator.why.state import PROFILE, SEARCH, STEPS, LadderStep, RemedyStep, WhyQuestion, WhyState

# The shares of the time left that a ladder and the remedies may take, and what a step needs to be worth it. A ladder
# may take more if no search follows.
OF_A_LADDER, OF_THE_ONLY_STEPS, OF_REMEDIES, LEAST_S = 0.5, 0.7, 0.4, 20.0
# A step of a search takes this long or longer, and a search takes a few of them.
LEAST_SEARCH_S, SHARE_OF_A_STEP = 120.0, 0.4
MOST_REMEDIES = 3
COUNTS = "calls"
# After one of these, nothing more can be measured.
STOPS = (Interrupted, EngineUnavailable, ContractBroken)
EXPLAINED, COMPARED = "the ladder is explained", "the remedies are compared"


@dataclass(frozen=True)
class WhyActions:
    """The functions through which a question acts on the outside world; a test can replace them."""

    install: Callable[[RunOptions, Path, View], tuple[End, End]] = install_ends
    obstacle: Callable[[RunOptions, str, RunFolder, View], TfCompareError | None] = find_obstacle
    measure: Callable[[RunOptions, View, Enough], Done] = plan_and_measure
    resume: Callable[[ResumeOptions, View, Enough], Done] = add_rounds
    judge: Callable[[RunFolder], Evaluation] = judge_run
    profile: Callable[[ProfileOptions, View], ProfileResult] = profile


@dataclass(frozen=True)
class WhyOutcome:
    """A question as far as it was answered, and the error that determines its exit code."""

    state: WhyState
    explanation: Explanation
    path: Path
    error: TfCompareError | None = None


def begin_question(question: WhyQuestion, folder: Path | None) -> tuple[Path, WhyState]:
    """Check the question, and return its folder and state; a folder that already holds it is continued."""
    if question.metric == SIZE:
        raise UsageError("--metric size: it needs no rounds; `tfcompare run OLD NEW --metric size` compares it")
    run = searching.resolve_paths(replace(question.run, command=()))
    case = _find_case(run)
    run = replace(run if run.program else replace(run, selected=(case.label,)), pairing="all")
    if question.metric == TIME:
        # Counts say what is computed more often, and take no rounds.
        run = replace(run, metrics=() if run.program else (COUNTS,))
    else:
        run = searching.add_metric(run, question.metric)
    check_judge(run.judge, gpu=run.environments.gpu, metrics=run.metrics or ())
    fresh = WhyState(
        created=datetime.now(UTC).replace(microsecond=0),
        tool=find_own_number(),
        contract=contract.FINGERPRINT,
        host=host_facts(),
        sources=_hash_sources(run, case),
        question=replace(question, run=run),
        case=case,
    )
    folder = folder or Path("runs") / f"why-{fresh.created:%Y%m%d-%H%M%S}"
    if stored.holds_question(folder):
        return folder, resume(folder, fresh.question)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty, and holds no question to continue; choose another --output")
    return folder, fresh


def _find_case(run: RunOptions) -> Case:
    if not run.program:
        return select_one_case(run)
    (name,) = program.find_measurable(run.program, run.requirements, run.own_workloads)
    return Case(name, ())


def _hash_sources(run: RunOptions, case: Case) -> dict[str, str]:
    return suites.source_hashes(
        [program.find_measurable(run.program, run.requirements, run.own_workloads)[case.workload]]
    )


def resume(folder: Path, question: WhyQuestion | None = None, index_url: str | None = None) -> WhyState:
    """Return the state of a question to continue, unless something that it depends on has changed."""
    refuse_strangers(folder)
    state = stored.read_question(folder)
    stored.require_question_seal(folder, state)
    if question is not None and question.with_index(None) != state.question:
        raise UsageError(f"{folder} holds a question with different options; --resume {folder} continues it")
    if state.contract != contract.FINGERPRINT:
        raise UsageError(
            f"{folder} was measured under contract {state.contract}, this tfcompare has {contract.FINGERPRINT}; "
            f"use tfcompare {state.tool}, or ask again"
        )
    if state.sources != _hash_sources(state.question.run, state.case):
        raise UsageError(f"the workload has changed since {folder} began; old and new times do not mix, so ask again")
    if not is_here(state.host):
        raise UsageError(
            f"{folder} was measured on another machine ({state.host.get('cpu')}): continue it there, or ask again here"
        )
    url = question.run.environments.index_url if question else index_url
    return replace(state, question=state.question.with_index(url))


def answer(folder: Path, state: WhyState, view: View, actions: WhyActions | None = None) -> WhyOutcome:
    """Measure until the question is answered or its time is over; every step is kept."""
    asker = _Asker(folder, state, DeduplicatingView(view), actions or WhyActions())
    is_new = not folder.exists()
    with files.writing(f"the folder {folder}", "choose another --output"):
        for part in (STEPS, "logs"):
            (folder / part).mkdir(parents=True, exist_ok=True)
    error: TfCompareError | None = None
    with RunFolder(folder).hold():
        asker.keep()
        try:
            asker.answer()
        except STOPS as stop:
            if not asker.state.ladders:
                raise
            error = type(stop)(f"{stop}\ncontinue with: {shlex.join(['tfcompare', 'why', '--resume', str(folder)])}")
        except (UsageError, NothingSelected):
            # The mended question goes to the same --output.
            if is_new and not asker.state.ladders:
                shutil.rmtree(folder)
            raise
    return WhyOutcome(asker.state, asker._explain(), folder, error)


def read_outcome(folder: Path) -> WhyOutcome:
    """Return the answer to a question as far as its folder has it; raise UsageError if another user wrote it."""
    refuse_strangers(folder)
    state = stored.read_question(folder)
    stored.require_question_seal(folder, state)
    return WhyOutcome(state, explain(read_ladders(folder, state, WhyActions())), folder)


@dataclass
class _Asker:
    folder: Path
    state: WhyState
    view: View
    actions: WhyActions

    @property
    def run(self) -> RunOptions:
        options = self.state.question.run
        return replace(options, engine=self.state.engine or options.engine)

    def keep(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]
        stored.write_question(self.folder, self.state)

    def answer(self) -> None:
        self._settle_engine()
        old, new = self._install()
        causes, refused = self._find_causes(old, new)
        if not self.state.ladders:
            rest = join_rest(name_rest(old, new), refused)
            most = MOST_RUNGS - bool(rest)
            groups = group_causes([[each.title for each in of_kind] for of_kind in causes.values()], most)
            self._climb(write_target(old.changed), write_target(new.changed), groups, rest, causes)
        elif not self.state.ladders[-1].is_done or self._is_open():
            self._measure_ladder(len(self.state.ladders) - 1)
        while self.state.left_s > LEAST_S and (rung := self._find_next()):
            groups = group_causes([[title] for title in rung.rung.causes], MOST_RUNGS - bool(rung.rung.rest))
            self._climb(rung.lower, rung.upper, groups, rung.rung.rest, causes)
        if self.state.remedies is None and self.state.left_s > LEAST_S:
            self._try_remedies(old, new, causes)
        if self.state.question.search and not self.state.searched:
            self._search(causes)
        if not self.state.profile:
            self._profile()

    def _is_open(self) -> bool:
        """Return whether the whole was not decided, and there is time for more rounds."""
        whole = self._explain().whole
        is_first = len(self.state.ladders) == 1
        return is_first and self.state.left_s > LEAST_S and (whole is None or whole.verdict == "inconclusive")

    def _explain(self) -> Explanation:
        return explain(read_ladders(self.folder, self.state, self.actions))

    def _settle_engine(self) -> None:
        """Choose the engine once, so that all ladders have the same."""
        if self.state.engine is None:
            run = self.state.question.run
            name, engine = choose_engine(run.engine, run.isolation, run.environments, self.view)
            engine.close()
            self.keep(engine=name)

    def _install(self) -> tuple[End, End]:
        question = self.state.question
        self.view.say(f"the ends: {question.old} and {question.new}")
        return self.actions.install(replace(self.run, versions=(question.old, question.new)), self.folder, self.view)

    def _find_causes(self, old: End, new: End) -> tuple[dict[str, tuple[Cause, ...]], tuple[str, ...]]:
        device = self.run.environments.device
        causes, refused = separate_packages(find_causes(old, new, device), new.changed, device)
        named = [cause.title for of_kind in causes.values() for cause in of_kind]
        self.view.say(
            f"they also differ in: {'; '.join(named)}" if named else "nothing else that can be undone differs"
        )
        return causes, refused

    def _find_next(self) -> JudgedRung | None:
        ends = [(step.ladder.texts[0], step.ladder.texts[-1]) for step in self.state.ladders[1:]]
        explanation = self._explain()
        tried = [(rung.lower, rung.upper) for rung in explanation.rungs if (rung.lower, rung.upper) in ends]
        return find_divisible(explanation, tried)

    def _climb(
        self, lower: str, upper: str, groups: Sequence[Sequence[str]], rest: str,
        causes: Mapping[str, Sequence[Cause]],
    ) -> None:  # fmt: skip
        """Build a ladder, measure it, and keep it."""
        by_title = {cause.title: cause for of_kind in causes.values() for cause in of_kind}
        number = len(self.state.ladders) + 1
        of_groups = [[by_title[title] for title in group if title in by_title] for group in groups]
        climb = build_ladder(
            lower, upper, [group for group in of_groups if group], rest, str(number), self.run.environments.device,
            self._find_obstacle,
        )  # fmt: skip
        self._announce(number, climb)
        path = find_unused_folder(self.folder / STEPS, number)
        step = LadderStep(ladder=climb.ladder, run=str(path.relative_to(self.folder)))
        self.keep(ladders=(*self.state.ladders, step), notes=(*self.state.notes, *climb.notes))
        self._measure_ladder(number - 1)

    def _measure_ladder(self, index: int) -> None:
        """Measure a ladder, or continue with it if its run has begun."""
        step, question = self.state.ladders[index], self.state.question

        def is_enough(evaluation: Evaluation) -> str:
            measured = read_ladder(step.ladder, correct_for_report(evaluation), question.metric)
            return EXPLAINED if is_settled(measured, question.margin) else ""

        share = OF_A_LADDER if question.search else OF_THE_ONLY_STEPS
        path, budget_s = self.folder / step.run, self.state.left_s * share
        if (path / PLAN).is_file():
            more = ResumeOptions(run=path, budget_s=budget_s, environments=self.run.environments)
            try:
                done = self.actions.resume(more, self.view, is_enough)
            except NothingSelected:
                # Everything that more rounds could decide is decided.
                return
        else:
            options = replace(self.run, versions=step.ladder.texts, out=path, budget_s=budget_s)
            done = self.actions.measure(options, self.view, is_enough)
        stopped = isinstance(done.error, STOPS)
        measured = replace(step, seconds=done.evaluation.seconds, is_done=not stopped)
        self.keep(ladders=(*self.state.ladders[:index], measured, *self.state.ladders[index + 1 :]))
        if stopped:
            assert done.error
            raise done.error

    def _announce(self, number: int, climb: Climb) -> None:
        for note in climb.notes:
            self.view.say(f"note: {note}")
        titles = "; ".join(rung.title for rung in climb.ladder.rungs)
        self.view.say(f"ladder {number}, from {climb.ladder.names[0]} to {climb.ladder.names[-1]}: {titles}")

    def _find_obstacle(self, text: str) -> TfCompareError | None:
        return self.actions.obstacle(self.run, text, RunFolder(self.folder), self.view)

    def _try_remedies(self, old: End, new: End, causes: Mapping[str, Sequence[Cause]]) -> None:
        """Measure the new target with one cause undone at a time, and with the remedies of claims."""
        explanation = self._explain()
        whole = explanation.whole
        if not explanation.death and (whole is None or whole.verdict != "slower"):
            return
        by_title = {cause.title: cause for of_kind in causes.values() for cause in of_kind}
        known = {text for step in self.state.ladders[:1] for text in step.ladder.texts}
        device = self.run.environments.device
        tried: dict[str, str] = {}
        plain = replace(new.changed, name="")
        for rung in explanation.mattering:
            if len(rung.rung.causes) == 1 and not rung.rung.rest and rung.rung.causes[0] in by_title:
                text = write_named(by_title[rung.rung.causes[0]].undo(plain), f"remedy.{len(tried) + 1}")
                tried[text] = ""
        for claim, changed in find_claimed_remedies(self.state.case, new.changed):
            tried.setdefault(write_named(changed, f"remedy.{len(tried) + 1}"), claim)
        wanted = [(text, claim) for text, claim in tried.items() if text not in known][:MOST_REMEDIES]
        wanted = [(text, claim) for text, claim in wanted if self._find_obstacle(text) is None]
        if not wanted:
            return
        named = tuple((name_target(text, device), text, claim) for text, claim in wanted)
        self.view.say(f"what may help: {'; '.join(name for name, _, _ in named)}")
        names = [name_target(write_target(end.changed), device) for end in (old, new)]

        def is_enough(evaluation: Evaluation) -> str:
            findings = read_findings(correct_for_report(evaluation), self.state.question.metric)
            pairs = [(name, names[1]) for name, _, _ in named]
            decided = [findings.get(pair) for pair in pairs]
            return COMPARED if all(each and each.verdict != "inconclusive" for each in decided) else ""

        texts = (write_target(old.changed), *(text for text, _ in wanted), write_target(new.changed))
        path = find_unused_folder(self.folder / STEPS, len(self.state.ladders) + 1)
        options = replace(self.run, versions=texts, out=path, budget_s=self.state.left_s * OF_REMEDIES)
        done = self.actions.measure(options, self.view, is_enough)
        if isinstance(done.error, STOPS):
            raise done.error
        self.keep(
            remedies=RemedyStep(tried=named, run=str(path.relative_to(self.folder)), seconds=done.evaluation.seconds)
        )

    def _search(self, causes: Mapping[str, Sequence[Cause]]) -> None:
        """Search the release that brought the change of the rung that matters most, as far as the time allows."""
        explanation = self._explain()
        question = choose_search(self.state, explanation, causes)
        if question is None or self.state.left_s < LEAST_SEARCH_S:
            return
        path = self.folder / SEARCH
        try:
            if searches.exists(path):
                # Its steps have other budgets than a new search.
                search = searching.resume_search(path, index_url=question.run.environments.index_url)
            else:
                _, search = searching.begin(question, path, self.view)
            while not search.search_result.main and search.search_result.wanted:
                step_s = self.state.left_s * SHARE_OF_A_STEP
                if step_s < LEAST_S:
                    return
                run = replace(search.question.run, budget_s=step_s)
                limited = replace(search, question=replace(search.question, run=run))
                search = searching.run_search(path, limited, self.view, 1).state
                self.keep(search_s=sum(step.seconds for step in search.steps))
        except TfCompareError as error:
            if isinstance(error, STOPS):
                raise
            self.keep(notes=(*self.state.notes, f"the search for the release ended: {error.headline}"))
        self.keep(searched=True)

    def _profile(self) -> None:
        """Profile the two targets of the rung that matters most."""
        explanation = self._explain()
        rung = next((each for each in explanation.mattering if not each.death), None)
        if rung is None or self.run.program or self.state.question.metric not in (TIME, "cpu", RESULTS):
            return
        # A profile that was interrupted keeps its folder.
        names = (PROFILE, *(f"{PROFILE}-{attempt}" for attempt in range(2, 1000)))
        path = next(self.folder / name for name in names if not (self.folder / name).exists())
        options = replace(self.run, versions=(rung.lower, rung.upper), out=path, pairing="first", budget_s=None)
        calls = 0 if self.state.question.metric == RESULTS else ProfileOptions(run=options).calls
        self.view.say(f"where: profiling {rung.lower} and {rung.upper}")
        profiled = self.actions.profile(ProfileOptions(run=options, calls=calls), self.view)
        if isinstance(profiled.error, STOPS):
            raise profiled.error
        self.keep(profile=path.name)


def read_findings(evaluation: Evaluation, metric: Followed) -> dict[tuple[str, str], BisectFinding]:
    """Return what a run found about each two of its targets."""
    if metric == RESULTS:
        return {
            (str(each.baseline), str(each.candidate)): BisectFinding(
                earlier=str(each.baseline),
                later=str(each.candidate),
                verdict=RESULT_VERDICTS.get(each.verdict, "same"),
                reason=each.reason if each.difference is None else f"by {show_share(each.difference)}",
                metric=metric,
            )
            for each in evaluation.outputs
        }
    found = {}
    for comparison in (*evaluation.comparisons, *evaluation.metrics.get(metric, ())):
        if comparison.pair.metric == metric and comparison.pair.kind == "target":
            names = (str(comparison.pair.baseline), str(comparison.pair.candidate))
            finding = convert_comparison(*names, comparison)
            found[names] = replace(finding, verdict=comparison.report_verdict)
    return found


def read_ladder(ladder: Ladder, evaluation: Evaluation, metric: Followed) -> MeasuredLadder:
    deaths = {str(arm.target): arm.reason for arm in evaluation.arms if arm.outcome in ("died", "refused")}
    named = {str(arm.target) for arm in evaluation.arms}
    failed = {name: "it could not be installed" for name in ladder.names if name not in named}
    return MeasuredLadder(ladder=ladder, findings=read_findings(evaluation, metric), deaths={**failed, **deaths})


def read_ladders(folder: Path, state: WhyState, actions: WhyActions) -> Iterable[MeasuredLadder]:
    """Yield the ladders of a question as far as they were measured."""
    for step in state.ladders:
        run = RunFolder(folder / step.run)
        if (run.path / PLAN).is_file():
            yield read_ladder(step.ladder, actions.judge(RunFolder.open(run.path)), state.question.metric)
        else:
            yield MeasuredLadder(ladder=step.ladder, findings={}, deaths={})


def choose_search(
    state: WhyState, explanation: Explanation, causes: Mapping[str, Sequence[Cause]]
) -> searches.Question | None:
    """Return the search for the release that brought the largest change, or None if no search can find it."""
    rung = next((each for each in explanation.mattering if not each.death), None)
    if rung is None or state.question.run.program:
        return None
    run = replace(state.question.run, pairing="first", metrics=None)
    lower, upper = (read_target(text) for text in (rung.lower, rung.upper))
    by_title = {cause.title: cause for of_kind in causes.values() for cause in of_kind}
    cause = by_title.get(rung.rung.causes[0]) if len(rung.rung.causes) == 1 and not rung.rung.rest else None
    if cause and cause.package and upper.version and not (upper.freeze or upper.package):
        # A search goes from the older release to the newer one, whichever of them is slower.
        numbers = sorted(cause.numbers, key=Version)
        ends = (pin_package(replace(upper, name=""), cause.package, number) for number in numbers)
        good, bad = map(write_target, ends)
        return searches.Question(good=good, bad=bad, over=cause.package, metric=state.question.metric, run=run)
    is_release = lower.version and upper.version and lower.version != upper.version
    if not rung.rung.causes and is_release and lower.changes == upper.changes and not lower.is_foreign:
        releases = sorted((lower, upper), key=lambda each: Version(each.version))
        good, bad = (write_target(replace(each, name="")) for each in releases)
        return searches.Question(good=good, bad=bad, metric=state.question.metric, run=run)
    return None
