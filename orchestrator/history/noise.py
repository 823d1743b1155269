"""How far the nights of a segment are to be believed: the reference's second measurement taken into account, and the
variance of each night from its rounds, from the control arm, whose truth is known, and from night to night."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from orchestrator.history.model import Segment, Value

Floats = NDArray[np.float64]

# A confirmed night has at least so many times the rounds of a screen.
SURE_TIMES = 2
# Nothing is quieter from night to night than this, however alike its nights have been.
QUIETEST = 0.003
# The least share of a screen's variance that is the night's, and that no rounds make smaller.
NIGHT_SHARE = 0.08
# What nights stray beyond their rounds is the night's from so many standard errors on.
DOUBT = 1.0
# The rounds of all nights speak for those of one night as so many rounds of its own.
PRIOR_ROUNDS = 24
# The variance of rounds that were all alike, as of a clock that is read to the second.
EXACT = 1e-12
# Rounds that stray so many times as far as usual, squared, count as such.
LOUD = 4.0
# Further away, in standard deviations, a single night is a freak.
FREAK = 3.0
# The median of squares of a normal variable is this share of their mean.
MEDIAN_SQUARE = 0.4549
# Successive differences overlap: this share of them is news.
NEWS = 2 / 3


@dataclass(frozen=True)
class Nights:
    """Effects and weights (one over the variance) of a segment's nights, freaks drawn in."""

    dates: tuple[date, ...]
    effects: Floats
    weights: Floats
    # Nights that were confirmed: a step on the last night is told of no other.
    sure: NDArray[np.bool_]
    # Degrees of freedom of what the weights rest on.
    freedom: int


def nights_of(segment: Segment) -> Nights:
    values = segment.values
    effects, errors, rounds = _columns(values)
    beside = {value.night: value for value in segment.control}
    pairs = [(place, beside[value.night]) for place, value in enumerate(values) if value.night in beside]
    places = [place for place, _ in pairs]
    control, control_errors, control_rounds = _columns([value for _, value in pairs])
    squares = errors**2
    # The control arm shares the reference's rounds: half of what it strayed by is in the series, too.
    effects[places] -= control / 2
    squares[places] = np.maximum(squares[places] - control_errors**2 / 4, squares[places] / 2)
    sampled, of_round = _sampled(squares, rounds)
    # Fewer than a quarter of the nights are cut short, and most are not confirmed.
    counts = np.sort(np.concatenate((rounds, control_rounds)))
    screened = float(counts[len(counts) // 4]) if len(counts) else 1.0
    freedom = 0
    if len(values) > 1:
        beside_sampled, _ = _sampled(control_errors**2, control_rounds)
        variances, freedom = _explained(effects, sampled, of_round / screened, control, beside_sampled)
        effects = _tamed(effects, variances)
    else:
        variances = sampled + QUIETEST**2
    return Nights(
        dates=tuple(value.night for value in values),
        effects=effects,
        weights=1 / variances,
        sure=rounds >= SURE_TIMES * screened,
        freedom=max(1, freedom),
    )


def _columns(values: Sequence[Value]) -> tuple[Floats, Floats, Floats]:
    rows = [(value.effect, value.error, value.rounds) for value in values]
    effects, errors, rounds = np.array(rows, dtype=float).reshape(-1, 3).T
    return effects.copy(), errors, rounds


def _sampled(squares: Floats, rounds: Floats) -> tuple[Floats, float]:
    """The variance that comes of a night's rounds, and that of one round as it usually is. A night whose rounds were
    more alike than usual is not believed more: so few of them are alike by chance."""
    if not len(squares):
        return squares, 0.0
    own = squares * rounds
    usual = float(np.minimum(own, LOUD * _middle(own)).mean())
    freedom = rounds - 1
    drawn = (freedom * own + PRIOR_ROUNDS * usual) / (freedom + PRIOR_ROUNDS)
    return np.maximum(np.maximum(drawn, usual) / rounds, EXACT), usual


def _explained(
    effects: Floats, sampled: Floats, usual: float, control: Floats, control_sampled: Floats
) -> tuple[Floats, int]:
    """The variance of each night, and the degrees of freedom of it."""
    own = np.diff(effects) ** 2 / 2 / ((sampled[1:] + sampled[:-1]) / 2)
    known = control**2 / control_sampled
    weight, beside = NEWS * len(own), len(known)
    together = (weight * _usual(own) + beside * _usual(known)) / (weight + beside)
    times = max(together, _usual(own), 1.0)
    # What chance may have made of it is taken for the rounds' own; only what is beyond that is the night's.
    chance = 1 + DOUBT * math.sqrt(2 / (weight + beside))
    night = max(QUIETEST**2, NIGHT_SHARE * usual, (times - chance) * usual)
    return sampled * min(times, chance) + night, int(weight + beside)


def _usual(ratios: Floats) -> float:
    """The mean, single large ones drawn in: those are steps and freaks."""
    if not len(ratios):
        return 1.0
    bound = FREAK**2 * max(1.0, _middle(ratios) / MEDIAN_SQUARE)
    return float(np.minimum(ratios, bound).mean())


def _middle(values: Floats) -> float:
    # Of hundreds of series: ten times as fast as numpy's median.
    return float(np.partition(values, len(values) // 2)[len(values) // 2])


def _tamed(effects: Floats, variances: Floats) -> Floats:
    """A night that is far from both the one before and the one after is drawn in to them; the last has none after it,
    and may be the first of many."""
    width = FREAK * np.sqrt(variances)
    around = np.concatenate((effects[1:2], effects, effects[-1:]))
    before, after = around[:-2], around[2:]
    tamed = np.clip(effects, np.minimum(before, after) - width, np.maximum(before, after) + width)
    tamed[-1] = effects[-1]
    return tamed
