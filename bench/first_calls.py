"""How often a slower first call is found, by the rounds of a run and the first calls of an arm in each of them.

The noise has the shape of the rounds in recorded.json, or the tails of t(3), scaled to what first calls scatter on a
busy machine. A part of it belongs to the workers of a round, which all its first calls share, so that more of them do
not average it out. Everything is drawn from fixed seeds.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from bench.detect import RECORDED
from orchestrator.plan.pairs import LOOKS
from orchestrator.stats.calibrate import FIRST_CALLS
from orchestrator.stats.contrasts import DIFFERENCE_ERROR, FALSE_DISCOVERIES
from orchestrator.stats.looks import FEWEST_ROUNDS, Stretch, make_bystander_schedule, make_schedule
from orchestrator.stats.paired import quantile, two_sided_p

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
# Of the log ratio of two first calls in a round, on two cores that others kept busy: docs/metrics.md.
SCATTER = 0.2
ROUNDS, SLOWER, FIRST = (4, 6, 8), (0.0, 0.3, 0.5), (1, 2, FIRST_CALLS)
# The comparisons of a run of the quick suite in two versions; of all others of them nothing differs.
COMPARISONS = 8
RUNS, SEED = 4000, 26


def recorded() -> Draw:
    """Draw from the log ratios of equal arms in recorded rounds, each series of spread 1."""
    series = [
        np.subtract(one, other)
        for row in json.loads(RECORDED.read_text())
        for one, other in combinations(row["arms"], 2)
    ]
    pool = np.concatenate([(each - each.mean()) / each.std() for each in series])
    return lambda draw, shape: draw.choice(pool, shape) * draw.choice((-1.0, 1.0), shape)


def heavy(draw: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return draw.standard_t(3, shape) / math.sqrt(3)


NOISES: Mapping[str, Draw] = {"as recorded": recorded(), "tails of t(3)": heavy}
# With each noise, what of the scatter belongs to the workers of a round.
SHARES: Sequence[tuple[str, float]] = (("as recorded", 0.0), ("as recorded", 0.1), ("tails of t(3)", 0.0))


def draw_rounds(noise: Draw, of_workers: float, first_calls: int, rounds: int, runs: int, seed: int = SEED) -> Floats:
    """Return the log ratio of two equal arms in each round of each run, as the mean of its first calls.

    Rounds after the first ones have one first call.
    """
    draw = np.random.default_rng([seed, rounds, first_calls])
    calls = noise(draw, (runs, rounds, first_calls))
    own = calls.mean(axis=2)
    own[:, FEWEST_ROUNDS:] = calls[:, FEWEST_ROUNDS:, 0]
    return of_workers * noise(draw, (runs, rounds)) + math.sqrt(SCATTER**2 - of_workers**2) * own


def find(rounds: Floats, share: float, comparisons: int = 1) -> NDArray[np.bool_]:
    """Return which runs call the first comparison different, at a look with this share of the error.

    `rounds` holds the comparisons of a run one after the other; the correction for their number is that of a report.
    """
    runs, number = rounds.shape
    errors = rounds.std(axis=1, ddof=1) / math.sqrt(number)
    t = rounds.mean(axis=1) / errors
    p = np.vectorize(two_sided_p)(t, number - 1).reshape(-1, comparisons) / share
    ordered = np.sort(p, axis=1) * comparisons / np.arange(1, comparisons + 1)
    different = np.array([np.max(np.flatnonzero(each <= FALSE_DISCOVERIES) + 1, initial=1) for each in ordered])
    level = share * np.minimum(DIFFERENCE_ERROR, FALSE_DISCOVERIES * different / comparisons)
    first = slice(0, runs, comparisons)
    return np.abs(t[first]) > np.array([quantile(1 - each / 2, number - 1) for each in level])


def share_of_looks(rounds: int) -> float:
    """Return the share of the error that a metric which ends rounds has at a look after this many."""
    return make_schedule([Stretch(LOOKS)]).level(rounds, DIFFERENCE_ERROR) / DIFFERENCE_ERROR


def share_once(rounds: int) -> float:
    """Return the share that a metric which ends no rounds has after this many."""
    return make_bystander_schedule([Stretch(LOOKS)]).level(rounds, 1.0)


def found(slower: float, noise: str, of_workers: float, first_calls: int, rounds: int, runs: int = RUNS) -> float:
    drawn = draw_rounds(NOISES[noise], of_workers, first_calls, rounds, runs)
    return float(find(drawn + math.log1p(slower), share_once(rounds)).mean())


def found_among(slower: float, noise: str, of_workers: float, first_calls: int, rounds: int, runs: int = RUNS) -> float:
    """Return how often it is found if it is the only difference of a run."""
    drawn = draw_rounds(NOISES[noise], of_workers, first_calls, rounds, runs * COMPARISONS)
    drawn[::COMPARISONS] += math.log1p(slower)
    return float(find(drawn, share_once(rounds), COMPARISONS).mean())


def section() -> str:
    lines = [
        f"First calls whose ratio scatters by {SCATTER:.0%} from one to the next, {RUNS} simulated runs per figure:",
        "the share of runs in which equal arms, +30 % and +50 % are called different. Judged alone, as if most cases",
        f"differ, or as the only difference among {COMPARISONS}. Each of the first {FEWEST_ROUNDS} rounds has up to",
        f"{FIRST_CALLS} first calls of an arm. At the looks of times, with one in each round, these shares are",
        f"{_at_looks()}.",
        "",
        "| noise | the workers' part | rounds | first calls | equal, +30 %, +50 %, alone | the only one that differs |",
        "|---|---|---|---|---|---|",
    ]
    for (noise, of_workers), rounds, first_calls in product(SHARES, ROUNDS, FIRST):
        how = (noise, of_workers, first_calls, rounds)
        cells = [", ".join(f"{share(slower, *how):.1%}" for slower in SLOWER) for share in (found, found_among)]
        lines.append(f"| {noise} | {of_workers:.0%} | {rounds} | {first_calls} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _at_looks() -> str:
    shares = []
    for rounds in ROUNDS:
        drawn = draw_rounds(NOISES["as recorded"], 0.0, 1, rounds, RUNS)
        of = (f"{find(drawn + math.log1p(slower), share_of_looks(rounds)).mean():.1%}" for slower in SLOWER)
        shares.append(f"{', '.join(of)} after {rounds} rounds")
    return "; ".join(shares)
