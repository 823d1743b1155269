"""`python -m bench.borrowed_variance`: what the rows of a table gain, and risk, if they share their variance.

Tables of rows are simulated and judged look by look, as a run does; a row that is decided gets no more rounds. Every
row is judged by all the error that a single comparison has, as in a table in which most rows differ: a table in which
few do corrects for its number of rows, and errs far less. The rule is written here again, for many tables at once, and
a test compares it with the one that judges runs. Noise is drawn from fixed seeds, and set no constant of the rule.
"""

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

from orchestrator.plan.pairs import ALPHA, LOOKS, TABLE_LOOKS
from orchestrator.stats.comparisons import DIFFERENCE_ERROR
from orchestrator.stats.looks import FEWEST_ROUNDS, Stretch, make_schedule
from orchestrator.stats.paired import MOST_FARTHER, count_trimmed, freedom_of
from orchestrator.stats.shared_variance import CAUTION, LEAST_APART, LEAST_SCATTER_P, MOST_FREEDOM, SHARED_ERROR_SHARE

Floats = NDArray[np.float64]
# Differences of two arms in every round, of this many tables and rows.
Noise = Callable[[np.random.Generator, tuple[int, int]], Floats]

MARGIN = math.log1p(0.05)
ROUNDS, ROWS, TABLES, SEED = LOOKS[-1], 28, 500, 474
RECORDED = Path(__file__).parent / "recorded.json"
SAME, SLOWER, FASTER = 1, 2, 3


@dataclass(frozen=True)
class Outcome:
    """The verdict of each row, 0 if it is open, and its rounds, estimate and half width."""

    verdicts: NDArray[np.int_]
    rounds: NDArray[np.int_]
    estimates: Floats
    widths: Floats

    def share(self, *verdicts: int) -> float:
        return float(np.isin(self.verdicts, verdicts).mean())

    def covers(self, truth: float) -> float:
        return float((np.abs(self.estimates - truth) <= self.widths).mean())


@dataclass(frozen=True)
class _Look:
    """What some rounds say of each row: mean, lean, and the variance of a round with its degrees of freedom."""

    theta: Floats
    lean: Floats
    variance: Floats
    freedom: int

    @classmethod
    def of(cls, rounds: Floats) -> "_Look":
        count = rounds.shape[-1]
        cut = count_trimmed(count)
        ordered = np.sort(rounds, axis=-1)
        theta = ordered[..., cut : count - cut].mean(-1)
        winsorized = np.clip(rounds, ordered[..., cut : cut + 1], ordered[..., count - cut - 1 : count - cut])
        squares = ((winsorized - winsorized.mean(-1, keepdims=True)) ** 2).sum(-1)
        kept = count - 2 * cut
        return cls(theta, ordered.mean(-1) - theta, squares / (kept * (kept - 1)) * count, freedom_of(count))


def judge_tables(differences: Floats, *, shared: bool = True, error: float = DIFFERENCE_ERROR) -> Outcome:
    """Judge tables look by look; `shared` is whether rows share their variance, and are judged from 3 rounds on."""
    looks = TABLE_LOOKS if shared else LOOKS
    schedule = make_schedule([Stretch(looks)])
    shape = differences.shape[:2]
    verdicts, rounds = np.zeros(shape, int), np.zeros(shape, int)
    estimates, widths, variances, freedoms = (np.ones(shape) for _ in range(4))
    for count in looks:
        is_open = verdicts == 0
        if not is_open.any():
            break
        look = _Look.of(differences[..., :count])
        rounds[is_open] = count
        variances = np.where(is_open, look.variance, variances)
        freedoms = np.where(is_open, look.freedom, freedoms)
        variance, freedom, borrows = look.variance, np.full(shape, float(look.freedom)), np.full(shape, False)
        if shared:
            common, borrowed = _fit(variances, freedoms, _find_common(differences[..., :count], rounds))
            borrows = special.fdtrc(look.freedom, borrowed, look.variance / common) >= LEAST_SCATTER_P
            borrowed = np.where(borrows, borrowed, 0.0)
            freedom = look.freedom + borrowed
            variance = (borrowed * common + look.freedom * look.variance) / freedom
        outward = np.where(look.theta >= 0, look.lean, -look.lean)
        errors, distance = np.sqrt(variance / count), np.abs(look.theta)
        of_same, of_others = schedule.level(count, ALPHA), schedule.level(count, error)
        of_different = np.where(borrows, schedule.level(count, SHARED_ERROR_SHARE * error), of_others)
        reach, width = (
            _lengthen(-special.stdtrit(freedom, level / 2) * errors, farther)
            for level, farther in ((of_same, outward), (of_different, -outward))
        )
        is_judged = borrows | (count >= FEWEST_ROUNDS)
        same, differs = is_judged & (distance + reach < MARGIN), is_judged & (distance > width)
        new = np.where(same, SAME, np.where(differs, np.where(look.theta > 0, SLOWER, FASTER), 0))
        verdicts = np.where(is_open, new, verdicts)
        estimates = np.where(is_open, look.theta, estimates)
        widths = np.where(is_open, np.where(same, reach, width), widths)
    return Outcome(verdicts, rounds, estimates, widths)


def _lengthen(width: Floats, farther: Floats) -> Floats:
    longer: Floats = width + np.clip(farther, 0.0, MOST_FARTHER * width)
    return longer


def _fit(variances: Floats, freedoms: Floats, common: Floats) -> tuple[Floats, Floats]:
    """Return the variance of each table's rows, and how many degrees of freedom that is worth."""
    halves, rows = freedoms / 2, variances.shape[1]
    logs = np.log(variances) - special.digamma(halves) + np.log(halves)
    apart, by_chance = logs.var(1, ddof=1), special.zeta(2, halves).mean(1)
    error = np.sqrt(2 * apart**2 / (rows - 1) + 6 * special.zeta(4, halves).mean(1) / rows)
    truly = np.maximum(apart - (1 - common) * by_chance + CAUTION * error, 0)
    uncertain = truly * (1 + 1 / rows) + by_chance * (common + (1 - common) / rows)
    freedom = np.minimum(2 * _invert_trigamma(np.maximum(uncertain, LEAST_APART)), MOST_FREEDOM)
    middle = np.exp(logs.mean(1) + special.digamma(freedom / 2) - np.log(freedom / 2))
    return middle[:, None], freedom[:, None]


def _invert_trigamma(values: Floats) -> Floats:
    numbers = 0.5 + 1 / values
    for _ in range(20):
        trigamma = special.zeta(2, numbers)
        numbers = numbers - trigamma * (1 - trigamma / values) / (2 * special.zeta(3, numbers))
    return numbers


def _find_common(differences: Floats, rounds: NDArray[np.int_]) -> Floats:
    """Return how much the rows of each table stray together: the mean square of their correlations beyond chance."""
    winsorized, measured = np.zeros(differences.shape), np.arange(differences.shape[-1]) < rounds[..., None]
    for count in np.unique(rounds):
        cut, ordered = count_trimmed(int(count)), np.sort(differences[..., :count], axis=-1)
        low, high = ordered[..., cut : cut + 1], ordered[..., count - cut - 1 : count - cut]
        own = (rounds == count)[..., None]
        winsorized[..., :count] = np.where(own, np.clip(differences[..., :count], low, high), winsorized[..., :count])
    counts = rounds[..., None]
    strays = np.where(measured, winsorized - winsorized.sum(-1, keepdims=True) / counts, 0.0)
    strays = strays / np.sqrt((strays**2).sum(-1, keepdims=True) / counts)
    both = np.minimum(counts, rounds[:, None, :]).astype(float)
    squares, by_chance = (strays @ strays.swapaxes(1, 2) / both) ** 2, 1 / (both - 1)
    others = ~np.eye(rounds.shape[1], dtype=bool)
    share = np.where(others, squares - by_chance, 0).sum((1, 2)) / np.where(others, 1 - by_chance, 0).sum((1, 2))
    return np.maximum(share, 0.0)


def normal(draw: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return draw.normal(size=(*shape, ROUNDS))


def heavy(draw: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Tails of t(2.5), of which most rounds lie as near as normal ones."""
    return draw.standard_t(2.5, (*shape, ROUNDS)) / 1.3


def spikes(draw: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """One round in twelve strays four times as far."""
    return draw.normal(size=(*shape, ROUNDS)) * np.where(draw.random((*shape, ROUNDS)) < 1 / 12, 4.0, 0.9)


def together(draw: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Half of the variance of a round is that of all rows: comparisons that share an arm are like that."""
    common = draw.normal(size=(shape[0], 1, ROUNDS))
    return (common + draw.normal(size=(*shape, ROUNDS))) / math.sqrt(2)


def recorded(draw: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Draw each row from one of the runs of equal arms that `bench detect` recorded.

    Which arm is the baseline is drawn for each pair of rounds, so that the true difference is none.
    """
    runs = [np.array(run["arms"]) for run in json.loads(RECORDED.read_text("utf-8"))]
    tables = np.empty((*shape, ROUNDS))
    for place in np.ndindex(shape):
        arms = runs[draw.integers(len(runs))]
        one, other = draw.choice(len(arms), 2, replace=False)
        pairs = (arms[one] - arms[other])[: arms.shape[1] // 2 * 2].reshape(-1, 2)
        drawn = pairs[draw.integers(len(pairs), size=ROUNDS // 2)] * draw.choice((-1.0, 1.0), (ROUNDS // 2, 1))
        tables[place] = drawn.reshape(-1)
    return tables


NOISES: dict[str, Noise] = {"normal": normal, "t(2.5)": heavy, "spikes": spikes, "half in common": together}


def draw_tables(
    noise: Noise, scatter: float, unequal: float, rows: int = ROWS, tables: int = TABLES, seed: int = SEED
) -> Floats:
    """Return rows of equal arms, whose scatters differ by a factor of e to the power of `unequal`."""
    draw = np.random.default_rng([seed, rows])
    scatters = scatter * np.exp(unequal * draw.normal(size=(tables, rows, 1)))
    return scatters * noise(draw, (tables, rows))


def describe_cost(scatter: float, unequal: float, tables: int) -> list[str]:
    """Return lines of the table of rounds, for rows that are judged alone and for rows that share their variance."""
    equal = draw_tables(normal, scatter, unequal, tables=tables)
    lines = []
    for name, shared in (("alone", False), ("shared", True)):
        alike = judge_tables(equal, shared=shared)
        slower, twice = (judge_tables(equal + math.log1p(by), shared=shared) for by in (0.05, 0.10))
        cells = (
            f"{alike.share(SAME):.0%}, {alike.rounds.mean():.1f}",
            f"{slower.share(SLOWER):.1%}, {slower.rounds.mean():.1f}",
            f"{twice.share(SLOWER):.1%}, {twice.rounds.mean():.1f}",
        )
        lines.append(f"| {scatter:.0%} | {unequal:.2f} | {name} | {' | '.join(cells)} |")
    return lines


def describe_error(name: str, tables: Floats) -> str:
    """Return a line of the table of errors."""
    alike, slower = judge_tables(tables), judge_tables(tables + MARGIN)
    cells = (alike.share(SLOWER, FASTER), slower.share(SAME), 1 - alike.covers(0.0), 1 - slower.covers(MARGIN))
    return f"| {name} | {' | '.join(f'{share:.1%}' for share in cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.borrowed_variance", description=__doc__)
    parser.add_argument("--tables", type=int, default=TABLES, help=f"of {ROWS} rows, for each line")
    tables = parser.parse_args().tables
    print("| sd | unequal by e^ | rows | equal: same, rounds | +5 %: slower, rounds | +10 %: slower, rounds |")
    print("|---|---|---|---|---|---|")
    for scatter in (0.02, 0.05, 0.10):
        for unequal in (0.0, 0.34, 0.4, 0.8):
            print("\n".join(describe_cost(scatter, unequal, tables)), flush=True)
    print("\n| noise | equal, called different | +5 %, called the same | intervals miss 0 | they miss +5 % |")
    print("|---|---|---|---|---|")
    for name, noise in NOISES.items():
        for scatter in (0.05, 0.10):
            for unequal in (0.0, 0.4, 0.8):
                title = f"{name}, sd {scatter:.0%}, unequal by e^{unequal}"
                print(describe_error(title, draw_tables(noise, scatter, unequal, tables=tables)), flush=True)
    for rows in (8, 12):
        title = f"normal, sd 10 %, unequal by e^0.4, {rows} rows"
        print(describe_error(title, draw_tables(normal, 0.10, 0.4, rows, tables * ROWS // rows)), flush=True)
    for times in (1.0, 4.0):
        title = f"recorded, times {times:.0f}"
        print(describe_error(title, draw_tables(recorded, times, 0.0, tables=tables)), flush=True)


if __name__ == "__main__":
    main()
