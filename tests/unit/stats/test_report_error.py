"""Holm's correction, against what it stands for: every intersection of hypotheses is tested, by Bonferroni's rule."""

from itertools import chain, combinations

import numpy as np
import pytest

from orchestrator.model import ReportRow
from orchestrator.stats.report_error import REPORT_ERROR, find_limit, mark_row_only


def close(ps: list[float]) -> list[bool]:
    """Return which hypotheses are rejected because every set that contains them is."""
    places = range(len(ps))
    sets = [set(each) for each in chain.from_iterable(combinations(places, size + 1) for size in places)]
    rejected = [each for each in sets if min(ps[place] for place in each) <= REPORT_ERROR / len(each)]
    return [all(each in rejected for each in sets if place in each) for place in places]


@pytest.mark.parametrize("seed", range(40))
def test_it_rejects_what_the_closed_test_rejects(seed: int):
    draw = np.random.default_rng(seed)
    ps = (10 ** draw.uniform(-4, 0, 6)).tolist()
    limit = find_limit(ps)
    assert [p <= limit for p in ps] == close(ps)


def test_what_is_as_small_is_treated_alike():
    twice = REPORT_ERROR / 3
    assert find_limit([twice, 1.0, twice]) == twice
    assert find_limit([twice * 1.01] * 3) == 0


def test_nothing_is_named_where_nothing_was_compared():
    assert find_limit([]) == 0


@pytest.mark.parametrize(
    ("row", "report_verdict", "marked"),
    [
        (ReportRow(verdict="slower", p=0.02), "inconclusive", True),
        (ReportRow(verdict="faster", p=0.02), "inconclusive", True),
        (ReportRow(verdict="slower", p=0.01), "slower", False),
        (ReportRow(verdict="same", size="slight", p=0.02), "same", True),
        (ReportRow(verdict="same", p=0.5), "same", False),
        (ReportRow(verdict="inconclusive", p=0.5, reason="too noisy"), "inconclusive", False),
        # Nothing about it is left to chance.
        (ReportRow(verdict="slower", size="beyond"), "slower", False),
    ],
)
def test_only_a_difference_above_the_limit_is_marked(row: ReportRow, report_verdict: str, marked: bool):
    found = mark_row_only(row, 0.01, 56)
    assert (found.row_only, found.report_verdict, found.verdict) == (marked, report_verdict, row.verdict)
    assert found.reason == ("certain in its row, but not among all 56 comparisons" if marked else row.reason)
