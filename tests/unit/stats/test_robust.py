"""The second opinion, against its definition and against what it is there for."""

import itertools
import math
import statistics

import numpy as np
import pytest
from scipy import stats

from orchestrator.stats.paired import hodges_lehmann, sign_flip_p


def test_it_is_the_median_of_all_pairwise_means() -> None:
    values = (0.1, 0.5, -0.2, 0.05, 0.9)
    means = [(one + other) / 2 for one, other in itertools.combinations_with_replacement(values, 2)]
    assert hodges_lehmann(values) == pytest.approx(statistics.median(means))


def test_sign_flips_of_six_rounds_of_one_sign_leave_two_of_all_sixty_four() -> None:
    assert sign_flip_p((0.1, 0.2, 0.15, 0.12, 0.3, 0.2)) == 2 / 64


@pytest.mark.parametrize("rounds", [2, 3, 6, 10])
def test_they_are_scipys_own_permutations_where_all_can_be_tried(rounds: int) -> None:
    draw = np.random.default_rng(rounds)
    for _ in range(5):
        values = tuple(draw.normal(0.05, 0.1, rounds).tolist())
        expected = stats.permutation_test(
            (np.array(values),), np.mean, permutation_type="samples", vectorized=True, n_resamples=2**rounds
        )
        assert sign_flip_p(values) == pytest.approx(expected.pvalue)


def test_a_sample_of_them_comes_near_to_all() -> None:
    values = tuple(np.random.default_rng(5).normal(0.06, 0.15, 15).tolist())
    exact = stats.permutation_test(
        (np.array(values),), np.mean, permutation_type="samples", vectorized=True, n_resamples=2**15
    )
    assert sign_flip_p(values) == pytest.approx(exact.pvalue, abs=4 * math.sqrt(exact.pvalue / 1024))


def test_rounds_without_a_difference_are_no_evidence() -> None:
    assert sign_flip_p((0.0, 0.0, 0.0)) == 1.0


def test_sign_flips_of_many_rounds_are_the_same_at_every_call() -> None:
    values = tuple(0.01 * number for number in range(-8, 12))
    assert sign_flip_p(values) == sign_flip_p(values)
    assert 0.05 < sign_flip_p(values) < 1
