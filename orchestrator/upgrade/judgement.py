"""Judges each target of a run by gates: what trips a gate, and what could trip one but is still undecided."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from orchestrator.metrics import METRICS, OUTPUT, find_margin, scale_of
from orchestrator.metrics.followed import TIME, describe_change
from orchestrator.metrics.gates import DIED, Gate
from orchestrator.model import ArmResult, Comparison, Evaluation, OutputComparison
from orchestrator.reports.magnitudes import show_magnitude
from orchestrator.results.sketches import show_share

# These gates apply unless the user names others. A program returns nothing that could be compared.
OF_PROGRAMS = "slower>10%,memory:more>25%,died"
OF_WORKLOADS = f"{OF_PROGRAMS},output:differs"


@dataclass(frozen=True)
class Obstacle:
    """What is in the way of a move: the gate, the case, what was found, and how far it is from no difference."""

    gate: str
    metric: str
    case: str
    text: str
    distance: float = 0.0
    # A run of one case need not name it.
    is_named: bool = True

    def __str__(self) -> str:
        return f"{self.case}: {self.text}" if self.is_named else self.text


@dataclass(frozen=True)
class TargetJudgement:
    """The result of judging a target by gates, against the baseline of its run."""

    tripped: tuple[Obstacle, ...]
    # Each of these may be above its gate, as far as it was measured.
    open: tuple[Obstacle, ...]
    # This is true if at least one case was measured in both. Otherwise, it means nothing that no gate was tripped.
    is_measured: bool

    @property
    def passes(self) -> bool:
        return self.is_measured and not self.tripped

    @property
    def is_shown(self) -> bool:
        """Whether it passes, and more rounds cannot change that; whether results are equal may never be known."""
        return self.passes and not any(each.metric in METRICS for each in self.open)

    @property
    def worst(self) -> Obstacle | None:
        """The obstacle that exceeds its gate by most; a death comes first, and then different results."""
        order = {DIED: 0, OUTPUT: 1}
        ranked = sorted(self.tripped, key=lambda each: (order.get(each.metric, 2), -each.distance))
        return next(iter(ranked), None)


def judge_target(evaluation: Evaluation, gates: Sequence[Gate], target: str) -> TargetJudgement:
    """Judge a target of a run, whose first target is the baseline."""
    tripped, still_open = list[Obstacle](), list[Obstacle]()
    lost = set[str]()
    for arm in _find_lost(evaluation, target):
        lost.add(arm.case.label)
        fails = arm.outcome == DIED and any(gate.verdict == DIED for gate in gates)
        obstacle = Obstacle(DIED, DIED, arm.case.label, f"{arm.outcome}: {arm.reason}")
        (tripped if fails else still_open).append(obstacle)
    for gate in gates:
        if gate.metric == OUTPUT:
            for output in (each for each in evaluation.outputs if str(each.candidate) == target):
                if gate.matches_output(output):
                    tripped.append(_describe_output(gate, output))
                elif output.verdict == "not comparable":
                    still_open.append(_describe_output(gate, output))
        elif gate.verdict != DIED:
            for row in _find_rows(evaluation, gate, target):
                # Nothing can be shown about a case that did not run, and more rounds would not change that.
                if row.pair.arms[0].case in lost:
                    continue
                if gate.matches(row):
                    tripped.append(_describe_row(evaluation, gate, row))
                elif _may_match(evaluation, gate, row):
                    still_open.append(_describe_row(evaluation, gate, row))
    is_named = len(evaluation.plan.cases) > 1
    measured = {(arm.case.label, str(arm.target)) for arm in evaluation.arms if arm.outcome == "measured"}
    baseline = str(evaluation.plan.targets[0])
    tripped, still_open = ([replace(each, is_named=is_named) for each in found] for found in (tripped, still_open))
    is_measured = any({(case.label, baseline), (case.label, target)} <= measured for case in evaluation.plan.cases)
    return TargetJudgement(tuple(tripped), tuple(still_open), is_measured)


def _find_lost(evaluation: Evaluation, target: str) -> Iterator[ArmResult]:
    """Yield the arms of the target that were not measured; those that the baseline lacks as well say nothing of it."""
    baseline = str(evaluation.plan.targets[0])
    measured = {arm.case.label for arm in evaluation.arms if str(arm.target) == baseline and arm.outcome == "measured"}
    for arm in evaluation.arms:
        if str(arm.target) == target and arm.outcome != "measured" and arm.case.label in measured:
            yield arm


def _find_rows(evaluation: Evaluation, gate: Gate, target: str) -> Iterator[Comparison]:
    rows = evaluation.comparisons if gate.metric is None else evaluation.of_metrics + evaluation.comparisons
    for row in rows:
        wanted = gate.metric is None or row.pair.metric == gate.metric
        if wanted and row.pair.kind == "target" and str(row.pair.candidate) == target:
            yield row


def _may_match(evaluation: Evaluation, gate: Gate, row: Comparison) -> bool:
    """Return whether the interval of a row reaches beyond the gate's amount or, without an amount, the row's margin."""
    if row.ends is None:
        return True
    upper = row.ends[1] if gate.verdict == "slower" else -row.ends[0]
    margin = row.pair.margin if row.pair.margin is not None else find_margin(evaluation.plan, row.pair.metric)
    return upper > 0 and scale_of(row.pair.metric).from_scale(upper) > (gate.above or margin)


def _describe_row(evaluation: Evaluation, gate: Gate, row: Comparison) -> Obstacle:
    metric = row.pair.metric
    figures = row.so_far or (row.reason if row.ends is None else show_magnitude(row, metric))
    named = "" if metric == TIME else f"{metric} "
    text = f"{named}{describe_change(metric, row.report_verdict)}, {figures}"
    return Obstacle(gate.text, metric, row.pair.arms[0].case, text, row.distance)


def _describe_output(gate: Gate, output: OutputComparison) -> Obstacle:
    share = "" if output.difference is None else f" by {show_share(output.difference)}"
    reason = f": {output.reason}" if output.reason else ""
    text = f"results {output.verdict}{share}{reason}"
    return Obstacle(gate.text, OUTPUT, output.case.label, text, output.difference or 0.0)
