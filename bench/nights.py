"""Nights that were never measured, made of measured rounds: blocks of recorded rounds of arms that do not differ.

A cell takes its noise from one recording. A night draws blocks of neighbouring rounds from all of a recording's arms at
once: one arm is the version, one the reference, and one the reference's second measurement, which is the control arm.
Each block draws which arm is which, so that no arm's own mean has to be subtracted: an offset between arms that
do not differ is part of the noise. If only two arms were recorded, their difference, drawn three times from separate
rounds, stands for three arms.
Everything is scaled so that the nights of a screened series vary by a known amount. A share of that belongs to the
night itself, and no round of the night averages it out: it is as large as the means of recorded runs show, and never
less than LEAST_SHARE. The control arm also has such a part, drawn separately.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bench.detect import RECORDED
from orchestrator.history.alarms.steps import CONFIRM_TIMES
from orchestrator.history.model import Value

Floats = NDArray[np.float64]

SCREEN = 12
# The rounds of a screen and of each confirmation.
PARTS = (SCREEN, *(SCREEN * times for times in CONFIRM_TIMES))
BLOCK = 4
LEAST_SHARE = 0.05
BEGIN = date(2026, 1, 1)
# To learn how far a screened night strays.
REHEARSED = 4000


@dataclass(frozen=True)
class Noise:
    """The noise of one recording; `arms` are the log times of each arm by round."""

    arms: Floats

    def draw(self, rng: np.random.Generator, nights: int, rounds: int) -> tuple[Floats, Floats]:
        """Draw the version against the reference, and the reference against itself.

        Each result has one row per night and one column per round.
        """
        blocks = nights, rounds // BLOCK
        if len(self.arms) > 2:
            places = rng.permuted(np.tile(np.arange(len(self.arms)), (*blocks, 1)), axis=-1)
            drawn = self._blocks(rng, nights, rounds)
            version, reference, again = (
                self.arms[np.repeat(places[..., part], BLOCK, axis=1), drawn] for part in range(3)
            )
        else:
            apart = (self.arms[0] - self.arms[1]) / np.sqrt(2)
            version, reference, again = (
                np.repeat(rng.choice((-1.0, 1.0), blocks), BLOCK, axis=1) * apart[self._blocks(rng, nights, rounds)]
                for _ in range(3)
            )
        return version - reference, again - reference

    def _blocks(self, rng: np.random.Generator, nights: int, rounds: int) -> NDArray[np.int64]:
        count = self.arms.shape[1]
        starts = rng.integers(0, count, (nights, rounds // BLOCK, 1))
        return ((starts + np.arange(BLOCK)) % count).reshape(nights, rounds)


@dataclass(frozen=True)
class Night:
    """The values of a cell on one night: screened, and after each confirmation."""

    screened: Value
    confirmed: tuple[Value, ...]


@dataclass(frozen=True)
class Cell:
    series: list[Night]
    control: list[Night]


def recordings() -> list[Floats]:
    return [np.array(run["arms"]) for run in json.loads(RECORDED.read_text())]


def noises() -> list[Noise]:
    return [Noise(arms) for arms in recordings()]


def share() -> float:
    """Return the share of a screened night's variance that its rounds do not explain.

    It is estimated from the means of recorded runs.
    """
    squares, counts = [], []
    for arms in recordings():
        for one, other in list(combinations(arms, 2))[:3]:
            apart = one - other
            squares.append(apart.mean() ** 2 / (apart.var(ddof=1) / len(apart)))
            counts.append(len(apart))
    excess = max(0.0, float(np.mean(squares)) - 1) * SCREEN / float(np.mean(counts))
    return max(LEAST_SHARE, excess / (1 + excess))


def cells(
    rng: np.random.Generator,
    count: int,
    nights: int,
    spread: float,
    step: float = 0.0,
    at: int | None = None,
    slowed: Collection[int] = (),
) -> list[Cell]:
    """Return cells whose screened nights vary by `spread`.

    From night `at` on, the version is slower by `step` in the `slowed` cells.
    """
    known, own = noises(), share()
    night = spread * np.sqrt(own)
    shift = np.where(np.arange(nights) >= (nights if at is None else at), np.log1p(step), 0.0)
    found = []
    for place in range(count):
        noise = known[place % len(known)]
        strays = noise.draw(rng, REHEARSED, SCREEN)[0].mean(axis=1).std()
        drawn = noise.draw(rng, nights, sum(PARTS))
        series, control = (
            rounds * (spread * np.sqrt(1 - own) / strays) + rng.normal(0, night, (nights, 1)) for rounds in drawn
        )
        stepped = series + shift[:, None] if place in slowed else series
        cut = np.cumsum(PARTS)[:-1]
        found.append(Cell(*(make_nights(np.split(rounds, cut, axis=1)) for rounds in (stepped, control))))
    return found


def make_nights(parts: Sequence[Floats]) -> list[Night]:
    """Return the nights of the rounds of a screen and of each confirmation."""
    screen, *more = parts
    columns = [_values(more[: count + 1]) for count in range(len(more))]
    return [Night(of_screen, tuple(after)) for of_screen, *after in zip(_values([screen]), *columns, strict=True)]


def _values(parts: Sequence[Floats]) -> list[Value]:
    """Combine the parts of each night as a history does, with the spread of a round pooled."""
    count = sum(part.shape[1] for part in parts)
    squares = sum(part.var(axis=1, ddof=1) * (part.shape[1] - 1) for part in parts)
    errors = np.sqrt(squares / (count - len(parts)) / count)
    means = np.concatenate(parts, axis=1).mean(axis=1)
    return [
        Value(night=BEGIN + timedelta(place), effect=float(mean), error=float(error), rounds=count)
        for place, (mean, error) in enumerate(zip(means, errors, strict=True))
    ]
