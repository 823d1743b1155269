"""Estimates how far the nights of a segment can be trusted.

The control arm measures the reference a second time and corrects the effects of the nights. The variance of each night
is derived from its rounds, from the control arm, whose true ratio is known, and from the differences between nights.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from orchestrator.history.model import Segment, Value
from orchestrator.history.surroundings import SATURDAY

Floats = NDArray[np.float64]

# A confirmed night has at least this many times the rounds of a screen.
CONFIRMED_TIMES = 2
# Every series varies at least this much from night to night, however alike its nights have been.
QUIETEST = 0.003
# At least this share of a screen's variance is due to the night, and more rounds do not reduce it.
NIGHT_SHARE = 0.08
# Variation beyond that of the rounds is due to the night as far as it exceeds this many standard errors.
DOUBT = 1.0
# The rounds of all nights count as this many additional rounds in the variance of one night.
PRIOR_ROUNDS = 24
# Nights may vary less than their rounds suggest, because each round mirrors the order of the round before. The
# assumption that they do not counts as PRIOR_NIGHTS nights, and the variance is at least LEAST_TIMES the suggested one.
PRIOR_NIGHTS = 20
LEAST_TIMES = 0.5
# The share of variance due to the night, as screens suggest it, counts as this many nights with many rounds.
PRIOR_SURE = 12
# Rounds that were all alike, as with a clock that is read to the second, get this variance.
EXACT = 1e-12
# The variance of a night's rounds counts as at most this many times the median variance.
LOUD = 4.0
# A machine may have other work at weekends: at least and at most this many of the last ones decide, and they have to
# differ from the nights around them by this many standard errors.
FEWEST_WEEKENDS, MOST_WEEKENDS, WEEKEND_DOUBT = 3, 8, 3.0
# A single night that is more than this many standard deviations away is an outlier.
OUTLIER = 3.0
# The median of squares of a normal variable is this share of their mean.
MEDIAN_SQUARE = 0.4549
# A level that wanders has the correlation RESEMBLANCE with that of the night before. Levels wander if the correlation
# exceeds WANDER_DOUBT standard errors, in stretches of at most STRETCH and at least SHORTEST nights.
RESEMBLANCE, WANDER_DOUBT, STRETCH, SHORTEST = 0.7, 2.5, 10, 4
# Such a short stretch shows only this share of the wandering, since its own mean also wanders.
SHOWN = 0.55
# Successive differences overlap, so only this share of them is independent.
NEWS = 2 / 3


@dataclass(frozen=True)
class Nights:
    """The effects and weights (1 / variance) of a segment's nights, with outliers pulled in."""

    dates: tuple[date, ...]
    effects: Floats
    weights: Floats
    # These nights were confirmed: a step on the last night is reported only if that night is one of them.
    sure: NDArray[np.bool_]
    # These are the degrees of freedom of the variances that the weights rest on.
    freedom: int
    # Each night has this correlation with the one before it.
    correlation: float = 0.0

    def until(self, end: int) -> "Nights":
        """Return the first `end` nights, with what all nights show about the noise."""
        effects, weights, sure = self.effects[:end], self.weights[:end], self.sure[:end]
        return replace(self, dates=self.dates[:end], effects=effects, weights=weights, sure=sure)

    def widening(self, counts: Floats) -> Floats:
        """Return the factor by which correlation increases the variance of the mean of this many nights."""
        alike, apart = self.correlation, 1 - self.correlation
        widened: Floats = (1 + alike) / apart - 2 * alike * (1 - alike**counts) / (counts * apart**2)
        return widened


@dataclass(frozen=True)
class _Arm:
    """The nights of the version or of the control arm: their effects, and the part of their variance due to rounds."""

    effects: Floats
    sampled: Floats
    # This is the usual variance of a night that was only screened.
    usual: float
    # This is the number of rounds of a screen, divided by that of the night.
    share: Floats

    @property
    def sure(self) -> NDArray[np.bool_]:
        return self.share <= 1 / CONFIRMED_TIMES


def nights_of(segment: Segment, wander: float = 0.0) -> Nights:
    """Return the nights of a segment; `wander` is the variance that each night shares with the one before it."""
    values = segment.values
    effects, errors, rounds = _columns(values)
    beside = {value.night: value for value in segment.control}
    pairs = [(index, beside[value.night]) for index, value in enumerate(values) if value.night in beside]
    indices = [index for index, _ in pairs]
    control_effects, control_errors, control_rounds = _columns([value for _, value in pairs])
    squares = errors**2
    # The control arm shares the reference's rounds, so half of its deviation is also in the series.
    effects[indices] -= control_effects / 2
    squares[indices] = np.maximum(squares[indices] - control_errors**2 / 4, squares[indices] / 2)
    effects -= _weekends([value.night for value in values], effects)
    # The lower quartile is the size of a screen: few nights are cut short, and most are not confirmed.
    counts = np.sort(np.concatenate((rounds, control_rounds)))
    screened = float(counts[len(counts) // 4]) if len(counts) else 1.0
    target = _arm(effects, squares, rounds, screened)
    freedom = 0
    if len(values) > 1:
        control = _arm(control_effects, control_errors**2, control_rounds, screened)
        of_rounds, of_night, freedom = _shares(target, control)
        of_level = max(QUIETEST**2, of_night * target.usual, wander / RESEMBLANCE)
        variances = of_rounds * target.sampled + of_level
        effects = _tame(effects, variances)
    else:
        variances = target.sampled + max(QUIETEST**2, wander / RESEMBLANCE)
    return Nights(
        dates=tuple(value.night for value in values),
        effects=effects,
        weights=1 / variances,
        sure=target.sure,
        freedom=max(1, freedom),
        # The most certain nights decide, since steps rest on them.
        correlation=wander / float(variances.min()) if len(variances) else 0.0,
    )


def measure_wander(together: Iterable[Segment]) -> float:
    """Return the variance that nights have in common with the nights before them, over all of these series.

    It is measured in stretches of a few nights, so that a step affects only one of them. Series with quiet rounds weigh
    the most.
    """
    products, doubt, total = 0.0, 0.0, 0.0
    for segment in together:
        effects = nights_of(segment).effects
        stretches = [part for part in np.split(effects, range(STRETCH, len(effects), STRETCH)) if len(part) >= SHORTEST]
        if not stretches:
            continue
        variance = float(np.median([part.var(ddof=1) for part in stretches]))
        weight = 1 / (QUIETEST**2 + float(np.median([value.error**2 for value in segment.values]))) ** 2
        for part in stretches:
            strays, count = part - part.mean(), len(part)
            square = float(np.mean(strays**2))
            # Relative to their own mean, neighbours among few nights seem negatively correlated; the 1 corrects that.
            products += weight * variance * (float(strays[1:] @ strays[:-1]) / square + 1 if square else 0.0)
            doubt += weight**2 * variance**2 * (count - 2) ** 2 / (count - 1)
            total += weight * (count - 2)
    return products / total / SHOWN if products > WANDER_DOUBT * math.sqrt(doubt) else 0.0


def _weekends(nights: Sequence[date], effects: Floats) -> Floats:
    """Return how far weekends stray from the nights around them, or zeros unless the last ones all did so alike.

    A weekend counts once the nights after it are known.
    """
    days = np.array([night.toordinal() for night in nights], dtype=np.int64)
    weekday = (days - 1) % 7
    inside = weekday >= SATURDAY
    saturdays = np.where(inside, days - weekday + SATURDAY, 0)
    apart = []
    for saturday in np.unique(saturdays[inside])[-MOST_WEEKENDS - 1 :]:
        before, after = (effects[days == day] for day in (saturday - 1, saturday + 2))
        if len(before) and len(after):
            apart.append(effects[saturdays == saturday].mean() - (before[0] + after[0]) / 2)
    apart = apart[-MOST_WEEKENDS:]
    if len(apart) < FEWEST_WEEKENDS:
        return np.zeros(len(effects))
    usual, error = float(np.median(apart)), float(np.std(apart, ddof=1)) / math.sqrt(len(apart))
    return np.where(inside, usual if abs(usual) > WEEKEND_DOUBT * error else 0.0, 0.0)


def _columns(values: Sequence[Value]) -> tuple[Floats, Floats, Floats]:
    rows = [(value.effect, value.error, value.rounds) for value in values]
    effects, errors, rounds = np.array(rows, dtype=float).reshape(-1, 3).T
    return effects.copy(), errors, rounds


def _arm(effects: Floats, squares: Floats, rounds: Floats, screened: float) -> _Arm:
    """Return an arm with the variance of its nights.

    A night whose rounds agree better than usual is not trusted more: with so few rounds, this happens by chance.
    """
    if not len(squares):
        return _Arm(effects, squares, 0.0, rounds)
    own = squares * rounds
    usual = float(np.minimum(own, LOUD * _middle(own)).mean())
    freedom = rounds - 1
    shrunk = (freedom * own + PRIOR_ROUNDS * usual) / (freedom + PRIOR_ROUNDS)
    sampled = np.maximum(np.maximum(shrunk, usual) / rounds, EXACT)
    return _Arm(effects, sampled, usual / screened, screened / rounds)


def _shares(target: _Arm, control: _Arm) -> tuple[float, float, int]:
    """Return the two parts of a screen's variance, relative to what its rounds suggest, and its degrees of freedom.

    The first part shrinks with more rounds. The second is due to the night, and does not.
    """
    own = _apart(target.effects, target.sampled, ~target.sure)
    control_ratios = (control.effects**2 / control.sampled)[~control.sure]
    if not len(own) and not len(control_ratios):
        own = _apart(target.effects, target.sampled, np.full(len(target.effects), True))
    weight, beside = NEWS * len(own), len(control_ratios)
    count = weight + beside
    together = (weight * _usual(own) + beside * _usual(control_ratios)) / count
    times = max(together, _usual(own))
    if times < 1:
        times = max(LEAST_TIMES, (count * times + PRIOR_NIGHTS) / (count + PRIOR_NIGHTS))
    # Variation that chance can explain is attributed to the rounds, and only the excess to the night.
    expected = 1 + DOUBT * math.sqrt(2 / count)
    of_rounds, of_night = min(times, expected), max(NIGHT_SHARE, times - expected)
    return *_by_sure_nights(target, control, of_rounds, of_night), int(count)


def _by_sure_nights(target: _Arm, control: _Arm, of_rounds: float, of_night: float) -> tuple[float, float]:
    """Divide the same total variance between rounds and night as nights with many rounds suggest."""
    own = _apart(target.effects, np.full(len(target.effects), target.usual), target.sure)
    control_ratios = (control.effects**2 / max(control.usual, EXACT))[control.sure]
    weight, beside = NEWS * len(own), len(control_ratios)
    if not weight + beside:
        return of_rounds, of_night
    share = float((target.share[target.sure] if target.sure.any() else control.share[control.sure]).mean())
    seen = weight * _usual(own) + beside * _usual(control_ratios)
    strayed = (PRIOR_SURE * (of_rounds * share + of_night) + seen) / (PRIOR_SURE + weight + beside)
    total = of_rounds + of_night
    of_night = min(max(NIGHT_SHARE, (strayed - share * total) / (1 - share)), total)
    return max(LEAST_TIMES / 2, total - of_night), of_night


def _apart(effects: Floats, variances: Floats, which: NDArray[np.bool_]) -> Floats:
    """Return the squared differences between successive nights, relative to their variances.

    A step affects only one of them.
    """
    effects, variances = effects[which], np.maximum(variances[which], EXACT)
    return np.diff(effects) ** 2 / (variances[1:] + variances[:-1])


def _usual(ratios: Floats) -> float:
    """Return the mean, with single large values pulled in, since these are steps and outliers."""
    if not len(ratios):
        return 1.0
    bound = OUTLIER**2 * max(1.0, _middle(ratios) / MEDIAN_SQUARE)
    return float(np.minimum(ratios, bound).mean())


def _middle(values: Floats) -> float:
    # This is ten times as fast as numpy's median, which matters for hundreds of series.
    return float(np.partition(values, len(values) // 2)[len(values) // 2])


def _tame(effects: Floats, variances: Floats) -> Floats:
    """Pull in each night that is far from both the night before and the night after.

    The last night is left alone: none follows it, and it may be the first of many.
    """
    width = OUTLIER * np.sqrt(variances)
    around = np.concatenate((effects[1:2], effects, effects[-1:]))
    before, after = around[:-2], around[2:]
    tamed = np.clip(effects, np.minimum(before, after) - width, np.maximum(before, after) + width)
    tamed[-1] = effects[-1]
    return tamed
