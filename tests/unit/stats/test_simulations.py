"""The promises of a verdict, on made noise that no part of the tool was tuned on, judged look by look as a run does.

What is promised holds for rounds that do not depend on each other, however heavy their tails. Where rounds resemble
their predecessors, where a ratio drifts, or where a run keeps workers of which one is slower as long as it lives, an
interval promises more than it keeps: the second half states by how much, so that nobody believes otherwise. All draws
are fixed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from orchestrator.model import ArmKey, Comparison
from orchestrator.plan.pairs import LOOKS, TABLE_LOOKS
from orchestrator.stats.comparisons import Rises, judge_pairs
from orchestrator.stats.dependence import find_dependence
from orchestrator.stats.looks import Stretch, make_schedule
from orchestrator.stats.paired import Estimate
from tests.support.builders import NEW, OLD, arm, case, plan, target
from tests.support.judged_runs import JudgedRun

# Thousands of runs: not for the fast loop.
pytestmark = pytest.mark.slow

Floats = NDArray[np.float64]
# So many runs, each with the difference of two arms in every round.
Noise = Callable[[np.random.Generator, int], Floats]

CASE = case()
PLAN = plan([CASE], looks=LOOKS)
ARMS = [arm(CASE, OLD), arm(CASE, NEW)]
SCHEDULE = make_schedule([Stretch(LOOKS)])
ROUNDS = LOOKS[-1]
SEED = 18
ALIKE, SLOWED = 1500, 400
TABLES = 40


def normal(spread: float) -> Noise:
    return lambda draw, runs: spread * draw.normal(size=(runs, ROUNDS))


def student(spread: float, freedom: int) -> Noise:
    return lambda draw, runs: spread * draw.standard_t(freedom, size=(runs, ROUNDS))


def laplace(spread: float) -> Noise:
    return lambda draw, runs: spread * draw.laplace(size=(runs, ROUNDS))


def neighbour(spread: float) -> Noise:
    """A neighbour comes and goes; while it is there, it slows one arm or the other."""

    def differences(draw: np.random.Generator, runs: int) -> Floats:
        present = np.zeros((runs, ROUNDS), bool)
        present[:, 0] = draw.random(runs) < 1 / 3
        for number in range(1, ROUNDS):
            chance = np.where(present[:, number - 1], 0.7, 0.15)
            present[:, number] = draw.random(runs) < chance
        hits = draw.choice((-1.0, 1.0), (runs, ROUNDS)) * draw.exponential(4 * spread, (runs, ROUNDS))
        return spread * draw.normal(size=(runs, ROUNDS)) + present * hits

    return differences


def following(spread: float, correlation: float) -> Noise:
    """Each round resembles the one before it: an autoregressive process of first order."""

    def differences(draw: np.random.Generator, runs: int) -> Floats:
        rounds = draw.normal(size=(runs, ROUNDS))
        for number in range(1, ROUNDS):
            new = math.sqrt(1 - correlation**2) * rounds[:, number]
            rounds[:, number] = correlation * rounds[:, number - 1] + new
        return spread * rounds

    return differences


def drifting(spread: float, reach: float) -> Noise:
    """The ratio moves evenly, from this far on one side of 1 to as far on the other."""

    def differences(draw: np.random.Generator, runs: int) -> Floats:
        ways = draw.choice((-1.0, 1.0), (runs, 1))
        return spread * draw.normal(size=(runs, ROUNDS)) + ways * np.linspace(-reach, reach, ROUNDS)

    return differences


def kept_workers(spread: float, between: float) -> Noise:
    """Workers that a run keeps: one is a little faster or slower than another for as long as the run lasts."""
    return lambda draw, runs: spread * draw.normal(size=(runs, ROUNDS)) + between * draw.normal(size=(runs, 1))


def new_workers(spread: float, luck: float, share: float) -> Noise:
    """Workers that live for a round: this share of them is slower by this much, whatever the version."""

    def differences(draw: np.random.Generator, runs: int) -> Floats:
        one, other = (luck * (draw.random((runs, ROUNDS)) < share) for _ in range(2))
        return spread * draw.normal(size=(runs, ROUNDS)) + one - other

    return differences


INDEPENDENT: Mapping[str, Noise] = {
    "normal, 1 %": normal(0.01),
    "normal, 3 %": normal(0.03),
    "normal, 6 %": normal(0.06),
    "normal, 12 %": normal(0.12),
    "t with 2 degrees of freedom": student(0.03, 2),
    "t with 3 degrees of freedom": student(0.03, 3),
    "Laplace": laplace(0.03),
    "a neighbour that comes and goes": neighbour(0.02),
    "a third of the workers is 6 % slower": new_workers(0.02, 0.06, 1 / 3),
    "a tenth of the workers is 10 % slower": new_workers(0.01, 0.10, 0.1),
}


# `make soak` has the others as well.
USUAL = (
    "normal, 3 %",
    "normal, 12 %",
    "t with 3 degrees of freedom",
    "a neighbour that comes and goes",
    "a third of the workers is 6 % slower",
)


def each_noise(*names: str) -> pytest.MarkDecorator:
    """Give a test each of these noises."""
    marked = [name if name in USUAL else pytest.param(name, marks=pytest.mark.long) for name in names or INDEPENDENT]
    return pytest.mark.parametrize("name", marked)


def judge_by_looks(
    differences: Sequence[float], rises: Rises | None = None, shared: Sequence[float] = ()
) -> Comparison:
    """Return the comparison with which a run ends; `shared` is what both arms have in common in each round."""
    both = shared or [0.0] * len(differences)
    for look in LOOKS:
        samples = {
            (CASE.label, target(OLD), "time"): dict(enumerate(both[:look], 1)),
            (CASE.label, target(NEW), "time"): {
                number: common + apart
                for number, (common, apart) in enumerate(zip(both[:look], differences[:look], strict=True), 1)
            },
        }
        (comparison,) = judge_pairs(PLAN, samples, ARMS, SCHEDULE, rises)
        if comparison.verdict != "inconclusive":
            break
    return comparison


def simulate(noise: Noise, slowdown: float, runs: int) -> list[JudgedRun]:
    differences = noise(np.random.default_rng(SEED), runs) + math.log1p(slowdown)
    return [JudgedRun(slowdown, judge_by_looks(of_run)) for of_run in differences.tolist()]


def bounds(hits: Sequence[bool]) -> tuple[float, float]:
    """The exact 95 % interval of a share."""
    interval = stats.binomtest(sum(hits), len(hits)).proportion_ci(method="exact")
    return interval.low, interval.high


def called(runs: Sequence[JudgedRun], *verdicts: str) -> tuple[float, float]:
    return bounds([run.comparison.verdict in verdicts for run in runs])


def covered(runs: Sequence[JudgedRun]) -> tuple[float, float]:
    return bounds([run.covered for run in runs])


@cache
def find_alike(name: str) -> list[JudgedRun]:
    return simulate(INDEPENDENT[name], 0.0, ALIKE)


@cache
def find_slowed(name: str) -> list[JudgedRun]:
    """Runs with +5 % and, as many, with +10 %."""
    return simulate(INDEPENDENT[name], 0.05, SLOWED) + simulate(INDEPENDENT[name], 0.10, SLOWED)


def of_slowdown(runs: Sequence[JudgedRun], slowdown: float) -> list[JudgedRun]:
    return [run for run in runs if run.slowdown == slowdown]


@each_noise()
def test_equal_arms_are_called_different_in_at_most_one_of_forty(name):
    assert called(find_alike(name), "slower", "faster")[1] <= 0.025


@each_noise()
def test_the_interval_holds_the_truth_at_whichever_look_it_stops(name):
    assert covered([*find_alike(name), *find_slowed(name)])[0] >= 0.95


@each_noise()
def test_what_is_slower_is_never_called_faster(name):
    assert not any(run.comparison.verdict == "faster" for run in find_slowed(name))


@each_noise()
def test_twice_the_margin_is_never_called_the_same(name):
    assert not any(run.comparison.verdict == "same" for run in of_slowdown(find_slowed(name), 0.10))


@each_noise("normal, 1 %", "normal, 3 %", "t with 3 degrees of freedom", "Laplace")
def test_a_slowdown_of_the_margin_is_found_in_nine_of_ten(name):
    assert called(of_slowdown(find_slowed(name), 0.05), "slower")[0] >= 0.9


@each_noise(*(name for name in INDEPENDENT if name != "normal, 12 %"))
def test_twice_the_margin_is_found_in_49_of_50(name):
    # Rounds that a neighbour hits resemble each other, so intervals are wider.
    least = 0.97 if name == "a neighbour that comes and goes" else 0.98
    assert called(of_slowdown(find_slowed(name), 0.10), "slower")[0] >= least


def test_noise_of_12_percent_leaves_most_small_differences_open():
    assert called(find_alike("normal, 12 %"), "inconclusive")[0] >= 0.9
    assert called(of_slowdown(find_slowed("normal, 12 %"), 0.05), "slower")[1] <= 0.3
    assert called(of_slowdown(find_slowed("normal, 12 %"), 0.10), "slower")[0] >= 0.6


def test_quiet_equal_arms_are_the_same_and_soon():
    runs = simulate(normal(0.01), 0.0, SLOWED)
    assert called(runs, "same")[0] >= 0.99
    # Chance makes the rounds of some runs resemble each other, which then get more of them.
    assert bounds([run.comparison.rounds <= LOOKS[2] for run in runs])[0] >= 0.95


def test_a_drift_that_both_arms_share_changes_no_verdict():
    differences = normal(0.03)(np.random.default_rng(SEED), SLOWED).tolist()
    shared = np.linspace(0.0, 0.5, ROUNDS).tolist()
    for of_run in differences:
        alone, drifted = judge_by_looks(of_run), judge_by_looks(of_run, shared=shared)
        assert (drifted.verdict, drifted.rounds) == (alone.verdict, alone.rounds)


def test_a_drift_of_the_ratio_inside_replicates_refuses_a_verdict_that_it_could_have_made():
    draw = np.random.default_rng(SEED)
    rises = {
        ArmKey(CASE.label, target(version)): dict(enumerate((rise + draw.normal(0, 0.01, ROUNDS)).tolist(), 1))
        for version, rise in ((OLD, 0.0), (NEW, 0.08))
    }
    differences = normal(0.02)(draw, 50) + math.log1p(0.06)
    for of_run in differences.tolist():
        comparison = judge_by_looks(of_run, {"time": rises})
        assert comparison.verdict == "inconclusive"
        assert comparison.reason.startswith("the ratio has")


# The largest share of equal arms that one comparison calls different, by the correlation of a round with the one before
# it. If nothing looked for that, it would be 17 % and 43 %.
ALONE = {0.5: 0.15, 0.8: 0.33}


@pytest.fixture(scope="module")
def resembling() -> dict[float, list[JudgedRun]]:
    """Equal arms, by the correlation of a round with the one before it."""
    return {correlation: simulate(following(0.05, correlation), 0.0, ALIKE) for correlation in ALONE}


@pytest.mark.parametrize(("correlation", "most"), ALONE.items())
def test_one_comparison_whose_rounds_resemble_each_other_is_called_different_less_often(correlation, most, resembling):
    assert called(resembling[correlation], "slower", "faster")[1] <= most


def test_one_comparison_cannot_show_all_that_its_rounds_depend_on_each_other(resembling):
    # The limit: the first looks have too few rounds for that.
    assert called(resembling[0.8], "slower", "faster")[0] > 0.05
    assert covered(resembling[0.8])[1] < 0.9


@pytest.mark.parametrize(("correlation", "most"), [(0.5, 0.05), (0.8, 0.10)])
def test_28_comparisons_whose_rounds_resemble_each_other_are_seldom_called_different(correlation, most):
    rows = following(0.05, correlation)(np.random.default_rng(SEED), 28 * TABLES).reshape(TABLES, 28, ROUNDS)
    comparisons = [comparison for table in rows.tolist() for comparison in judge_table(table)]
    assert np.mean([comparison.verdict in ("slower", "faster") for comparison in comparisons]) <= most


def judge_table(rows: Sequence[Sequence[float]]) -> tuple[Comparison, ...]:
    """Return the comparisons with which a run of as many cases ends; a case that is decided gets no more rounds."""
    cases = [case(f"case{number}") for number in range(len(rows))]
    asked = plan(cases, looks=TABLE_LOOKS)
    arms = [arm(each, version) for each in cases for version in (OLD, NEW)]
    ends = dict.fromkeys(range(len(rows)), 0)
    undecided = set(ends)
    for look in TABLE_LOOKS:
        ends |= dict.fromkeys(undecided, look)
        samples = {}
        for number, end in ends.items():
            label = cases[number].label
            samples[label, target(OLD), "time"] = dict.fromkeys(range(1, end + 1), 0.0)
            samples[label, target(NEW), "time"] = dict(enumerate(rows[number][:end], 1))
        comparisons = judge_pairs(asked, samples, arms, make_schedule([Stretch(TABLE_LOOKS)]))
        undecided &= {number for number, each in enumerate(comparisons) if each.verdict == "inconclusive"}
        if not undecided:
            break
    return comparisons


def test_a_ratio_that_moves_during_a_run_is_judged_by_where_it_was_until_then():
    # The limit: no interval knows that the rest of the run would have brought the opposite.
    runs = simulate(drifting(0.03, 0.05), 0.0, ALIKE)
    assert called(runs, "slower", "faster")[0] > 0.1
    assert called(runs, "slower", "faster")[1] < 0.25


def test_a_ratio_that_moves_during_a_run_is_seen_at_its_end():
    rows = drifting(0.03, 0.05)(np.random.default_rng(SEED), 28)
    assert find_dependence([Estimate(tuple(row)) for row in rows.tolist()]).moves


@pytest.mark.parametrize(
    ("between", "fewest_called", "most_called", "most_covered"), [(0.01, 0.02, 0.05, 0.96), (0.035, 0.35, 0.5, 0.6)]
)
def test_workers_that_a_run_keeps_are_taken_for_versions(between, fewest_called, most_called, most_covered):
    # Therefore each round has new ones: `bench/workers` found them to differ by up to 2 %.
    runs = simulate(kept_workers(0.03, between), 0.0, ALIKE)
    low, high = called(runs, "slower", "faster")
    assert low > fewest_called
    assert high < most_called
    assert covered(runs)[1] < most_covered


def test_the_luck_of_workers_that_a_run_keeps_is_not_seen_as_dependence():
    rows = kept_workers(0.03, 0.035)(np.random.default_rng(SEED), 28).tolist()
    assert not find_dependence([Estimate(tuple(row)) for row in rows])
