"""The verdict of a judged run on each of its claims."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from orchestrator.metrics import scale_of
from orchestrator.model import (
    ArmKey,
    ArmMetric,
    ArmResult,
    Bound,
    Case,
    CaseSet,
    Claim,
    Comparison,
    Effect,
    Evaluation,
    Expectation,
    Holds,
    Magnitude,
    MeanRatio,
    Metric,
    OutputComparison,
    Pair,
    Part,
    Returns,
    Share,
    Shares,
    Statement,
    Target,
    TargetPair,
)
from orchestrator.stats.looks import FEWEST_ROUNDS

Answer = Literal["reproduced", "reproduced, smaller", "not reproduced", "inconclusive", "needs a GPU"]

# A claim gets the first of these answers that any of its statements has.
WORST: tuple[Answer, ...] = ("not reproduced", "inconclusive", "reproduced, smaller")
# An effect needs this verdict at the pair's margin; a control must not show it.
REQUIRED_VERDICTS: Mapping[Effect, str] = {
    "slower": "slower", "more": "slower", "faster": "faster", "less": "faster", "same": "same",
    "not slower": "slower", "not more": "slower", "not faster": "faster", "not less": "faster",
}  # fmt: skip
# A single round shows these as well as many rounds do.
COUNTS: frozenset[ArmMetric] = frozenset({"traces", "traces_per_call"})
# The figure of this metric, divided by this number, has the unit of the bound.
BOUND_METRICS: Mapping[ArmMetric, tuple[Metric, float]] = {
    "traces": ("traces", 1), "traces_per_call": ("traces_per_call", 1), "memory_mb": ("memory", 2**20),
    "import_s": ("import", 1e3), "build_s": ("build", 1e3), "time_s": ("time", 1e3),
}  # fmt: skip
# A profiler slows each Python function down differently, so this part of a published share is enough.
SHARE_SEEN = 0.5


@dataclass(frozen=True)
class ClaimCheck:
    """One statement of a claim and its result.

    `seen` is what was measured, with its interval where it has one: a comparison, or the figure of an arm as its ratio.
    `wins` are the numbers of slower and faster cases of a set; `output` is what is known of two results.
    """

    statement: Statement
    answer: Answer
    reason: str = ""
    seen: Magnitude | None = None
    wins: tuple[int, int] | None = None
    output: OutputComparison | None = None

    @property
    def is_open(self) -> bool:
        """Whether more rounds could still decide it."""
        return self.answer == "inconclusive" and not isinstance(self.statement, Share | Holds | Returns)

    @property
    def is_failed_control(self) -> bool:
        """Whether it is a comparison that the source lacks and that shows the effect as well."""
        ours = isinstance(self.statement, Expectation) and self.statement.ours
        return ours and self.answer == "not reproduced"


@dataclass(frozen=True)
class ClaimResult:
    claim: Claim
    answer: Answer
    findings: tuple[ClaimCheck, ...]

    @property
    def headline(self) -> Magnitude | None:
        """The magnitude that represents the claim in one line."""
        return self.findings[0].seen if self.findings else None

    @property
    def reason(self) -> str:
        """The reason why the claim was not simply reproduced."""
        if not self.findings:
            return "" if self.answer == "needs a GPU" else "it is tested only on a CPU: run it without --gpu"
        failed = [finding for finding in self.findings if finding.is_failed_control]
        if failed and self.answer == "inconclusive":
            return f"its control shows the effect as well: {_name_pair(failed[0].statement.pairs[0])}"
        others = (finding for finding in self.findings if not finding.is_failed_control)
        return next((finding.reason for finding in others if finding.answer == self.answer), "")


def judge_claims(evaluation: Evaluation, claims: Sequence[Claim]) -> tuple[ClaimResult, ...]:
    judge = _ClaimJudge(
        {comparison.pair: comparison for comparison in evaluation.comparisons},
        {arm.key: arm for arm in evaluation.arms},
        evaluation.shares,
        {(output.case, output.baseline, output.candidate): output for output in evaluation.outputs},
        evaluation.set_means,
    )
    judged = []
    for claim in claims:
        if evaluation.plan.device not in claim.devices:
            judged.append(ClaimResult(claim, "needs a GPU" if "gpu" in claim.devices else "inconclusive", ()))
            continue
        findings = tuple(map(judge.check, claim.statements))
        # A control that the source lacks refutes nothing. If it shows the effect, the effect may have another cause.
        answers = {"inconclusive" if finding.is_failed_control else finding.answer for finding in findings}
        # All statements must hold, so the claim fails if one of them does.
        answer: Answer = next((worse for worse in WORST if worse in answers), "reproduced")
        judged.append(ClaimResult(claim, answer, findings))
    return tuple(judged)


@dataclass(frozen=True)
class _ClaimJudge:
    comparisons: Mapping[Pair, Comparison]
    arms: Mapping[ArmKey, ArmResult]
    shares: Mapping[ArmKey, Shares]
    outputs: Mapping[tuple[Case, Target, Target], OutputComparison]
    means: Mapping[CaseSet, MeanRatio]

    def check(self, statement: Statement) -> ClaimCheck:
        match statement:
            case Expectation():
                comparison = self.comparisons[statement.pair]
                return _control(statement, comparison) if statement.is_control else _effect(statement, comparison)
            case CaseSet():
                of_cases = [self.comparisons[pair] for pair in statement.pairs]
                return _set(statement, of_cases, self.means.get(statement))
            case Part():
                return _part(statement, self.comparisons[statement.step], self.comparisons[statement.whole])
            case Bound():
                return _bound(statement, self.arms[statement.arm])
            case Share():
                return _share(statement, self.shares.get(statement.arm), self.arms[statement.arm])
            case Holds():
                return _holds(statement, self.arms[statement.arm])
            case Returns():
                output = self.outputs.get((statement.case, statement.baseline, statement.candidate))
                return _returns(statement, output, [self.arms[arm] for arm in statement.arms])
        assert_never(statement)


def _effect(expectation: Expectation, comparison: Comparison) -> ClaimCheck:
    def check(answer: Answer, reason: str = "") -> ClaimCheck:
        return ClaimCheck(expectation, answer, reason, comparison)

    if comparison.verdict == REQUIRED_VERDICTS[expectation.effect]:
        # The verdict `slower` does not require an estimate beyond the margin.
        margin = scale_of(comparison.pair.metric).to_scale(expectation.pair.margin or 0.0)
        if comparison.verdict != "same" and comparison.distance < margin:
            return check("inconclusive", "it differs, but not clearly by as much as that")
        if expectation.published is not None and _strongest(comparison) < expectation.published:
            return check("reproduced, smaller", f"the interval leaves out the published {expectation.published:.3g}x")
        return check("reproduced")
    if comparison.verdict == "inconclusive":
        return check("inconclusive", comparison.reason)
    if comparison.verdict == "same":
        return check("not reproduced", "the difference is smaller than that")
    if expectation.effect != "same":
        return check("not reproduced", "it is the other way round")
    if comparison.size == "beyond":
        return check("not reproduced", "it differs")
    return check("inconclusive", "it differs, but not clearly by more than that")


def _strongest(comparison: Comparison) -> float:
    """Return the end of the interval that is farther from 1, as a factor above 1."""
    if comparison.ci_low is None or comparison.ci_high is None:
        return math.inf
    return comparison.ci_high if (comparison.ratio or 1.0) > 1 else 1 / comparison.ci_low


def _control(expectation: Expectation, comparison: Comparison) -> ClaimCheck:
    """Judge a pair that must not show the effect: its whole interval has to stay below what the effect needs."""
    if comparison.ends is None:
        return ClaimCheck(expectation, "inconclusive", comparison.reason, comparison)
    bound = scale_of(comparison.pair.metric).to_scale(expectation.pair.margin or 0.0)
    low, high = comparison.ends
    least, most = (low, high) if REQUIRED_VERDICTS[expectation.effect] == "slower" else (-high, -low)
    if most < bound:
        return ClaimCheck(expectation, "reproduced", seen=comparison)
    if least >= bound:
        return ClaimCheck(expectation, "not reproduced", "the control shows the effect as well", comparison)
    reason = "" if comparison.row_only else comparison.reason
    reason = reason or "the control shows something of the effect"
    return ClaimCheck(expectation, "inconclusive", reason, comparison)


def _set(together: CaseSet, comparisons: Sequence[Comparison], mean: MeanRatio | None) -> ClaimCheck:
    """Judge cases together, none of which may be missing."""
    missing = [
        comparison
        for comparison in comparisons
        if not comparison.ratio or not comparison.ci_low or not comparison.ci_high
    ]
    if missing:
        reason = f"{len(missing)} of {len(comparisons)} cases have no interval: {missing[0].reason}"
        return ClaimCheck(together, "inconclusive", reason)
    if mean is None:
        return ClaimCheck(together, "inconclusive", "its cases share too few rounds")
    seen = Magnitude(ratio=mean.ratio, ci_low=mean.ci_low, ci_high=mean.ci_high)
    if bound := together.mean_within:
        low, high = mean.ci_low or 0.0, mean.ci_high or math.inf
        if 1 / bound < low and high < bound:
            return ClaimCheck(together, "reproduced", seen=seen)
        if low >= bound or high <= 1 / bound:
            return ClaimCheck(together, "not reproduced", "on average they differ", seen)
        return ClaimCheck(together, "inconclusive", "the interval of the mean reaches beyond that", seen)
    counts = {verdict: sum(each.verdict == verdict for each in comparisons) for verdict in ("slower", "faster")}
    unsure = sum(each.verdict == "inconclusive" for each in comparisons)
    wins = (counts["slower"], counts["faster"])
    more, less = wins if together.more_often == "slower" else wins[::-1]
    if more > less + unsure:
        return ClaimCheck(together, "reproduced", seen=seen, wins=wins)
    if more + unsure <= less:
        return ClaimCheck(together, "not reproduced", "it is not more often so than the other way round", seen, wins)
    return ClaimCheck(together, "inconclusive", f"{unsure} of {len(comparisons)} cases are open", seen, wins)


def _part(part: Part, step: Comparison, whole: Comparison) -> ClaimCheck:
    """Judge by the ends of both intervals, because the two share their baseline and are not independent."""
    if missing := next((each for each in (step, whole) if not each.ci_low or not each.ci_high), None):
        return ClaimCheck(part, "inconclusive", missing.reason)
    # Both lists hold the logs of a lower end, a ratio, and an upper end.
    near, far = ([math.log(end or 1.0) for end in (each.ci_low, each.ratio, each.ci_high)] for each in (step, whole))
    if far[0] <= 0 <= far[2]:
        return ClaimCheck(part, "inconclusive", "the whole difference is not certain")
    if far[2] < 0:
        near, far = ([-log for log in reversed(logs)] for logs in (near, far))
    parts = sorted(end / of for end in (near[0], near[2]) for of in (far[0], far[2]))
    seen = Magnitude(ratio=near[1] / far[1], ci_low=parts[0], ci_high=parts[-1])
    if parts[0] >= part.at_least:
        return ClaimCheck(part, "reproduced", seen=seen)
    if parts[-1] < part.at_least:
        return ClaimCheck(part, "not reproduced", "it is a smaller part", seen)
    return ClaimCheck(part, "inconclusive", "the interval of the part reaches below that", seen)


def _bound(bound: Bound, arm: ArmResult) -> ClaimCheck:
    first_ms, time_ms = arm.figures.get("first", 0.0) / arm.steps, arm.time_ms
    if bound.metric == "first_over_time":
        figure = first_ms / time_ms if first_ms and time_ms else None
    elif bound.metric == "first_s":
        figure = first_ms / 1e3 if first_ms else None
    else:
        name, divisor = BOUND_METRICS[bound.metric]
        figure = arm.figures[name] / divisor if name in arm.figures else None
    if arm.outcome != "measured" or figure is None:
        return ClaimCheck(bound, "inconclusive", arm.reason or "its worker did not say")
    seen = Magnitude(ratio=figure)
    if bound.metric not in COUNTS and arm.rounds < FEWEST_ROUNDS:
        return ClaimCheck(bound, "inconclusive", f"{arm.rounds} rounds are too few to tell", seen)
    if bound.at_least is not None and figure < bound.at_least:
        return ClaimCheck(bound, "not reproduced", "it is less", seen)
    if bound.at_most is not None and figure > bound.at_most:
        return ClaimCheck(bound, "not reproduced", "it is more", seen)
    return ClaimCheck(bound, "reproduced", seen=seen)


def _name_pair(pair: Pair) -> str:
    baseline, candidate = pair.arms
    if isinstance(pair, TargetPair):
        return f"{candidate.target} v {baseline.target}, {candidate.case}"
    return f"{candidate.case} v {baseline.case} in {pair.target}"


def _share(share: Share, profiled: Shares | None, arm: ArmResult) -> ClaimCheck:
    seen = profiled.shares.get(share.function) if profiled else None
    if seen is None:
        reason = arm.reason or (profiled.reason if profiled else "")
        return ClaimCheck(share, "inconclusive", reason or "the run ended before it was profiled")
    if seen < SHARE_SEEN * share.published:
        return ClaimCheck(share, "not reproduced", "it takes a smaller share", Magnitude(ratio=seen))
    return ClaimCheck(share, "reproduced", seen=Magnitude(ratio=seen))


def _holds(held: Holds, arm: ArmResult) -> ClaimCheck:
    if arm.outcome == "measured":
        return ClaimCheck(held, "reproduced")
    return ClaimCheck(held, "not reproduced" if arm.refuted else "inconclusive", arm.reason)


def _returns(returns: Returns, output: OutputComparison | None, arms: Sequence[ArmResult]) -> ClaimCheck:
    if output is None:
        reason = next((arm.reason for arm in arms if arm.outcome != "measured"), "")
        return ClaimCheck(returns, "inconclusive", reason or "the run ended before both had returned something")
    if output.verdict == "not comparable":
        return ClaimCheck(returns, "inconclusive", output.reason, output=output)
    if (output.verdict == "differs") == (returns.expected == "differs"):
        return ClaimCheck(returns, "reproduced", output=output)
    reason = "the results differ" if output.verdict == "differs" else "the results are equal"
    return ClaimCheck(returns, "not reproduced", reason, output=output)
