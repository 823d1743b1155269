"""Turns samples into a judged contrast for every pair of the plan."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.model import ArmResult, Contrast, Metric, Pair, Plan
from orchestrator.stats.paired import Estimate, estimate
from orchestrator.stats.robust import disagrees, hodges_lehmann, sign_flip_p
from orchestrator.stats.verdict import judge, seed_percent

# The log of a metric by round, by case label, version and metric.
Samples = Mapping[tuple[str, str, Metric], dict[int, float]]

# Of the contrasts that are called slower or faster, the share that may be so by chance.
FALSE_DISCOVERIES = 0.05
# Below this a call is mostly the two readings of the clock around it.
SHORTEST_MS = 0.005


def compare(plan: Plan, samples: Samples, arms: Sequence[ArmResult], *, flip: bool = False) -> tuple[Contrast, ...]:
    """Judge every pair of the plan.

    `flip` adds the sign-flip p, which no verdict depends on.
    """
    by_name = {arm.key: arm for arm in arms}
    found = [estimate(*(samples.get((*name, pair.metric), {}) for name in pair.arms)) for pair in plan.pairs]
    chance = _by_chance(plan, found)
    contrasts = (
        _contrast(plan, pair, one, chance[place], [by_name[name] for name in pair.arms])
        for place, (pair, one) in enumerate(zip(plan.pairs, found, strict=True))
    )
    if not flip:
        return tuple(contrasts)
    return tuple(
        replace(contrast, sign_flip_p=sign_flip_p(one.differences)) if one else contrast
        for contrast, one in zip(contrasts, found, strict=True)
    )


def _by_chance(plan: Plan, found: Sequence[Estimate | None]) -> list[float]:
    """Return the p of each contrast, adjusted for the looks taken and for its being one of many."""
    adjusted = iter(of_many([min(1.0, len(plan.looks) * one.p) for one in found if one]))
    return [next(adjusted) if one else 1.0 for one in found]


def of_many(ps: Sequence[float]) -> list[float]:
    """Adjust each p so that, among those below a limit, no larger share is due to chance (Benjamini and Hochberg).

    scipy has this function in a part that takes longer to import than a report takes to draw. The tests compare the
    two.
    """
    order = sorted(range(len(ps)), key=ps.__getitem__, reverse=True)
    adjusted, least = [1.0] * len(ps), 1.0
    for above, place in enumerate(order):
        least = min(least, ps[place] * len(ps) / (len(ps) - above))
        adjusted[place] = least
    return adjusted


def _contrast(plan: Plan, pair: Pair, found: Estimate | None, chance: float, arms: Sequence[ArmResult]) -> Contrast:
    missing = next((arm for arm in arms if arm.outcome != "measured"), None)
    if found is None:
        # The arm's own words, so that a report tells them once.
        reason = missing.reason if missing else "fewer than two rounds were measured"
        return Contrast(
            pair=pair, ratio=None, ci_low=None, ci_high=None, rounds=0,
            verdict="inconclusive", reason=reason, mde=None, seed_percent=None,
        )  # fmt: skip
    alpha = plan.alpha / len(plan.looks)
    width = found.half_width(alpha)
    margin = plan.margin if pair.margin is None else pair.margin
    verdict, reason = judge(found, margin, alpha)
    second = hodges_lehmann(found.differences)
    contrast = Contrast(
        pair=pair,
        ratio=math.exp(found.theta),
        ci_low=math.exp(found.theta - width),
        ci_high=math.exp(found.theta + width),
        rounds=found.rounds,
        verdict=verdict,
        reason=reason,
        mde=found.smallest_visible(alpha),
        seed_percent=seed_percent(found.theta),
        second_ratio=math.exp(second),
    )
    doubt = ""
    if missing:
        doubt = f"{missing.version} died after {found.rounds} rounds: {missing.reason}"
    elif pair.metric == "steady" and min(arm.median_ms or 0.0 for arm in arms) < SHORTEST_MS:
        doubt = "its calls are too short to be timed one by one: let a call do more, and say how much with step.steps"
    elif verdict == "inconclusive":
        return contrast
    elif disagrees(second, found):
        doubt = f"unstable: the mean says {contrast.ratio:.2f}x, the Hodges-Lehmann estimate {math.exp(second):.2f}x"
    elif verdict != "same" and chance > FALSE_DISCOVERIES:
        doubt = f"one of {len(plan.pairs)} contrasts: so many would show such a difference by chance"
    elif pair.metric == "steady":
        doubt = _unsteady(found, arms, margin)
    return replace(contrast, verdict="inconclusive", reason=doubt) if doubt else contrast


def _unsteady(found: Estimate, arms: Sequence[ArmResult], margin: float) -> str:
    """Return a drift at least as large as what the verdict rests on, or ''.

    A smaller drift is reported with the arm and changes nothing.
    """
    for arm in arms:
        if arm.drift and abs(arm.drift.rise) > abs(abs(found.theta) - math.log1p(margin)):
            return f"{arm.version}: {arm.drift}"
    return ""
