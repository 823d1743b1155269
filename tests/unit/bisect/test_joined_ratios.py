"""Ratios of versions that were never in one run, over those that were."""

import math

import pytest

from orchestrator.bisect.report import join_ratios
from orchestrator.bisect.search import BisectFinding
from tests.support.worlds import finding


def test_the_first_stands_at_one_and_what_was_measured_with_it_keeps_its_own_ratio():
    found = join_ratios("1", [finding("1", "2", 0.7, 0.1)], "time")
    assert found["1"].ratio == 1.0
    assert found["2"].ratio == pytest.approx(math.exp(0.7))
    assert found["2"].ci_high == pytest.approx(math.exp(0.8))
    assert [one.over for one in found.values()] == [0, 1]


def test_over_two_runs_logs_add_up_and_half_intervals_by_their_squares():
    found = join_ratios("1", [finding("1", "3", 0.7, 0.03), finding("3", "2", -0.5, 0.04)], "time")["2"]
    assert math.log(found.ratio) == pytest.approx(0.2)
    assert math.log(found.ci_high) == pytest.approx(0.25)
    assert found.over == 2


def test_each_side_of_an_interval_is_joined_by_itself_and_turns_with_the_path():
    uneven = BisectFinding(earlier="3", later="1", verdict="slower", ratio=2.0, ci_low=1.01, ci_high=2.1)
    found = join_ratios("1", [uneven, finding("3", "2", 0.0, 0.01)], "time")
    assert (found["3"].ratio, found["3"].ci_low, found["3"].ci_high) == pytest.approx((1 / 2, 1 / 2.1, 1 / 1.01))
    assert found["2"].ci_high == pytest.approx(math.exp(-math.log(2) + math.hypot(math.log(2 / 1.01), 0.01)))
    assert found["2"].ci_low == pytest.approx(math.exp(-math.log(2) - math.hypot(math.log(2.1 / 2), 0.01)))


def test_the_way_that_leaves_the_narrowest_interval_is_taken():
    noisy = finding("1", "2", 0.9, 0.5)
    over = [finding("1", "3", 0.4, 0.01), finding("2", "3", -0.2, 0.01)]
    assert math.log(join_ratios("1", [noisy, *over], "time")["2"].ratio) == pytest.approx(0.6)


def test_what_has_no_ratio_leads_nowhere():
    late = BisectFinding(earlier="1", later="2", verdict="slower")
    assert set(join_ratios("1", [late, finding("2", "3", 0.1)], "time")) == {"1"}


def test_differences_add_up_as_they_are():
    leaks = [
        BisectFinding(
            earlier=earlier, later=later, verdict="slower", metric="leak", difference=by, difference_low=by - 3.0,
            difference_high=by + 3.0,
        )
        for earlier, later, by in (("1", "2", 4096.0), ("2", "3", -1024.0))
    ]  # fmt: skip
    found = join_ratios("1", leaks, "leak")
    assert [each.difference for each in found.values()] == [0.0, 4096.0, 3072.0]
    assert found["3"].difference_high == pytest.approx(3072.0 + 3.0 * 2**0.5)
    assert [each.ratio for each in found.values()] == [None] * 3
