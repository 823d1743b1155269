"""Turns samples into a judged comparison for every pair of the plan."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from orchestrator.model import ArmKey, ArmResult, Comparison, MeanRatio, Metric, Pair, Plan, Target, VerdictName
from orchestrator.stats.called import estimate_called
from orchestrator.stats.dependence import Dependence, find_dependence
from orchestrator.stats.drift import drift_of_ratio
from orchestrator.stats.limits import FEWEST_SHARED
from orchestrator.stats.looks import FEWEST_ROUNDS, BystanderSchedule, LookSchedule, Stretch, make_schedule
from orchestrator.stats.paired import Estimate, hodges_lehmann, sign_flip_p
from orchestrator.stats.round_times import Sample, compare_rounds
from orchestrator.stats.scale import MOST_LOG, RATIOS, MetricScale
from orchestrator.stats.shared_variance import find_share_of_error, share_variance
from orchestrator.stats.verdict import Levels, describe_noise, judge_estimate, seed_percent, smallest_shown

# The keys are case label, version and metric. Each value holds the figures on the metric's scale by round.
Samples = Mapping[tuple[str, Target, Metric], Mapping[int, Sample]]

Schedule = LookSchedule | BystanderSchedule
# Chance may explain at most this share of the comparisons that are called slower or faster.
FALSE_DISCOVERIES = 0.05
# No more than this share of equal arms is called slower or faster in all looks together. Trimming alone would raise the
# share, but intervals that reach towards the mean of all rounds compensate for it.
MOST_CALLED_DIFFERENT = DIFFERENCE_ERROR = 0.025
# A shorter call consists mostly of the two clock readings around it.
SHORTEST_MS = 0.005
TOO_SHORT = "its calls are too short to be timed one by one: let a call do more, and say how much with step.steps"
TOO_IDLE = "its calls take too little CPU time to be judged by it"

ScaleOf = Callable[[Metric], MetricScale]


@dataclass(frozen=True)
class MeasuredPart:
    """Cases that were measured separately from others, and their looks. Their noise is estimated from them alone."""

    number: int
    schedule: Schedule


# The keys are labels of cases. Cases that are missing were measured together.
Parts = Mapping[str, MeasuredPart]
# A family has a metric, and the number of a part if there are parts.
Family = tuple[Metric, int | None]
# The keys are metric, arm and round. A rise is how the later half of the bursts differs from the earlier half.
Rises = Mapping[Metric, Mapping[ArmKey, Mapping[int, Sample]]]


@dataclass(frozen=True)
class MeasuredPair:
    """The estimate from the rounds of a pair, and the number of the last round, which determines the look."""

    estimate: Estimate
    last_round: int

    def count_fewest(self, schedule: Schedule) -> int:
        """Return the fewest rounds that are judged; a comparison that borrows nothing must know its own scatter."""
        return schedule.fewest if self.estimate.prior else max(schedule.fewest, FEWEST_ROUNDS)

    def is_judged(self, schedule: Schedule) -> bool:
        return self.estimate.rounds >= self.count_fewest(schedule)

    def adjust(self, schedule: Schedule) -> float:
        """Return the smallest error, for all looks together, at which these rounds are found to differ."""
        return min(schedule.adjust(self.estimate.p, self.last_round) / find_share_of_error(self.estimate), 1.0)

    def find_levels(self, schedule: Schedule, same: float, differ: float) -> Levels:
        """Return the levels of the look that judges these rounds, if all looks share these errors."""
        share = find_share_of_error(self.estimate)
        return Levels(schedule.level(self.last_round, same), schedule.level(self.last_round, share * differ))


def judge_pairs(
    plan: Plan,
    samples: Samples,
    arms: Sequence[ArmResult],
    schedule: Schedule | None = None,
    rises: Rises | None = None,
    *,
    parts: Parts | None = None,
    scale_of: ScaleOf = lambda metric: RATIOS,
    flip: bool = False,
) -> tuple[Comparison, ...]:
    """Judge every pair of the plan.

    Each metric has a separate correction for the number of its comparisons, so that many comparisons of one metric
    take no power from another. `flip` adds the sign-flip p, which no verdict depends on.
    """
    whole = schedule or make_schedule([Stretch(plan.looks)])
    parts = parts or {}
    by_key = {arm.key: arm for arm in arms}
    schedules = [part.schedule if (part := parts.get(pair.arms[0].case)) else whole for pair in plan.pairs]
    measured = measure_together(samples, plan.pairs, scale_of, parts)
    ps = [
        rounds.adjust(pair_schedule) if rounds and rounds.is_judged(pair_schedule) else None
        for pair_schedule, rounds in zip(schedules, measured, strict=True)
    ]
    families: dict[Metric, list[float | None]] = defaultdict(list)
    for pair, p in zip(plan.pairs, ps, strict=True):
        families[pair.metric].append(p)
    errors = {metric: _error_of_each(of_metric) for metric, of_metric in families.items()}
    counts = {metric: len(of_metric) for metric, of_metric in families.items()}
    return tuple(
        _Judge(plan, pair_schedule, errors, counts, rises or {}, scale_of, flip).comparison(
            pair, rounds, p, median, [by_key[key] for key in pair.arms], samples
        )
        for pair, pair_schedule, rounds, p, median in zip(
            plan.pairs, schedules, measured, ps, _find_medians(measured), strict=True
        )
    )


def estimate_pair(samples: Samples, pair: Pair, scale: MetricScale = RATIOS) -> MeasuredPair | None:
    """Estimate the difference of a pair from the rounds that both arms finished; None for fewer than two rounds."""
    differences = _compare_rounds(samples, pair)
    if len(differences) < 2:
        return None
    return MeasuredPair(Estimate(tuple(differences.values()), scale.resolution), max(differences))


def _find_medians(measured: Sequence[MeasuredPair | None]) -> list[float]:
    """Return the median of all pairwise means of rounds for each pair, 0 for one that was not measured."""
    by_rounds: dict[int, dict[int, tuple[float, ...]]] = defaultdict(dict)
    for place, rounds in enumerate(measured):
        if rounds:
            by_rounds[rounds.estimate.rounds][place] = rounds.estimate.differences
    medians = [0.0] * len(measured)
    for rows in by_rounds.values():
        for place, median in zip(rows, hodges_lehmann(list(rows.values())).tolist(), strict=True):
            medians[place] = median
    return medians


def _compare_rounds(samples: Samples, pair: Pair) -> dict[int, float]:
    return compare_rounds(*(samples.get((*key, pair.metric), {}) for key in pair.arms))


def measure_together(
    samples: Samples, pairs: Sequence[Pair], scale_of: ScaleOf = lambda metric: RATIOS, parts: Parts | None = None
) -> list[MeasuredPair | None]:
    """Estimate the differences of these pairs.

    Pairs of one metric that were measured together share their estimates of how rounds scatter, and of how rounds
    depend on each other.
    """
    measured = [estimate_pair(samples, pair, scale_of(pair.metric)) for pair in pairs]
    families: dict[Family, dict[int, MeasuredPair]] = defaultdict(dict)
    for index, (pair, rounds) in enumerate(zip(pairs, measured, strict=True)):
        if rounds and rounds.estimate.rounds >= FEWEST_SHARED:
            families[_family(pair, parts)][index] = rounds
    for family in families.values():
        shared = share_variance([rounds.estimate for rounds in family.values()])
        for (index, rounds), each in zip(family.items(), shared, strict=True):
            measured[index] = replace(rounds, estimate=each)
    dependence = _find_dependence(pairs, measured, parts)
    return [
        replace(rounds, estimate=dependence[_family(pair, parts)].widen(rounds.estimate)) if rounds else None
        for pair, rounds in zip(pairs, measured, strict=True)
    ]


def find_dependence_of_rounds(plan: Plan, samples: Samples, parts: Parts | None = None) -> dict[Family, Dependence]:
    """Return how rounds depend on each other in each family of pairs; this dependence widens intervals."""
    return _find_dependence(plan.pairs, [estimate_pair(samples, pair) for pair in plan.pairs], parts)


def _family(pair: Pair, parts: Parts | None) -> Family:
    part = parts.get(pair.arms[0].case) if parts else None
    return pair.metric, part.number if part else None


def _find_dependence(
    pairs: Sequence[Pair], measured: Sequence[MeasuredPair | None], parts: Parts | None
) -> dict[Family, Dependence]:
    """Return, for each family of comparisons, how their common rounds depend on each other."""
    families: dict[Family, list[Estimate]] = defaultdict(list)
    for pair, rounds in zip(pairs, measured, strict=True):
        if rounds:
            families[_family(pair, parts)].append(rounds.estimate)
    return {family: find_dependence(estimates) for family, estimates in families.items()}


def _error_of_each(ps: Sequence[float | None]) -> float:
    """Return the error, for all looks together, at which each of these comparisons is judged.

    The correction of Benjamini and Hochberg limits the share of found differences that are due to chance. The same
    error gives the intervals, so the interval of a comparison excludes 0 exactly if it is found to differ.
    """
    chances = [p for p in ps if p is not None]
    different = sum(p <= FALSE_DISCOVERIES for p in of_many(chances))
    return FALSE_DISCOVERIES * max(different, 1) / max(len(chances), 1)


def of_many(ps: Sequence[float]) -> list[float]:
    """Adjust each p so that, among those below a limit, no larger share is due to chance (Benjamini and Hochberg).

    scipy has this function in a part that takes longer to import than a report takes to draw. The tests compare the
    two.
    """
    order = sorted(range(len(ps)), key=ps.__getitem__, reverse=True)
    adjusted, least = [1.0] * len(ps), 1.0
    for above, index in enumerate(order):
        least = min(least, ps[index] * len(ps) / (len(ps) - above))
        adjusted[index] = least
    return adjusted


@dataclass(frozen=True)
class _Judge:
    plan: Plan
    schedule: Schedule
    error_of_each: Mapping[Metric, float]
    count: Mapping[Metric, int]
    rises: Rises
    scale_of: ScaleOf
    flip: bool

    def comparison(
        self,
        pair: Pair,
        rounds: MeasuredPair | None,
        p: float | None,
        median: float,
        arms: Sequence[ArmResult],
        samples: Samples,
    ) -> Comparison:
        unmeasured = [arm for arm in arms if arm.outcome != "measured"]
        # An arm that was not measured because another one is missing is not the cause.
        missing = min(unmeasured, key=lambda arm: arm.outcome == "not measured", default=None)
        if rounds is None:
            # The arm's reason is kept word for word, so that a report prints it only once.
            return leave_open(pair, missing.reason) if missing else self._describe_progress(pair, arms, samples)
        found, scale = rounds.estimate, self.scale_of(pair.metric)
        lacking = max(rounds.count_fewest(self.schedule) - found.rounds, 0)
        # A run has thousands of comparisons, and each is made only once, from its fields.
        fields = {**scale.as_fields(found.theta, None), "rounds": found.rounds, "verdict": "inconclusive"}
        if self.flip:
            fields["sign_flip_p"] = sign_flip_p(found.differences)
        if "ratio" in fields:
            fields["seed_percent"] = seed_percent(found.theta)
            fields["second_ratio"] = scale.as_fields(median, None)["ratio"]
        if not lacking:
            fields |= self._judge(pair, rounds) | {"p": p}
        if doubt := self._doubt(pair, found.rounds, fields["verdict"], fields.get("ratio"), missing, arms):
            return Comparison(pair=pair, **fields | {"verdict": "inconclusive", "size": None, "reason": doubt})
        if lacking:
            comparison = Comparison(pair=pair, missing=lacking, **fields)
            return replace(comparison, reason=comparison.so_far)
        if fields["verdict"] in ("slower", "faster"):
            fields |= self._correct(pair, rounds)
        return Comparison(pair=pair, **fields)

    def _describe_progress(self, pair: Pair, arms: Sequence[ArmResult], samples: Samples) -> Comparison:
        """Return the ratio of a single round or, before the first, of the pilot, without a verdict."""
        baseline, candidate = (samples.get((*key, pair.metric), {}) for key in pair.arms)
        fewest = max(self.schedule.fewest, FEWEST_ROUNDS)
        comparison = replace(leave_open(pair, ""), missing=fewest)
        times = [arm.time_ms for arm in arms if arm.time_ms and not arm.rounds]
        if common := baseline.keys() & candidate.keys():
            [number] = common
            fields = self.scale_of(pair.metric).as_fields(candidate[number] - baseline[number], None)
            comparison = replace(comparison, **fields, rounds=1, missing=fewest - 1)
        elif pair.metric == "time" and len(times) == len(arms):
            comparison = replace(comparison, pilot_ratio=times[1] / times[0])
        return replace(comparison, reason=comparison.so_far)

    def _judge(self, pair: Pair, rounds: MeasuredPair) -> dict[str, Any]:
        """Return the verdict and what belongs to it."""
        pair_estimate = rounds.estimate
        margin, scale = self._margin(pair), self.scale_of(pair.metric)
        levels = rounds.find_levels(self.schedule, self.plan.alpha, self._error(pair))
        judgement = judge_estimate(pair_estimate, margin, levels, scale)
        width, reason = judgement.half_width, ""
        if judgement.verdict == "inconclusive":
            uncorrected = rounds.find_levels(self.schedule, self.plan.alpha, DIFFERENCE_ERROR)
            if judge_estimate(pair_estimate, margin, uncorrected, scale).verdict != "inconclusive":
                reason = f"not significant after correcting for {self.count[pair.metric]} comparisons"
            else:
                reason = describe_noise(
                    pair_estimate.spread, pair_estimate.rounds, margin, levels.differ, pair_estimate.borrowed, scale
                )
            if (times := f"{pair_estimate.widened:.1f}") != "1.0":
                reason += f"; its interval is {times} times as wide because rounds depend on each other"
        fields = scale.as_fields(pair_estimate.theta, (pair_estimate.theta - width, pair_estimate.theta + width))
        if "ratio" in fields:
            fields["spread"] = pair_estimate.own_spread
            fields["mde"] = smallest_shown(
                pair_estimate.spread, pair_estimate.rounds, levels.differ, pair_estimate.borrowed
            )
        return fields | {"verdict": judgement.verdict, "size": judgement.size, "reason": reason}

    def _correct(self, pair: Pair, rounds: MeasuredPair) -> dict[str, Any]:
        """Return the size of a called difference, corrected for the luck that helped to call it."""
        scale = self.scale_of(pair.metric)
        error = self._error(pair) * find_share_of_error(rounds.estimate)
        levels = self.schedule.trace_levels(rounds.last_round, error)
        # Looks a single round apart are almost the same, so the look after three rounds does not count for later ones.
        levels = tuple(each for each in levels[:-1] if each[0] >= FEWEST_ROUNDS) + levels[-1:]
        theta, low, high = estimate_called(rounds.estimate, levels)
        fields = scale.as_fields(theta, (low, high))
        fields["size"] = "beyond" if min(abs(low), abs(high)) >= scale.to_scale(self._margin(pair)) else "clear"
        if "ratio" in fields:
            fields["seed_percent"] = seed_percent(theta)
        return fields

    def _error(self, pair: Pair) -> float:
        return min(DIFFERENCE_ERROR, self.error_of_each[pair.metric])

    def _margin(self, pair: Pair) -> float:
        return self.plan.margin if pair.margin is None else pair.margin

    def _doubt(
        self,
        pair: Pair,
        rounds: int,
        verdict: VerdictName,
        ratio: float | None,
        missing: ArmResult | None,
        arms: Sequence[ArmResult],
    ) -> str:
        """Return why a verdict cannot be trusted, whatever the rounds show, or ''."""
        metric = pair.metric
        if missing:
            return f"{missing.target} died after {rounds} rounds: {missing.reason}"
        if metric not in ("time", "cpu"):
            return ""
        if min(arm.figures.get(metric, 0.0) * arm.steps for arm in arms) < SHORTEST_MS:
            return TOO_IDLE if metric == "cpu" or self.plan.judge == "cpu" else TOO_SHORT
        if verdict == "inconclusive" or ratio is None:
            return ""
        rises = self.rises.get(metric, {})
        baseline, candidate = (rises.get(key, {}) for key in pair.arms)
        # The ratio of two arms that drift alike does not change. A drift that is too small to affect the verdict is
        # only reported with the arm.
        drift = drift_of_ratio(baseline, candidate)
        bound = math.log1p(self._margin(pair)) * (1.0 if verdict == "same" else 0.5)
        if drift and abs(drift.rise) > abs(abs(math.log(ratio)) - bound):
            return f"the ratio has {drift}"
        return ""


def compare_figures(pair: Pair, baseline: float, candidate: float, margin: float) -> Comparison:
    """Compare two figures that are known exactly; they differ if they are farther apart than the margin."""
    ratio = candidate / baseline
    different = abs(math.log(ratio)) > math.log1p(margin)
    verdict: VerdictName = ("slower" if ratio > 1 else "faster") if different else "same"
    return replace(
        leave_open(pair, ""),
        ratio=ratio,
        ci_low=ratio,
        ci_high=ratio,
        verdict=verdict,
        size="beyond" if different else None if ratio == 1 else "slight",
    )


def leave_open(pair: Pair, reason: str) -> Comparison:
    """Return a comparison without a figure, for this reason."""
    return Comparison(pair=pair, rounds=0, verdict="inconclusive", reason=reason)


def average_cases(
    samples: Samples, pairs: Sequence[Pair], schedules: Collection[LookSchedule], alpha: float
) -> MeanRatio | None:
    """Return the geometric mean of the ratios of cases in the same two versions; None if they share too few rounds.

    If parts have different looks, the strictest level applies.

    The ratios of all cases are averaged in each round, and these means are treated as the ratios of a single case. So
    the interval is valid whether or not the errors of cases are correlated, which they may be because cases share
    workers and rounds. If cases share fewer rounds than a case without a prior needs, the interval is as wide as
    those of the cases are on average, which is enough however their errors are correlated.
    """
    by_case = [_compare_rounds(samples, pair) for pair in pairs]
    rounds = sorted(set(by_case[0]).intersection(*by_case[1:]))
    if len(rounds) < max(schedule.fewest for schedule in schedules):
        return None

    def level(last_round: int) -> float:
        return min(schedule.level(last_round, alpha) for schedule in schedules)

    mean = Estimate(tuple(fmean(own[number] for own in by_case) for number in rounds))
    mean = find_dependence([mean]).widen(mean)
    theta, width = mean.theta, mean.half_width(level(rounds[-1]))
    if len(rounds) < FEWEST_ROUNDS:
        cases = [measured for measured in measure_together(samples, pairs) if measured]
        if len(cases) == len(pairs) and all(case.estimate.prior for case in cases):
            theta = fmean(case.estimate.theta for case in cases)
            width = fmean(case.estimate.half_width(level(case.last_round)) for case in cases)
    low, ratio, high = (math.exp(min(theta + end, MOST_LOG)) for end in (-width, 0.0, width))
    baseline, candidate = (arm.target for arm in pairs[0].arms)
    return MeanRatio(
        metric=pairs[0].metric, baseline=baseline, candidate=candidate, ratio=ratio, ci_low=low, ci_high=high,
        cases=len(pairs), rounds=len(rounds),
    )  # fmt: skip
