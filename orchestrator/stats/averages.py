"""The geometric mean of the ratios of several cases, and its interval."""

import math
from collections.abc import Sequence
from statistics import fmean

from orchestrator.model import MeanRatio, Pair
from orchestrator.stats.comparisons import Samples, measure_together
from orchestrator.stats.dependence import find_dependence
from orchestrator.stats.looks import FEWEST_ROUNDS, LookSchedule
from orchestrator.stats.paired import Estimate
from orchestrator.stats.scale import MOST_LOG


def average_cases(samples: Samples, pairs: Sequence[Pair], schedule: LookSchedule, alpha: float) -> MeanRatio | None:
    """Return the geometric mean of the ratios of cases in the same two versions; None if they share too few rounds.

    The ratios of all cases are averaged in each round, and these means are treated as the ratios of a single case. So
    the interval holds whether cases err together, because they share workers and moments, or each by itself.
    Where they share fewer rounds than a case needs that no other helps, it is as wide as the intervals of the cases are
    on average: no errors that are correlated in any way need more.
    """
    by_case = []
    for pair in pairs:
        old, new = (samples.get((*key, pair.metric), {}) for key in pair.arms)
        by_case.append({number: new[number] - old[number] for number in old.keys() & new.keys()})
    rounds = sorted(set(by_case[0]).intersection(*by_case[1:]))
    if len(rounds) < schedule.fewest:
        return None
    mean = Estimate(tuple(fmean(own[number] for own in by_case) for number in rounds))
    mean = find_dependence([mean]).widen(mean)
    theta, width = mean.theta, mean.half_width(schedule.level(rounds[-1], alpha))
    if len(rounds) < FEWEST_ROUNDS:
        cases = [measured for measured in measure_together(samples, pairs) if measured]
        if len(cases) == len(pairs) and all(case.estimate.prior for case in cases):
            theta = fmean(case.estimate.theta for case in cases)
            width = fmean(case.estimate.half_width(schedule.level(case.last_round, alpha)) for case in cases)
    low, ratio, high = (math.exp(min(theta + end, MOST_LOG)) for end in (-width, 0.0, width))
    baseline, candidate = (arm.target for arm in pairs[0].arms)
    return MeanRatio(
        metric=pairs[0].metric, baseline=baseline, candidate=candidate, ratio=ratio, ci_low=low, ci_high=high,
        cases=len(pairs), rounds=len(rounds),
    )  # fmt: skip
