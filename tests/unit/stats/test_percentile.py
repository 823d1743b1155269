"""How many calls a percentile needs, against what repeated samples of a known distribution do."""

import numpy as np
import pytest

from orchestrator.stats.calibrate import count_calls


@pytest.mark.parametrize("percent", [50, 95, 99])
@pytest.mark.parametrize("spread", [0.02, 0.2])
def test_so_many_calls_have_the_error_that_was_asked_for(percent: int, spread: float):
    draw = np.random.default_rng(percent)
    calls = np.exp(np.log(1e6) + spread * draw.standard_normal(4000)).astype(int)
    wanted = 0.2 * spread
    needed = count_calls(calls, percent, wanted)
    samples = spread * draw.standard_normal((2000, needed))
    error = np.percentile(samples, percent, axis=1).std()
    assert error == pytest.approx(wanted, rel=0.3)


def test_a_late_percentile_needs_more_calls_and_calls_that_scatter_twice_as_much_four_times_as_many():
    draw = np.random.default_rng(1).standard_normal(4000)
    calm, wild = (np.exp(np.log(1e6) + spread * draw).astype(int) for spread in (0.1, 0.2))
    assert count_calls(calm, 99, 0.01) > 5 * count_calls(calm, 50, 0.01)
    assert count_calls(wild, 99, 0.01) == pytest.approx(4 * count_calls(calm, 99, 0.01), rel=0.01)
