"""What tables gain, and risk, whose rows share their variance; on made noise that no part of the rule was tuned on.

The scatter of rows differs as the square root of a gamma distribution does, and noise is that of tests, not of benches.
All draws are fixed.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bench import borrowed_variance
from bench.borrowed_variance import FASTER, MARGIN, ROUNDS, SAME, SLOWER, draw_tables, judge_tables, normal, recorded
from orchestrator.plan.pairs import LOOKS, TABLE_LOOKS
from orchestrator.stats import comparisons
from orchestrator.stats.comparisons import judge_pairs
from orchestrator.stats.dependence import Dependence
from orchestrator.stats.looks import Stretch, make_schedule
from tests.support.builders import NEW, OLD, arm, case, plan, target

pytestmark = pytest.mark.slow

Floats = NDArray[np.float64]
DrawNoise = Callable[[np.random.Generator, tuple[int, ...]], Floats]

SEED, TABLES = 20261127, 500


def uniform(draw: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return draw.uniform(-math.sqrt(3), math.sqrt(3), size)


def laplace(draw: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return draw.laplace(size=size) / math.sqrt(2)


def heavy(draw: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return draw.standard_t(2.5, size)


def spiked(draw: np.random.Generator, size: tuple[int, ...]) -> Floats:
    """In one round of ten, one arm or the other waits for something, for a while that is exponential."""
    waits = draw.choice((-1.0, 1.0), size) * draw.exponential(5.0, size)
    return draw.normal(size=size) + np.where(draw.random(size) < 0.1, waits, 0.0)


def sharing(draw: np.random.Generator, size: tuple[int, ...]) -> Floats:
    """Rows in pairs whose arms share a baseline."""
    tables, rows, rounds = size
    shared = np.repeat(draw.normal(size=(tables, rows // 2, rounds)), 2, axis=1)
    return (shared + draw.normal(size=size)) / math.sqrt(2)


NOISES = {"Laplace": laplace, "t(2.5)": heavy, "spikes": spiked, "shared baselines": sharing}
# Shapes of the gamma distribution that variances follow: none, and log scatters that vary by 0.38 and 0.80.
EQUAL, USUAL, UNLIKE = math.inf, 2.2, 0.75


def draw(noise: str, scatter: float, shape: float, rows: int = 20, tables: int = TABLES) -> Floats:
    return draw_noise(NOISES[noise], scatter, shape, rows, tables)


def draw_noise(noise: DrawNoise, scatter: float, shape: float, rows: int = 20, tables: int = TABLES) -> Floats:
    made = np.random.default_rng([SEED, rows])
    variances = np.ones((tables, rows, 1)) if math.isinf(shape) else made.gamma(shape, 1 / shape, (tables, rows, 1))
    return scatter * np.sqrt(variances) * noise(made, (tables, rows, ROUNDS))


@pytest.mark.parametrize("shape", [EQUAL, USUAL, UNLIKE])
@pytest.mark.parametrize("scatter", [0.04, 0.08])
@pytest.mark.parametrize("noise", NOISES)
def test_the_rows_of_a_table_keep_what_one_comparison_promises(noise: str, scatter: float, shape: float):
    rows = draw(noise, scatter, shape)
    alike, slower = judge_tables(rows), judge_tables(rows + MARGIN)
    assert alike.share(SLOWER, FASTER) <= 0.025
    assert slower.share(SAME) <= 0.025
    assert min(alike.covers(0.0), slower.covers(MARGIN)) >= 0.95


def test_noise_without_tails_is_the_limit():
    """A lone comparison does not keep the promise either: few of such rounds happen to lie too near to each other."""
    alone = judge_tables(draw_noise(uniform, 0.08, EQUAL), shared=False).share(SLOWER, FASTER)
    assert 0.025 < alone <= 0.03
    assert judge_tables(draw_noise(uniform, 0.08, EQUAL)).share(SLOWER, FASTER) <= 0.025
    assert 0.025 < judge_tables(draw_noise(uniform, 0.08, UNLIKE)).share(SLOWER, FASTER) <= 0.032


@pytest.mark.parametrize("rows", [8, 10])
@pytest.mark.parametrize("shape", [EQUAL, USUAL])
def test_the_smallest_tables_keep_it_as_well(rows: int, shape: float):
    tables = draw("shared baselines", 0.09, shape, rows, 1500)
    assert judge_tables(tables).share(SLOWER, FASTER) <= 0.025


@pytest.mark.parametrize("loud", [1, 5])
def test_a_few_rows_that_are_far_louder_than_all_others_do_not_break_it(loud: int):
    rows = draw("Laplace", 0.02, EQUAL)
    rows[:, :loud] *= 6
    alike = judge_tables(rows)
    assert alike.share(SLOWER, FASTER) <= 0.025
    assert np.isin(alike.verdicts[:, :loud], (SLOWER, FASTER)).mean() <= 0.05


@pytest.mark.parametrize("times", [1.0, 5.0])
def test_rounds_that_a_machine_gave_keep_it(times: float):
    rows = draw_tables(recorded, times, 0.0, rows=16, tables=150, seed=SEED)
    assert judge_tables(rows).share(SLOWER, FASTER) <= 0.025


@pytest.mark.parametrize(("times", "most"), [(1.0, 0.025), (5.0, 0.045)])
def test_rounds_of_a_machine_that_drifts_are_the_limit(monkeypatch: pytest.MonkeyPatch, times: float, most: float):
    """Its rounds resemble each other so much that a lone comparison errs in over 3% at five times the scatter."""
    monkeypatch.setattr(borrowed_variance, "RECORDED", Path(__file__).with_name("recorded_drift.json"))
    rows = draw_tables(recorded, times, 0.0, rows=16, tables=150, seed=SEED)
    assert judge_tables(rows).share(SLOWER, FASTER) <= most
    assert (judge_tables(rows, shared=False).share(SLOWER, FASTER) > 0.025) == (times > 1)


def test_where_most_rows_differ_and_leave_early_the_others_keep_it():
    rows = draw("spikes", 0.06, USUAL)
    rows[:, :14] += 0.3
    assert np.isin(judge_tables(rows).verdicts[:, 14:], (SLOWER, FASTER)).mean() <= 0.025


@pytest.mark.parametrize("unequal", [0.34, 0.40])
def test_rows_as_unequal_as_in_a_real_run_need_fewer_rounds(unequal: float):
    noise = draw_tables(normal, 0.05, unequal, tables=TABLES, seed=SEED)
    quiet = 0.4 * noise
    found, before = (judge_tables(noise + MARGIN, shared=shared).share(SLOWER) for shared in (True, False))
    assert judge_tables(noise + math.log1p(0.10)).rounds.mean() <= 7.0
    assert found - before >= 0.04
    assert judge_tables(quiet).rounds.mean() <= 5.55


def test_the_rule_of_the_bench_is_the_one_that_judges_runs(monkeypatch: pytest.MonkeyPatch):
    """Row by row and look by look, without what the bench leaves out: many rows, and dependence."""
    monkeypatch.setattr(comparisons, "FALSE_DISCOVERIES", 1.0)
    monkeypatch.setattr(comparisons, "find_dependence", lambda estimates: Dependence())
    schedule = make_schedule([Stretch(TABLE_LOOKS)])
    cases = [case(row=str(number)) for number in range(12)]
    arms = [arm(each, version) for each in cases for version in (OLD, NEW)]
    tables = draw("Laplace", 0.06, USUAL, 12, 12)
    tables[:, 0] *= 8
    names = {"same": [SAME], "slower": [SLOWER], "faster": [FASTER], "inconclusive": [0]}
    for number, table in enumerate(tables):
        table = table + math.log1p(0.02 * number)
        expected = judge_tables(table[None])
        rounds, is_open = np.zeros(12, int), np.full(12, True)
        for look in TABLE_LOOKS:
            rounds[is_open] = look
            samples = {}
            for each, own, count in zip(cases, table, rounds, strict=True):
                samples[each.label, target(OLD), "time"] = dict.fromkeys(range(1, count + 1), 0.0)
                samples[each.label, target(NEW), "time"] = dict(enumerate(own[:count].tolist(), 1))
            found = judge_pairs(plan(cases, looks=TABLE_LOOKS), samples, arms, schedule)
            is_open = np.array([each.verdict == "inconclusive" for each in found])
            if not is_open.any():
                break
        assert [names[each.verdict] for each in found] == [[verdict] for verdict in expected.verdicts[0]]
        assert rounds.tolist() == expected.rounds[0].tolist()


def test_a_table_gets_a_look_that_a_few_rows_do_not():
    assert (3, *LOOKS) == TABLE_LOOKS
