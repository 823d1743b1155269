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
from bench.figures import Figure, Section
from orchestrator.plan.pairs import LOOKS
from orchestrator.stats.calibrate import FIRST_CALLS
from orchestrator.stats.comparisons import DIFFERENCE_ERROR, FALSE_DISCOVERIES, of_many
from orchestrator.stats.looks import FEWEST_ROUNDS, Stretch, make_bystander_schedule
from orchestrator.stats.paired import Estimate
from orchestrator.stats.shared_variance import share_variance

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
# Of the log ratio of two first calls in a round, on two cores that others kept busy: docs/metrics.md.
SCATTER = 0.2
ROUNDS, SLOWER, FIRST = (4, 6, 8), (0.0, 0.3, 0.5), (1, FIRST_CALLS)
# Those of a run of the quick suite in two versions.
COMPARISONS = 8
RUNS, SEED = 1000, 26


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


def find(runs: Floats, share: float) -> float:
    """Return how often the first comparison of a run is called different, at a look with this share of the error."""
    hits = 0
    for run in runs:
        estimates = share_variance([Estimate(tuple(rounds)) for rounds in run.tolist()])
        ps = of_many([min(each.p / share, 1.0) for each in estimates])
        different = sum(p <= FALSE_DISCOVERIES for p in ps)
        error = min(DIFFERENCE_ERROR, FALSE_DISCOVERIES * max(different, 1) / len(estimates))
        hits += estimates[0].p <= error * share
    return hits / len(runs)


def found(
    slower: float, noise: str, of_workers: float, first_calls: int, rounds: int, *, alone: bool, runs: int = RUNS
) -> float:
    """Return how often a slower first call is found, as the only difference of a run or where all are as slow."""
    drawn = draw_rounds(NOISES[noise], of_workers, first_calls, rounds, runs * COMPARISONS)
    drawn = drawn.reshape(runs, COMPARISONS, rounds)
    drawn[:, : 1 if alone else COMPARISONS] += math.log1p(slower)
    return find(drawn, make_bystander_schedule([Stretch(LOOKS)]).level(rounds, 1.0))


def section() -> Section:
    figures = []
    lines = [
        f"First calls whose ratio scatters by {SCATTER:.0%} from one to the next, {RUNS} simulated runs per figure, of",
        f"{COMPARISONS} comparisons each: the share of runs in which one of them is called different if it is",
        "equal, 30 % slower and 50 % slower. Either all comparisons are like it, or the others are equal. A part of",
        f"the scatter may belong to the workers of a round. Each of the first {FEWEST_ROUNDS} rounds has up to",
        f"{FIRST_CALLS} first calls of an arm. Figures with a target are of runs in which all comparisons are alike.",
        "",
        "| noise | the workers' part | rounds | first calls | equal, +30 %, +50 % in all | the same in one |",
        "|---|---|---|---|---|---|",
    ]
    for (noise, of_workers), rounds, first_calls in product(SHARES, ROUNDS, FIRST):
        how = (noise, of_workers, first_calls, rounds)
        in_all, in_one = ([found(slower, *how, alone=alone) for slower in SLOWER] for alone in (False, True))
        cells = [", ".join(f"{share:.1%}" for share in shares) for shares in (in_all, in_one)]
        lines.append(f"| {noise} | {of_workers:.0%} | {rounds} | {first_calls} | {' | '.join(cells)} |")
        title = f"{noise}, {of_workers:.0%} of the workers, {rounds} rounds with {first_calls}"
        figures += [
            Figure(f"{title}: equal, called different", in_all[0], "share", limit=0.025),
            Figure(f"{title}: +{SLOWER[-1]:.0%} found", in_all[-1], "share", "most", 0.9),
        ]
    return Section("\n".join(lines), figures)
