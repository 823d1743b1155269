"""From samples to a judged contrast for every pair of the plan."""

import math
from collections.abc import Mapping, Sequence

from orchestrator.model import Arm, Contrast, Pair, Plan
from orchestrator.stats.paired import estimate
from orchestrator.stats.verdict import judge, seed_percent

# Log of the median steady time by round, by (case label, version).
Samples = Mapping[tuple[str, str], dict[int, float]]


def compare(plan: Plan, samples: Samples, arms: Sequence[Arm]) -> tuple[Contrast, ...]:
    by_name = {(arm.case.label, arm.version): arm for arm in arms}
    return tuple(_contrast(plan, pair, samples, by_name) for pair in plan.pairs)


def _contrast(plan: Plan, pair: Pair, samples: Samples, arms: Mapping[tuple[str, str], Arm]) -> Contrast:
    missing = [arms[name] for name in pair.arms if arms[name].outcome != "measured"]
    found = estimate(samples.get(pair.arms[0], {}), samples.get(pair.arms[1], {}))
    if found is None:
        reason = f"{missing[0].version} {missing[0].outcome}" if missing else "fewer than two rounds were measured"
        return Contrast(
            pair=pair, ratio=None, ci_low=None, ci_high=None, rounds=0,
            verdict="inconclusive", reason=reason, mde=None, seed_percent=None,
        )  # fmt: skip
    alpha = plan.alpha / len(plan.looks)
    width = found.half_width(alpha)
    verdict, reason = judge(found, plan.margin, alpha)
    if missing:
        verdict, reason = "inconclusive", f"{missing[0].version} died after {found.rounds} rounds: {missing[0].reason}"
    return Contrast(
        pair=pair,
        ratio=math.exp(found.theta),
        ci_low=math.exp(found.theta - width),
        ci_high=math.exp(found.theta + width),
        rounds=found.rounds,
        verdict=verdict,
        reason=reason,
        mde=found.smallest_visible(alpha),
        seed_percent=seed_percent(found.theta),
    )
