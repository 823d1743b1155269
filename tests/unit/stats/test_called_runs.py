"""What runs show of the differences that they call, on made noise, judged look by look. All draws are fixed."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from orchestrator.model import Comparison
from orchestrator.plan.pairs import LOOKS, TABLE_LOOKS
from orchestrator.stats.called import estimate_called
from orchestrator.stats.comparisons import DIFFERENCE_ERROR, judge_pairs
from orchestrator.stats.dependence import find_dependence
from orchestrator.stats.limits import FEWEST_COMPARISONS
from orchestrator.stats.looks import Stretch, make_schedule
from orchestrator.stats.paired import Estimate, Prior
from orchestrator.stats.shared_variance import MOST_FREEDOM, SHARED_ERROR_SHARE
from orchestrator.stats.verdict import Levels, judge_estimate
from tests.support.builders import NEW, OLD, arm, case, plan, target

# Thousands of runs: not for the fast loop.
pytestmark = pytest.mark.slow

SCHEDULE = make_schedule([Stretch(LOOKS)])
# Of lone comparisons, and of tables.
SCHEDULES = SCHEDULE, make_schedule([Stretch(TABLE_LOOKS)])
PAGE = Path(__file__).resolve().parents[3] / "docs" / "verdicts.md"
MARGIN = 0.05
SEED, RUNS, MOST, TABLES = 41, 20_000, 300, 340
ROWS, DIFFERING = 28, 4
TRUTH = math.log1p(0.05)


def read_page() -> dict[float, list[list[float]]]:
    """Return the table of docs/verdicts.md by how much rounds scatter: of their mean, alone, and beside others."""
    found = re.findall(r"^\|[^|]+\| ([-\d.]+(?: \| \d\.\d\d){7}) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    rows = [[math.nan if value == "-" else float(value) for value in row.split(" | ")] for row in found]
    return {spread: rows[3 * place : 3 * place + 3] for place, spread in enumerate((0.03, 0.05, 0.10))}


def judge_table(rows: Sequence[Sequence[float]]) -> tuple[Comparison, ...]:
    """Return the comparisons of a table, each from as many rounds as it has."""
    cases = [case(row=str(number)) for number in range(len(rows))]
    samples = {}
    for of_row, differences in zip(cases, rows, strict=True):
        samples[of_row.label, target(OLD), "time"] = dict.fromkeys(range(1, len(differences) + 1), 0.0)
        samples[of_row.label, target(NEW), "time"] = dict(enumerate(differences, 1))
    arms = [arm(of_row, version) for of_row in cases for version in (OLD, NEW)]
    return judge_pairs(plan(cases, looks=LOOKS), samples, arms, SCHEDULES[len(rows) >= FEWEST_COMPARISONS])


def judge_by_looks(rows: NDArray[np.float64]) -> tuple[Comparison, ...]:
    """Return the comparisons with which a run ends whose cases leave as soon as they are decided."""
    rounds = dict.fromkeys(range(len(rows)), 0)
    undecided = set(rounds)
    for look in TABLE_LOOKS:
        rounds.update(dict.fromkeys(undecided, look))
        comparisons = judge_table([rows[row, :count].tolist() for row, count in rounds.items()])
        undecided = {row for row in undecided if comparisons[row].verdict == "inconclusive"}
        if not undecided:
            break
    return comparisons


def find_called(spread: float, prior: Prior | None = None) -> dict[int, list[Estimate]]:
    """Return the comparisons of +5 % that are called slower at each look, each alone in its run, or with a prior."""
    schedule, error = SCHEDULES[bool(prior)], DIFFERENCE_ERROR * (SHARED_ERROR_SHARE if prior else 1)
    looks = schedule.looks
    levels = {look: Levels(schedule.level(look, 0.05), schedule.level(look, error)) for look in looks}
    called: dict[int, list[Estimate]] = {look: [] for look in looks}
    differences = TRUTH + spread * np.random.default_rng(SEED).normal(size=(RUNS, LOOKS[-1]))
    for of_run in differences.tolist():
        for look in looks:
            found = Estimate(tuple(of_run[:look]), prior=prior)
            verdict = judge_estimate(found, MARGIN, levels[look]).verdict
            if verdict == "slower":
                called[look].append(found)
            if verdict != "inconclusive":
                break
    return called


def holds(comparison: Comparison, truth: float) -> bool:
    assert comparison.ends is not None
    return comparison.ends[0] <= truth <= comparison.ends[1]


# `make soak` has the others as well.
SPREADS = [0.05, *(pytest.param(spread, marks=pytest.mark.long) for spread in (0.03, 0.10))]


@pytest.mark.parametrize("spread", SPREADS)
def test_what_is_called_shows_what_the_page_says(spread: float):
    """A run of one comparison has only its own rounds to tell how much rounds scatter: part of the luck stays."""
    mean, alone, _ = read_page()[spread]
    for place, (look, called) in enumerate(find_called(spread).items(), 1):
        if len(called) < 50:
            continue
        at_look = called[:MOST]
        comparisons = [judge_table([found.differences])[0] for found in at_look]
        tolerance = 2 * spread if len(at_look) == MOST else 0.25
        for values, said in (
            ([found.theta for found in at_look], mean),
            ([each.estimate or 0.0 for each in comparisons], alone),
        ):
            assert np.median(values) / TRUTH == pytest.approx(said[place], abs=tolerance)
        held = sum(holds(comparison, TRUTH) for comparison in comparisons)
        # After 4 rounds, a lone comparison misses it a little more often.
        assert held / len(at_look) >= (0.95 if look > LOOKS[0] else 0.92)


@pytest.mark.parametrize("spread", SPREADS)
def test_what_is_called_in_a_table_shows_what_the_page_says(spread: float):
    *_, in_table = read_page()[spread]
    schedule = SCHEDULES[True]
    for said, (look, called) in zip(in_table, find_called(spread, Prior(spread**2, MOST_FREEDOM)).items(), strict=True):
        at_look = called[:MOST]
        if len(at_look) < 50:
            continue
        levels = schedule.trace_levels(look, DIFFERENCE_ERROR * SHARED_ERROR_SHARE)
        levels = tuple(each for each in levels[:-1] if each[0] >= LOOKS[0]) + levels[-1:]
        shown = [estimate_called(found, levels) for found in at_look]
        tolerance = 3 * spread if len(at_look) == MOST else 0.35
        assert np.median([theta for theta, _, _ in shown]) / TRUTH == pytest.approx(said, abs=tolerance)
        assert np.mean([low <= TRUTH <= high for _, low, high in shown]) >= 0.95


@pytest.fixture(scope="module", params=[pytest.param(0.05, marks=pytest.mark.long), 0.10])
def tables(request: pytest.FixtureRequest) -> list[tuple[float, Comparison]]:
    """The called rows of tables of which few rows differ, by 5 %, each with its true difference."""
    draw = np.random.default_rng(SEED)
    truths = np.where(np.arange(ROWS) < DIFFERING, TRUTH, 0.0)
    called = []
    for _ in range(TABLES // 3 if request.param == 0.05 else TABLES):
        comparisons = judge_by_looks(truths[:, None] + request.param * draw.normal(size=(ROWS, LOOKS[-1])))
        called += [each for each in zip(truths, comparisons, strict=True) if each[1].verdict in ("slower", "faster")]
    return called


def test_intervals_of_called_rows_that_differ_hold_the_truth(tables: list[tuple[float, Comparison]]):
    held = [holds(comparison, truth) for truth, comparison in tables if truth]
    assert stats.binomtest(sum(held), len(held)).proportion_ci(method="exact").low >= 0.95


def test_no_called_row_shows_an_interval_that_reaches_none(tables: list[tuple[float, Comparison]]):
    for _, comparison in tables:
        assert comparison.ends is not None
        assert comparison.ends[0] > 0 if comparison.verdict == "slower" else comparison.ends[1] < 0
        assert comparison.ends[0] < (comparison.estimate or 0.0) < comparison.ends[1]


@pytest.mark.parametrize("truth", [0.0, TRUTH])
def test_no_verdict_depends_on_what_is_shown(truth: float):
    draw = np.random.default_rng(SEED)
    for of_run in (truth + 0.03 * draw.normal(size=(400, LOOKS[2]))).tolist():
        alone, (comparison,) = Estimate(tuple(of_run)), judge_table([of_run])
        found = find_dependence([alone]).widen(alone)
        assert comparison.ends is not None
        width = found.half_width(SCHEDULE.level(LOOKS[2], DIFFERENCE_ERROR))
        called = abs(found.theta) > width and comparison.size != "slight"
        assert (comparison.verdict in ("slower", "faster")) == called
        if called:
            assert comparison.ends[0] <= found.theta - width + 1e-12
            assert comparison.ends[1] >= found.theta + width - 1e-12
