"""The answer to a question: the whole, what each rung contributes, and what helps; also as an object."""

import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from packaging.version import InvalidVersion, Version
from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.bisect import state as searches
from orchestrator.bisect.search import BisectFinding
from orchestrator.bisect.wording import conclusions, format_finding
from orchestrator.errors import TfCompareError
from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import RESULTS, TIME, describe_followed, phrase_comparison
from orchestrator.model import Comparison
from orchestrator.plan.pairs import ALPHA
from orchestrator.profiling.report import describe_difference
from orchestrator.profiling.stored import read_profile
from orchestrator.reports.columns import Notes, format_verdict
from orchestrator.reports.grid import Grid
from orchestrator.reports.magnitudes import show_estimate, show_interval, show_magnitude
from orchestrator.reports.table import below
from orchestrator.results.run_folder import RunFolder
from orchestrator.stats.scale import RATIOS
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.strict_json import OF_DIFFERENCE, OF_RATIO, pick
from orchestrator.terminal.text import safe_text
from orchestrator.why.ladder import Explanation, JudgedRung
from orchestrator.why.run import COUNTS, WhyActions, WhyOutcome, read_findings
from orchestrator.why.state import SEARCH, WhyState

SCHEMA = "tfcompare.why/1"
FINDING = f"verdict size {OF_RATIO} {OF_DIFFERENCE} rounds reason?"
NARROWEST = 16
# An answer lists at most this many functions in which two profiles differ, and this many rungs that matter.
MOST_FUNCTIONS, MOST_CAUSES = 3, 3
# The product of the rungs may differ from the whole by this much before a line names the gap.
SHOWN_GAP = 0.03


@dataclass(frozen=True)
class Remedy:
    """A target that was measured between the two ends, against each of them."""

    name: str
    text: str
    claim: str
    to_new: BisectFinding
    to_old: BisectFinding | None

    @property
    def helps(self) -> bool:
        """Whether the case is certainly better than in the new target."""
        return self.to_new.verdict == "faster"


@dataclass(frozen=True)
class WhyAnswer:
    """A question with all that is known about it."""

    outcome: WhyOutcome
    actions: WhyActions = field(default_factory=WhyActions)

    @property
    def state(self) -> WhyState:
        return self.outcome.state

    @property
    def explanation(self) -> Explanation:
        return self.outcome.explanation

    @property
    def is_worse(self) -> bool:
        """Whether the new target is certainly worse, or cannot be measured, so that something has to help."""
        whole = self.explanation.whole
        return bool(self.explanation.death) or (whole is not None and whole.verdict == "slower")

    @cached_property
    def names(self) -> tuple[str, str]:
        """The names of the two ends, which the first ladder knows."""
        question, ladders = self.state.question, self.state.ladders
        return (ladders[0].ladder.names[0], ladders[0].ladder.names[-1]) if ladders else (question.old, question.new)

    @cached_property
    def by_text(self) -> Mapping[str, str]:
        """The names of all targets of ladders by their texts."""
        ladders = (step.ladder for step in self.state.ladders)
        return {text: name for each in ladders for text, name in zip(each.texts, each.names, strict=True)}

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """The targets with a single cause undone, and those of claims, the one that helps most first."""
        found: dict[str, Remedy] = {}
        if not self.is_worse:
            return ()
        for texts, run in self._list_tried():
            findings = read_findings(self.actions.judge(RunFolder.open(self.outcome.path / run)), self._metric)
            old, new = self.names
            for name, (text, claim) in texts.items():
                against_new = findings.get((name, new))
                if against_new and name not in found:
                    found[name] = Remedy(name, text, claim, _turn(against_new), findings.get((old, name)))
        return tuple(sorted(found.values(), key=lambda each: each.to_new.estimate or 0.0))

    @property
    def helping(self) -> tuple[str, ...]:
        """The targets that help or, if the case no longer runs, those in which it may run again."""
        if self.explanation.death:
            return tuple(dict.fromkeys(text for texts, _ in self._list_tried() for text, _ in texts.values()))
        return tuple(remedy.text for remedy in self.remedies if remedy.helps)

    def _list_tried(self) -> Iterator[tuple[dict[str, tuple[str, str]], str]]:
        """Yield the runs in which something was tried, each with the texts and claims of these targets by name."""
        if self.state.remedies:
            yield {name: (text, claim) for name, text, claim in self.state.remedies.tried}, self.state.remedies.run
        # The target below the new one on the first ladder lacks what its highest rung has, and nothing else.
        for step in self.state.ladders[:1]:
            if len(step.ladder.rungs) > 1 and len(step.ladder.rungs[-1].causes) == 1:
                yield {step.ladder.names[-2]: (step.ladder.texts[-2], "")}, step.run

    @property
    def _metric(self) -> str:
        return self.state.question.metric

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The functions, or the layer, in which the profiles of the largest rung differ."""
        if not self.state.profile:
            return ()
        try:
            return describe_difference(read_profile(self.outcome.path / self.state.profile))[:MOST_FUNCTIONS]
        except TfCompareError:
            return ()

    @cached_property
    def counts(self) -> Comparison | None:
        """How many more Python functions a call runs on the largest rung, if both counts are exact and differ."""
        rung = next(iter(self.explanation.mattering), None)
        if rung is None or self._metric != TIME or rung.death:
            return None
        evaluation = self.actions.judge(RunFolder.open(self.outcome.path / self.state.ladders[rung.ladder].run))
        pair = (self.by_text[rung.lower], self.by_text[rung.upper])
        counted = evaluation.metrics.get(COUNTS, ())
        found = (each for each in counted if (str(each.pair.arms[0].target), str(each.pair.arms[1].target)) == pair)
        return next((each for each in found if each.verdict in ("slower", "faster")), None)

    @cached_property
    def search(self) -> searches.State | None:
        path = self.outcome.path / SEARCH
        return searches.read_state(path) if searches.exists(path) else None


def _turn(finding: BisectFinding) -> BisectFinding:
    """Return the finding about the new target against a remedy as one about the remedy."""
    turned: Any = {"slower": "faster", "faster": "slower"}.get(finding.verdict, finding.verdict)
    estimate, ends = finding.estimate, finding.ends
    scale = RATIOS if finding.metric == RESULTS else METRICS[finding.metric].scale
    fields = {} if estimate is None else scale.as_fields(-estimate, (-ends[1], -ends[0]) if ends else None)
    return BisectFinding(
        earlier=finding.later, later=finding.earlier, verdict=turned, metric=finding.metric, rounds=finding.rounds,
        reason=finding.reason, size=finding.size, **fields,
    )  # fmt: skip


def layout_answer(answer: WhyAnswer, width: int) -> RenderableType:
    notes = Notes()
    parts: list[RenderableType] = [
        safe_text(f"tfcompare why {answer.state.case.label}", style="bold"),
        safe_text(describe_measuring(answer), style="dim"),
        safe_text(tell_whole(answer), style="bold"),
    ]
    if answer.explanation.rungs and (len(answer.explanation.rungs) > 1 or answer.explanation.death):
        parts += [Text(), _table(answer, notes)]
    if lines := tell_answer(answer):
        parts += [Text(), *map(safe_text, lines)]
    parts += [safe_text(f"note: {note}", style="yellow") for note in answer.state.notes]
    parts += [safe_text(f"next: {command}") for command in list_commands(answer)]
    return Group(*parts, *below(notes.lines(ALPHA)))


def describe_findings(answer: WhyAnswer) -> tuple[str, ...]:
    """Return what was found out: why the two differ, or that no difference is shown."""
    explanation = answer.explanation
    differs = explanation.death or (explanation.whole and explanation.whole.changed)
    return tuple(tell_answer(answer)) if differs else (f"measured side by side: {tell_whole(answer)}",)


def tell_answer(answer: WhyAnswer) -> list[str]:
    return [*tell_why(answer), *tell_where(answer), *tell_when(answer), *tell_help(answer)]


def describe_measuring(answer: WhyAnswer) -> str:
    state = answer.state
    host, run = state.host, state.question.run
    metric = state.question.metric
    margin = "" if metric == RESULTS else f"margin {METRICS[metric].scale.show_margin(_margin(state))}"
    runs = len(state.ladders) + bool(state.remedies)
    parts = (
        f"{answer.names[1]} against {answer.names[0]}",
        describe_followed(metric, run.judge),
        state.engine,
        run.environments.device,
        f"{host.get('cpu')}, {host.get('usable_cores')} cores",
        margin,
        f"{format_count(runs, 'run')} in {state.seconds / 60:.1f} min",
    )
    return " · ".join(str(part) for part in parts if part)


def _margin(state: WhyState) -> float:
    run, spec = state.question.run, METRICS[state.question.metric]
    return run.margins.get(spec.name, run.margin if spec.margin is None else spec.margin)


def tell_whole(answer: WhyAnswer) -> str:
    (old, new), explanation = answer.names, answer.explanation
    if explanation.death:
        return f"{explanation.death}"
    whole = explanation.whole
    if whole is None:
        return "Nothing has been measured yet."
    how = {"same": "is the same as", "inconclusive": "cannot be distinguished from"}.get(
        whole.verdict, phrase_comparison(whole.metric, whole.verdict)
    )
    figures = whole.reason if whole.estimate is None else show_magnitude(whole, whole.metric)
    return f"{new} {how} {old}: {figures}."


def _table(answer: WhyAnswer, notes: Notes) -> Grid:
    metric = answer.state.question.metric
    is_difference = metric != RESULTS and bool(METRICS[metric].units)
    headers = ("changed", "difference" if is_difference else "ratio", "interval", "verdict", "share")
    grid = Grid(
        title=safe_text("what differs, from the old target to the new one", style="bold"),
        headers=headers,
        right=(False, True, True, False, True),
        narrowest=NARROWEST,
    )
    for rung in answer.explanation.rungs:
        finding = rung.finding
        if rung.death:
            grid.add(rung.rung.title, "", "", safe_text("died", style="bold red"), "")
        elif finding is None:
            grid.add(rung.rung.title, "", "", "not measured", "")
        else:
            share = answer.explanation.share(rung)
            grid.add(
                rung.rung.title,
                show_estimate(finding, metric),
                show_interval(finding, metric),
                format_verdict(finding, finding.reason, notes, metric=metric),
                "" if share is None else f"{share:.0%}",
            )
    if (product := _show_product(answer)) and len(answer.explanation.rungs) > 1:
        grid.add("all of them together", product, "", "", "")
    return grid


def _show_product(answer: WhyAnswer) -> str:
    product, metric = answer.explanation.product, answer.state.question.metric
    if product is None or metric == RESULTS:
        return ""
    return show_estimate(
        BisectFinding(earlier="", later="", metric=metric, **METRICS[metric].scale.as_fields(product, None)), metric
    )


def tell_why(answer: WhyAnswer) -> Iterator[str]:
    """Yield what the rungs show; only a rung that was measured gets the word `why`."""
    explanation = answer.explanation
    mattering, whole = explanation.mattering, explanation.whole
    if whole is None and not explanation.death:
        return
    if not mattering:
        if whole and whole.verdict == "same":
            yield "There is nothing to explain."
        elif whole and whole.changed:
            yield "No single change is shown to have caused it."
        return
    if len(explanation.rungs) == 1 and not explanation.death:
        yield f"They differ in nothing else that can be undone, so the cause is {mattering[0].rung.title}."
        return
    for rung in mattering[:MOST_CAUSES]:
        yield f"Why: {_tell_rung(rung, explanation)}"
    if whole and whole.verdict == "same" and len(mattering) > 1:
        yield "These changes cancel each other."
    if gap := _tell_gap(answer):
        yield gap


def _tell_rung(rung: JudgedRung, explanation: Explanation) -> str:
    if rung.death:
        return f"with {rung.rung.title}, it no longer runs"
    assert rung.finding is not None
    text = f"{rung.rung.title}: {format_finding(rung.finding)}"
    share = explanation.share(rung)
    return text if share is None else f"{text}, {share:.0%} of the change"


def _tell_gap(answer: WhyAnswer) -> str:
    whole, product = answer.explanation.whole, answer.explanation.product
    if whole is None or whole.estimate is None or product is None or len(answer.explanation.rungs) < 2:
        return ""
    gap = whole.estimate - product
    is_ratio = answer.state.question.metric == RESULTS or not METRICS[answer.state.question.metric].units
    if not is_ratio or abs(gap) <= SHOWN_GAP:
        return ""
    return f"The whole is {math.exp(gap):.2f} times the product: some changes matter more or less together."


def tell_where(answer: WhyAnswer) -> Iterator[str]:
    if counts := answer.counts:
        yield f"where: {format_finding_of_counts(counts)}"
    if answer.functions:
        yield f"where: {'; '.join(answer.functions)}"


def format_finding_of_counts(comparison: Comparison) -> str:
    more = "more" if comparison.verdict == "slower" else "fewer"
    return f"a call runs {more} Python functions: {comparison.ratio:.3g} times as many"


def tell_when(answer: WhyAnswer) -> Iterator[str]:
    search = answer.search
    if search is None or not search.measured:
        return
    result = search.search_result
    part = result.main or result.narrowest
    if part is None or part.finding is None:
        yield f"when: {conclusions(search, result)[0]}"
        return
    left = f", {format_count(len(part.inside), 'version')} between them not measured yet" if part.inside else ""
    yield f"when: {part.earlier} -> {part.later}, {format_finding(part.finding)}{left}"


def tell_help(answer: WhyAnswer) -> Iterator[str]:
    old, new = answer.names
    for remedy in answer.remedies:
        if remedy.helps:
            back = f"; against {old}, {format_finding(remedy.to_old)}" if remedy.to_old else ""
            claim = f", as the claim {remedy.claim} says" if remedy.claim else ""
            yield f"helps: {remedy.text}: {format_finding(remedy.to_new)} against {new}{back}{claim}"


def list_commands(answer: WhyAnswer) -> Iterator[str]:
    """Yield the commands that continue."""
    state, path = answer.state, answer.outcome.path
    search = answer.search
    if search and not search.search_result.main and search.search_result.wanted:
        yield shlex.join(["tfcompare", "bisect", "--resume", str(path / SEARCH)])
    elif search is None and (ends := _find_releases(answer)):
        yield _search_releases(state, *ends)
    whole = answer.explanation.whole
    is_open = whole is None or whole.verdict == "inconclusive"
    if is_open and not answer.explanation.death:
        longer = f"{math.ceil(state.question.budget_s * 2 / 60)}m"
        yield shlex.join(["tfcompare", "why", "--resume", str(path), "--budget", longer])


def _search_releases(state: WhyState, good: str, bad: str) -> str:
    """Return the command that searches the releases as this question measured them."""
    run, metric = state.question.run, state.question.metric
    words = ["tfcompare", "bisect", "--good", good, "--bad", bad, "--case", state.case.label]
    words += ["--engine", state.engine] if state.engine else []
    words += ["--gpu"] if run.environments.gpu else []
    words += ["--metric", metric] if metric != TIME else []
    words += ["--judge", run.judge] if run.judge != "wall" else []
    words += ["--workload-folder", str(run.own_workloads)] if run.own_workloads else []
    words += [word for name, path in run.data.items() for word in ("--data", f"{name}={path}")]
    return shlex.join(words)


def _find_releases(answer: WhyAnswer) -> tuple[str, str] | None:
    """Return the older and the newer end if TensorFlow itself matters most and both are releases, or None."""
    rung = next((each for each in answer.explanation.mattering if not each.death), None)
    if rung is None or not rung.rung.rest or rung.rung.causes or answer.state.question.run.program:
        return None
    try:
        good, bad = sorted(answer.names, key=Version)
    except InvalidVersion:
        return None
    return good, bad


def answer_as_object(answer: WhyAnswer) -> dict[str, Any]:
    """Return the `tfcompare.why/1` object, which is part of the interface."""
    state, explanation = answer.state, answer.explanation
    old, new = answer.names
    return {
        "schema": SCHEMA,
        **pick(state.case, "workload params"),
        "metric": state.question.metric,
        "judge": state.question.run.judge,
        "engine": state.engine,
        "device": state.question.run.environments.device,
        "host": state.host,
        "created": state.created.isoformat(),
        "old": {"name": old, "target": state.question.old},
        "new": {"name": new, "target": state.question.new},
        "budget_s": state.question.budget_s,
        "seconds": state.seconds,
        "whole": explanation.whole and pick(explanation.whole, FINDING),
        "death": explanation.death or None,
        "rungs": [
            {
                "changed": list(rung.rung.causes),
                "rest": rung.rung.rest or None,
                "lower": rung.lower,
                "upper": rung.upper,
                "finding": rung.finding and pick(rung.finding, FINDING),
                "death": rung.death or None,
                "share": explanation.share(rung),
                "matters": rung in explanation.mattering,
                "run": state.ladders[rung.ladder].run,
            }
            for rung in explanation.rungs
        ],
        "product": explanation.product,
        "why": list(tell_why(answer)),
        "where": list(tell_where(answer)),
        "when": list(tell_when(answer)),
        "remedies": [
            {
                **pick(remedy, "name target=text claim?"),
                "to_new": pick(remedy.to_new, FINDING),
                "to_old": remedy.to_old and pick(remedy.to_old, FINDING),
                "helps": remedy.helps,
            }
            for remedy in answer.remedies
        ],
        "notes": list(state.notes),
        "next": list(list_commands(answer)),
    }
