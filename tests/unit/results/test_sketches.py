"""How often a difference is found, and how often noise is called one, wherever in a result it is."""

from typing import Any

import numpy as np
import pytest

from orchestrator.model import OutputVerdict
from orchestrator.results.outputs import compare_outputs
from orchestrator.results.sketches import Distance, find_distance, read_sketch
from tests.support.builders import NEW, OLD, case, plan, replicate, target
from tests.support.result_pairs import DIFFERENCES, NOISE, VALUES, Draw, change
from workloads.sketches import sketch

SEEDS = range(20)


def judge(old: Any, new: Any) -> OutputVerdict:
    """The verdict on two versions, each of which returns the same in both rounds."""
    texts = {OLD: sketch(old), NEW: sketch(new)}
    replicates = [
        replicate(target=target(version), number=number, round=number, output=text, fifth_output=text)
        for version, text in texts.items()
        for number in (1, 2)
    ]
    [found] = compare_outputs(plan([case()]), replicates)
    return found.verdict


def apart(old: Any, new: Any) -> Distance:
    one, other = read_sketch(sketch(old)), read_sketch(sketch(new))
    assert one is not None
    assert other is not None
    return find_distance(one, other)


@pytest.mark.parametrize("draw", DIFFERENCES.values(), ids=DIFFERENCES)
def test_a_difference_is_found_wherever_it_is(draw: Draw):
    verdicts = [judge(*draw(np.random.RandomState(seed))) for seed in SEEDS]
    assert verdicts == ["differs"] * len(SEEDS)


@pytest.mark.parametrize("draw", NOISE.values(), ids=NOISE)
def test_noise_of_floats_is_no_difference(draw: Draw):
    verdicts = [judge(*draw(np.random.RandomState(seed))) for seed in SEEDS]
    assert verdicts == ["equal within tolerance"] * len(SEEDS)


def test_equal_results_are_equal_in_each_of_these():
    for draw in (*DIFFERENCES.values(), *NOISE.values()):
        old, _ = draw(np.random.RandomState(1))
        assert judge(old, old) == "equal"


def test_the_difference_of_a_sampled_result_is_no_larger_than_the_true_one():
    for seed in SEEDS:
        old, new = change(30)(np.random.RandomState(seed))
        found = apart(old, new)
        assert not found.complete
        assert found.allowed < found.share <= 3.0
        assert found.compared == 256


def test_values_of_different_sizes_share_a_norm_only_with_their_like():
    """A value of a lower band that differs shows though values of higher bands scatter by more than it."""
    random = np.random.RandomState(3)
    old = np.concatenate([random.randn(50_000), 1e6 * random.randn(50_000)]).astype("float32")
    new = (old * (1 + 1e-6 * random.randn(VALUES))).astype("float32")
    assert judge(old, new) == "equal within tolerance"
    new[77] += 30
    assert abs(new - old)[50_000:].max() < 30
    new[:50_000] = np.roll(old[:50_000], 1)
    assert judge(old, new) == "differs"
