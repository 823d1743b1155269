"""What is promised of first calls, by the simulation with which the benches state it."""

import pytest

from bench.first_calls import NOISES, ROUNDS, found
from orchestrator.stats.calibrate import FIRST_CALLS

RUNS = 400


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rounds", ROUNDS)
def test_half_as_long_again_is_found_in_nine_of_ten_runs_however_few_their_rounds(noise: str, rounds: int):
    assert found(0.5, noise, 0.0, FIRST_CALLS, rounds, alone=False, runs=RUNS) >= 0.9


@pytest.mark.parametrize("noise", NOISES)
def test_three_tenths_longer_is_found_in_half_of_the_runs_of_four_rounds(noise: str):
    assert found(0.3, noise, 0.0, FIRST_CALLS, 4, alone=False, runs=RUNS) >= 0.5


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("of_workers", [0.0, 0.1])
@pytest.mark.parametrize("first_calls", [1, FIRST_CALLS])
def test_equal_first_calls_are_called_different_in_at_most_one_of_forty_runs(
    noise: str, of_workers: float, first_calls: int
):
    shares = [found(0.0, noise, of_workers, first_calls, rounds, alone=False, runs=RUNS) for rounds in ROUNDS]
    assert sum(shares) / len(shares) <= 0.025
