"""How much harder a difference is to find among many comparisons."""

import pytest

from orchestrator.stats.power import FOUND_ALONE, find_share_found


@pytest.mark.parametrize(("comparisons", "share"), [(1, FOUND_ALONE), (24, 0.56), (1000, 0.21)])
def test_the_share_of_runs_falls_with_the_comparisons(comparisons: int, share: float):
    assert find_share_found(comparisons) == pytest.approx(share, abs=0.01)
