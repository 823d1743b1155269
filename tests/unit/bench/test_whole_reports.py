"""A report as a whole: how seldom it names what is equal, and how surely what is not. All draws are fixed."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from bench.whole_reports import NOISES, SPREADS, SimulatedReport, simulate_report

# Hundreds of reports of 56 comparisons each.
pytestmark = pytest.mark.slow

# Other draws than those of the bench.
SEED, EQUAL, DIFFERENT = 2026, 150, 40


@pytest.fixture(scope="module")
def equal() -> list[SimulatedReport]:
    """Reports in which nothing differs, of each noise that lets a row err."""
    draw = np.random.default_rng(SEED)
    return [
        simulate_report(draw, spread, noise=noise)
        for noise, spread in product(NOISES, SPREADS[1:])
        for _ in range(EQUAL)
    ]


def most(hits: list[bool]) -> float:
    """Return the upper end of the exact 95 % interval of a share."""
    return float(stats.binomtest(sum(hits), len(hits)).proportion_ci(method="exact").high)


def test_a_report_in_which_nothing_differs_seldom_names_something(equal: list[SimulatedReport]):
    assert equal[0].evaluation.judged_together == 56
    assert most([report.names for report in equal]) <= 0.05


def test_a_gate_seldom_trips_where_nothing_differs(equal: list[SimulatedReport]):
    assert most([report.trips for report in equal]) <= 0.05


def test_rows_alone_would_err_more_often(equal: list[SimulatedReport]):
    assert sum(report.names_rows for report in equal) > 2 * sum(report.names for report in equal)


@pytest.mark.parametrize("slower", [1, 4])
def test_what_differs_clearly_is_named_and_what_is_equal_next_to_it_is_not(slower: int):
    draw = np.random.default_rng([SEED, slower])
    reports = [simulate_report(draw, 0.05, slower=slower, amount=0.3) for _ in range(DIFFERENT)]
    rows = [each for report in reports for each in report.of_slower]
    assert len(rows) == slower * DIFFERENT
    assert all(each.report_verdict == "slower" for each in rows)
    assert sum(report.errs for report in reports) <= 4
