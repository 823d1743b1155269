"""The looks at a run, and the level at which each of them judges.

A run is judged several times while it lasts, and chance could fool each look. The error that all looks together may
make is spent little by little, and the first looks get the least. How much more error each look can spend depends on
how alike the looks are. That is known exactly for t statistics of normal differences, because the t statistics of
growing samples form a Markov chain.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np
from scipy import special

from orchestrator.stats.limits import FEWEST_SHARED

# The share of the error that is spent is the share of the rounds that are done, raised to this power.
POWER = 1.5
# A look that a budget or an interrupt causes spends this share of the error that is left. The rest is for more rounds.
AT_A_STOP = 0.5
# A comparison with fewer rounds says nothing by itself.
FEWEST_ROUNDS = 4
# A metric that ends no rounds gets this share of the error. The rest allows for noise that it shares with the times
# that end rounds, and for comparisons that share their variance although they scatter differently. Even with a
# correlation of 0.6, or with comparisons that scatter by 3 to 30 %, at most 2.5 % of equal arms are called different.
BYSTANDER_ERROR_SHARE = 0.64
# Levels are computed for these errors of all looks together, and interpolated between them.
ERRORS = (1e-5, 1e-4, 1e-3, 0.005, 0.025, 0.05, 0.1, 0.5)
LOG_ERRORS = np.log(ERRORS)
# The cells of the chain are too coarse for some looks if the error is smaller than this.
LEAST_EXACT = 1e-3
# The chain is divided finely enough for usual levels to be exact to a few percent. Levels of looks that are a single
# round apart are up to a third too low.
CELLS, NODES = 80, 32
ROOT_ERROR = 1e-9
# The calls of a look are divided into TAILS classes. The rarest of them starts at the level times RAREST.
TAILS, RAREST = 30, 1e-5

# Each look of a comparison has its number of rounds and its level.
LookLevels = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Stretch:
    """Rounds that were planned together: their looks, and the round after which something else ended them."""

    looks: tuple[int, ...]
    stopped: int | None = None


@dataclass(frozen=True)
class LookSchedule:
    """The rounds after which a run is judged, and the share of the error spent by then."""

    looks: tuple[int, ...]
    spent: tuple[float, ...]
    # If set, rounds before the first look are not judged, because that look is still to come.
    strict: bool = field(default=False, compare=False)

    @property
    def fewest(self) -> int:
        """The smallest number of rounds that is judged; a first look may be planned after fewer rounds than usual."""
        if self.strict:
            return self.looks[0]
        return min(FEWEST_ROUNDS, self.looks[0])

    def judges_last(self, rounds: Collection[int]) -> bool:
        """Return whether a comparison with these rounds was judged at the last look, which spends all of its error."""
        before_last = self.looks[-2] if len(self.looks) > 1 else 0
        return len(rounds) >= self.fewest and max(rounds) > before_last

    def level(self, rounds: int, error: float) -> float:
        """Return the level of the look that judges this many rounds, if all looks share this error."""
        return _find_level(self, self._find_look(rounds), error)

    def trace_levels(self, rounds: int, error: float) -> LookLevels:
        """Return the looks up to the one that judges this many rounds, with their levels."""
        looks = (*(look for look in self.looks[: self._find_look(rounds)] if look < rounds), rounds)
        return tuple((look, self.level(look, error)) for look in looks)

    def adjust(self, p: float, rounds: int) -> float:
        """Return the smallest error, for all looks together, at which this p is significant after this many rounds."""
        index = self._find_look(rounds)
        least, most, logs = _describe_levels(self, index)
        if p <= least:
            return min(p / self.new_share(index), ERRORS[0])
        if p >= most:
            return min(1.0, p * ERRORS[-1] / most)
        return math.exp(float(np.interp(math.log(p), logs, LOG_ERRORS)))

    def _find_look(self, rounds: int) -> int:
        return next((index for index, look in enumerate(self.looks) if look >= rounds), len(self.looks) - 1)

    def new_share(self, index: int) -> float:
        """Return the share of the error that a look adds to what was spent before.

        It would be the level of the look if no two looks were ever fooled together, so it is never too high. It is
        almost exact for errors that are smaller than those computed.
        """
        return self.spent[index] - (self.spent[index - 1] if index else 0.0)


def make_schedule(stretches: Iterable[Stretch]) -> LookSchedule:
    """Return the looks of a run: those planned, and one where something ended the rounds before their last look."""
    looks: list[int] = []
    spent: list[float] = []
    begin, before, fewest = 0, 0.0, FEWEST_ROUNDS
    for stretch in stretches:
        last = stretch.looks[-1]
        if not looks and len(stretch.looks) == 1 and last < FEWEST_ROUNDS:
            # Rounds that are too few for a verdict are not judged, so they spend nothing.
            continue
        fewest = min(fewest, max(stretch.looks[0], FEWEST_SHARED))
        stop = last if stretch.stopped is None else stretch.stopped
        if before >= 1 or last <= begin:
            break
        for look in stretch.looks:
            if begin < look < stop or (look == stop == last):
                looks.append(look)
                spent.append(before + (1 - before) * ((look - begin) / (last - begin)) ** POWER)
        if begin < stop < last and stop >= fewest:
            so_far = spent[-1] if spent else 0.0
            looks.append(stop)
            spent.append(so_far + (1 - so_far) * AT_A_STOP)
        begin, before = (looks[-1], spent[-1]) if looks else (0, 0.0)
    if not looks:
        # There are too few rounds for a look, so any look would be the first.
        return LookSchedule((FEWEST_ROUNDS,), (AT_A_STOP,))
    return LookSchedule(tuple(looks), tuple(spent))


@dataclass(frozen=True)
class BystanderSchedule:
    """The looks at a metric that ends no rounds: one per comparison, after the times have ended its rounds.

    No earlier look could have been fooled, so the level is the share of the error itself. `shares` holds the share for
    looks at up to each number of rounds in `ends`.
    """

    ends: tuple[int, ...]
    shares: tuple[float, ...]
    fewest: int = FEWEST_SHARED

    def judges_last(self, rounds: Collection[int]) -> bool:
        return len(rounds) >= self.fewest

    def level(self, rounds: int, error: float) -> float:
        return error * self._find_share(rounds)

    def trace_levels(self, rounds: int, error: float) -> LookLevels:
        return ((rounds, self.level(rounds, error)),)

    def adjust(self, p: float, rounds: int) -> float:
        return min(p / self._find_share(rounds), 1.0)

    def _find_share(self, rounds: int) -> float:
        index = next((index for index, end in enumerate(self.ends) if end >= rounds), len(self.ends) - 1)
        return self.shares[index]


def make_bystander_schedule(stretches: Iterable[Stretch]) -> BystanderSchedule:
    """Return the looks at a metric that ends no rounds.

    A case that left before its stretch ended is decided and gets no more rounds, so it has all of the error that was
    left. If something else ended the rounds, more may follow, so the other cases have only a part of it.
    """
    ends, shares = [], []
    begin, left = 0, BYSTANDER_ERROR_SHARE
    for stretch in stretches:
        last = stretch.looks[-1]
        stop = last if stretch.stopped is None else min(stretch.stopped, last)
        if left <= 0 or stop <= begin:
            break
        spent = left * AT_A_STOP if stop < last else left
        ends += [stop - 1, stop]
        shares += [left, spent]
        begin, left = stop, left - spent
    return BystanderSchedule(tuple(ends), tuple(shares)) if ends else BystanderSchedule((0,), (BYSTANDER_ERROR_SHARE,))


def count_fewest(looks: tuple[int, ...]) -> int:
    """Return the smallest number of rounds with a verdict in a run of these looks."""
    return make_schedule([Stretch(looks)]).fewest


# A run asks for a few levels, but for each of them at every comparison.
@lru_cache(10_000)
def _find_level(schedule: LookSchedule, index: int, error: float) -> float:
    if error < ERRORS[0]:
        return error * schedule.new_share(index)
    _, _, logs = _describe_levels(schedule, index)
    return math.exp(float(np.interp(math.log(error), LOG_ERRORS, logs)))


@cache
def _describe_levels(schedule: LookSchedule, index: int) -> tuple[float, float, Any]:
    """Return the least and the greatest computed level of a look, and the logs of all of them."""
    levels = [of_error[index] for of_error in _levels_by_error(schedule)]
    return levels[0], levels[-1], np.log(levels)


@cache
def _levels_by_error(schedule: LookSchedule) -> tuple[tuple[float, ...], ...]:
    levels = [exact_levels(schedule.looks, [error * share for share in schedule.spent]) for error in ERRORS]
    # Looks are less alike if the error is smaller, so no look has a larger share of a smaller error.
    for index in reversed(range(ERRORS.index(LEAST_EXACT))):
        smaller = ERRORS[index] / ERRORS[index + 1]
        levels[index] = tuple(map(min, levels[index], (level * smaller for level in levels[index + 1])))
    return tuple(levels)


def exact_levels(looks: Sequence[int], spent: Sequence[float]) -> tuple[float, ...]:
    """Return the two-sided levels with which looks spend exactly these errors, each up to its look, if nothing differs.

    The chain is followed in r, the sum divided by the root of n times the sum of squares. It lies between -1 and 1, and
    t is a function of r and n. Samples that are not yet called different are kept as cells of a grid.
    """
    levels = [spent[0]]
    limit = _r_of_level(spent[0], looks[0])
    edges = np.linspace(-limit, limit, CELLS + 1)
    mass = np.diff(special.stdtr(looks[0] - 1, _t_of_r(edges, looks[0])))
    for before, now, earlier, later in zip(looks, looks[1:], spent, spent[1:], strict=False):
        middles = (edges[1:] + edges[:-1]) / 2

        def excess(limit: float, at: Any = middles, own: Any = mass, n: int = before, m: int = now) -> float:
            below = _step(np.array([-limit, limit]), at, n, m)
            return float((1 - below[1] + below[0]) @ own)

        allowed = later - earlier
        limit = _find_where(excess, allowed, 1e-6, 1 - 1e-9)
        level = float(2 * special.stdtr(now - 1, -_t_of_r(limit, now)))
        # The level lies between the newly spent error and all of it, but the cells are too coarse to show this for tiny
        # errors.
        levels.append(min(max(level, allowed), later))
        edges = np.linspace(-limit, limit, CELLS + 1)
        mass = np.diff(_step(edges, middles, before, now) @ mass)
    return tuple(levels)


def find_new_calls(levels: LookLevels) -> tuple[Any, Any]:
    """Return falling chances at the last look, and for each pair of neighbours the share that is first called there.

    A chance is the probability of a t at least this large if nothing differs. The share does not depend on what
    differs: once the mean and the scatter of a sample are known, its order says nothing more about its origin.
    """
    *before_last, (rounds, level) = levels
    chances = level / 2 * np.append(np.geomspace(1, RAREST, TAILS), 0.0)
    if not before_last:
        return chances, np.ones(TAILS)
    before, middles, mass = 0, np.zeros(1), np.ones(1)
    for now, own_level in before_last:
        limit = _r_of_level(own_level, now)
        edges = np.linspace(-limit, limit, CELLS // 2 + 1)
        below = _step(edges, middles, before, now) @ mass if before else special.stdtr(now - 1, _t_of_r(edges, now))
        before, middles, mass = now, (edges[1:] + edges[:-1]) / 2, np.diff(below)
    t = -special.stdtrit(rounds - 1, chances[:-1])
    reached = np.append(t / np.sqrt(rounds - 1 + t * t), 1.0)
    return chances, np.diff(_step(reached, middles, before, rounds) @ mass) / -np.diff(chances)


def _find_where(function: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Return where a decreasing function has this value, by false position (Illinois).

    Importing scipy's module for this takes a quarter of a second and 20 MiB.
    """
    above, below = function(low) - wanted, function(high) - wanted
    last = 0.0
    while high - low > ROOT_ERROR:
        root = high - below * (high - low) / (below - above)
        value = function(root) - wanted
        if abs(value) < ROOT_ERROR:
            return root
        # The value at an end that stays twice is halved, so that the other end moves closer.
        if value > 0:
            low, above, below = root, value, below / 2 if last > 0 else below
        else:
            high, below, above = root, value, above / 2 if last < 0 else above
        last = value
    return (low + high) / 2


def _step(limits: Any, sources: Any, before: int, now: int) -> Any:
    """Return the probability that r is below each limit after `now` rounds, from each source after `before` rounds.

    A sample of normal values is a random direction. `kept` is the share of its length that belongs to the earlier
    rounds. `rest` is that of the new rounds, and the sum of these is its projection on one direction.
    """
    more = now - before
    middles = (np.arange(NODES) + 0.5) / NODES
    squares = special.betaincinv(before / 2, more / 2, middles)
    kept, rest = np.sqrt(squares), np.sqrt(1 - squares)
    reached = limits[:, None, None] - math.sqrt(before / now) * sources[None, :, None] * kept
    return _projection(more, reached / (math.sqrt(more / now) * rest)).mean(axis=-1)


def _projection(dimensions: int, limit: Any) -> Any:
    """Return the probability that one coordinate of a random direction is below a limit."""
    if dimensions == 1:
        return np.where(limit >= 1, 1.0, np.where(limit >= -1, 0.5, 0.0))
    limit = np.clip(limit, -1, 1)
    if dimensions == 2:
        return 0.5 + np.arcsin(limit) / math.pi
    if dimensions == 3:
        return (1 + limit) / 2
    half = (dimensions - 1) / 2
    return special.betainc(half, half, (1 + limit) / 2)


def _t_of_r(r: Any, rounds: int) -> Any:
    return r * math.sqrt(rounds - 1) / np.sqrt(1 - r * r)


def _r_of_level(level: float, rounds: int) -> float:
    t = float(special.stdtrit(rounds - 1, 1 - level / 2))
    return t / math.sqrt(rounds - 1 + t * t)
