"""Nights of kinds that set none of the detector's constants: heavy tails, weekends, reboots, loud nights, workers.

The constants come from recorded rounds (bench.nights). Each kind here is a simple law instead. A round of a case
strays by 3 %, unless its kind says otherwise.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from bench.nights import BEGIN, PARTS, Cell, Floats, make_nights
from orchestrator.history.surroundings import is_weekend

ROUND = 0.03
# Every night of a case, or a round.
Draw = Callable[[np.random.Generator, int], Floats]


def nothing(rng: np.random.Generator, nights: int) -> Floats:
    return np.zeros(nights)


def heavy(scale: float) -> Draw:
    """Student's t with two degrees of freedom, whose variance is infinite."""
    return lambda rng, nights: scale * rng.standard_t(2, nights)


def weekends(most: float) -> Draw:
    """Return nights of a case that strays by as much on all weekends, at most by this."""
    return lambda rng, nights: np.where(_weekend(nights), rng.uniform(-most, most), 0.0)


def _weekend(nights: int) -> NDArray[np.bool_]:
    return np.array([is_weekend(BEGIN + timedelta(night)) for night in range(nights)])


def reboots(spread: float, every: int) -> Draw:
    """Every reboot moves each case to another level."""
    return lambda rng, nights: np.repeat([0.0, *rng.normal(0, spread, nights // every)], every)[:nights]


def wandering(spread: float, correlation: float) -> Draw:
    """Return nights of a case whose level strays by as much, and resembles that of the night before."""

    def levels(rng: np.random.Generator, nights: int) -> Floats:
        strays = rng.normal(0, spread, nights)
        for night in range(1, nights):
            strays[night] = correlation * strays[night - 1] + np.sqrt(1 - correlation**2) * strays[night]
        return strays

    return levels


def drift(rate: float) -> Draw:
    return lambda rng, nights: rate * np.arange(nights) * rng.choice((-1, 1))


def normal(rng: np.random.Generator, shape: tuple[int, int], spread: float) -> Floats:
    return rng.normal(0, spread, shape)


def tailed(rng: np.random.Generator, shape: tuple[int, int], spread: float) -> Floats:
    """Student's t with three degrees of freedom, of this standard deviation."""
    return rng.standard_t(3, shape) * spread / np.sqrt(3)


def spiked(rng: np.random.Generator, shape: tuple[int, int], spread: float) -> Floats:
    """Return rounds of half the spread, of which one in twelve is slower, at the mean by three times the spread."""
    hit = rng.random(shape) < 1 / 12
    return rng.normal(0, spread / 2, shape) + hit * rng.exponential(3 * spread, shape)


@dataclass(frozen=True)
class Kind:
    """What nights stray by, the law of a round, and what a run's workers differ by.

    `loud` is the share of nights whose rounds stray four times as far, `mixed` whether cases stray by 1 to 10 %,
    `boot` after how many nights the machine restarts, and `pinned` whether every second case is that of a version that
    stays the same.
    """

    of_night: Draw = nothing
    of_round: Callable[[np.random.Generator, tuple[int, int], float], Floats] = normal
    worker: float = 0.0
    loud: float = 0.0
    mixed: bool = False
    boot: int = 0
    pinned: bool = False


KINDS: Mapping[str, Kind] = {
    "normal rounds": Kind(),
    "rounds with the tails of t(3)": Kind(of_round=tailed),
    "rounds with spikes": Kind(of_round=spiked),
    "rounds of 1 to 10 %, by case": Kind(mixed=True),
    "one night in seven is four times as loud": Kind(loud=1 / 7),
    "the workers of a run differ by 1 %": Kind(worker=0.01),
    "the workers of a run differ by 2 %": Kind(worker=0.02),
    "nights with the tails of t(2), 0.5 %": Kind(heavy(0.005)),
    "weekends of up to 3 %": Kind(weekends(0.03)),
    "weekends of up to 6 %": Kind(weekends(0.06)),
    "reboots after 20 nights, levels of 1 %": Kind(reboots(0.01, 20), boot=20),
    "reboots after 20 nights, levels of 2 %": Kind(reboots(0.02, 20), boot=20),
    "the same, half of it in a pinned version": Kind(reboots(0.02, 20), boot=20, pinned=True),
    "levels of 0.7 % that wander from night to night": Kind(wandering(0.007, 0.8), mixed=True),
    "a drift of 0.03 % a night": Kind(drift(0.0003)),
}


def cells(
    kind: Kind,
    rng: np.random.Generator,
    count: int,
    nights: int,
    step: float = 0.0,
    at: int | None = None,
    slowed: Collection[int] = (),
) -> list[Cell]:
    """Return cells of this kind; from night `at` on, the version is slower by `step` in the `slowed` ones."""
    shift = np.where(np.arange(nights) >= (nights if at is None else at), np.log1p(step), 0.0)
    return [_cell(kind, rng, nights, shift if place in slowed else 0.0 * shift) for place in range(count)]


def _cell(kind: Kind, rng: np.random.Generator, nights: int, shift: Floats) -> Cell:
    spread = ROUND / np.sqrt(2) * (np.exp(rng.uniform(np.log(1 / 3), np.log(10 / 3))) if kind.mixed else 1.0)
    true = (kind.of_night(rng, nights) + shift)[:, None]
    series, control = [], []
    for rounds in PARTS:
        loud = np.where(rng.random((nights, 1)) < kind.loud, 4.0, 1.0)
        version, reference, again = (
            loud * kind.of_round(rng, (nights, rounds), spread) + rng.normal(0, kind.worker, (nights, 1))
            for _ in range(3)
        )
        series.append(version - reference + true)
        control.append(again - reference)
    return Cell(make_nights(series), make_nights(control))
