"""Whether two versions return the same, from the very sketches that workers make."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrator.model import OutputContrast, Returns
from orchestrator.results.outputs import compare_outputs, distance, read_sketch
from tests.support.builders import NEW, OLD, case, claim, plan, replicate, target
from workloads.values import sketch

OF = case()
DRAW = np.random.RandomState(1).randn(30, 40).astype("float32")


def compared(baseline: list[Any], candidate: list[Any]) -> OutputContrast:
    """What two arms come to whose replicates returned these."""
    replicates = [
        replicate(
            version=target(version), number=number, round=number, output=None if value is LACKING else sketch(value)
        )
        for version, values in ((OLD, baseline), (NEW, candidate))
        # A single one is what all of them return.
        for number, value in enumerate(values * 2 if len(values) == 1 else values, 1)
    ]
    [found] = compare_outputs(plan([OF]), replicates)
    return found


LACKING = object()


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (DRAW, DRAW.copy(), "equal"),
        # Another order of additions, as with oneDNN.
        (DRAW, DRAW * np.float32(1 + 3e-7), "equal within tolerance"),
        (DRAW, DRAW * np.float32(1 + 1e-3), "differs"),
        (DRAW, DRAW.astype("float16"), "equal within tolerance"),
        (DRAW, DRAW.astype("float16").astype("float32"), "differs"),
        (DRAW, DRAW.T, "differs"),
        (DRAW[:, :30], DRAW[:, :30].T, "differs"),
        (DRAW.astype("float64"), DRAW.astype("float64") * (1 + 1e-6), "differs"),
        (DRAW > 0, DRAW > 0, "equal"),
        (DRAW > 0, DRAW >= -1, "differs"),
        (np.arange(5), np.arange(5), "equal"),
        (np.arange(5), np.arange(1, 6), "differs"),
        (2.5, 2.5, "equal"),
        # A lone number, such as a loss, is often the mean of many in float32.
        (2.5, 2.5 * (1 + 1e-6), "equal within tolerance"),
        (np.float64(2.5), np.float32(2.5), "equal"),
        (0.0, 1e-30, "differs"),
        (0.0, 26.0, "differs"),
        (float("nan"), float("nan"), "equal"),
        (float("nan"), 1.0, "differs"),
        (np.array([1.0, np.nan]), np.array([np.nan, 1.0]), "differs"),
        (np.array([1e308, -1e308]), np.array([1e308, -1e308]), "equal"),
        (np.array([np.inf, 1.0]), np.array([-np.inf, 1.0]), "differs"),
        ("a text", "a text", "equal"),
        ("a text", "another", "differs"),
        (np.array(["a", "b"]), np.array(["a", "c"]), "differs"),
        ([DRAW, 1], [DRAW, 2], "differs"),
        ({"a": DRAW, "b": 1.5}, {"b": 1.5, "a": DRAW}, "equal"),
        ([DRAW, 1], [DRAW], "differs"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "equal"),
        (1 + 2j, 1 + 2j, "equal"),
        (1 + 2j, 1 + 3j, "differs"),
        (None, None, "not comparable"),
        (object(), object(), "not comparable"),
        (LACKING, LACKING, "not comparable"),
    ],
)
def test_results_are_told_apart(old: Any, new: Any, verdict: str):
    assert compared([old, old], [new, new]).verdict == verdict


def test_a_difference_says_how_large_it_is_and_where():
    found = compared([{"loss": 1.0, "out": DRAW}], [{"loss": 1.5, "out": DRAW}])
    assert (found.verdict, found.difference, found.floor) == ("differs", pytest.approx(1 / 3), 0.0)
    found = compared([{"out": DRAW}], [{"out": DRAW.T}])
    assert (found.difference, found.reason) == (None, "float32[40,30] of out, not float32[30,40]")
    # The same numbers in another type are equal, and the type is named.
    found = compared([np.float32([1, 2])], [np.float64([1, 2])])
    assert (found.verdict, found.reason) == ("equal", "float64, not float32")


def test_replicates_that_differ_among_themselves_are_compared_with_nothing():
    found = compared([DRAW, DRAW * 1.1], [DRAW, DRAW])
    assert found.verdict == "not comparable"
    assert found.reason.startswith("replicates of 1.0.0 already differ from each other by ")
    assert "compat.fix_weights" in found.reason
    # Also where their forms differ,
    assert compared([DRAW, DRAW], [DRAW, DRAW[1:]]).verdict == "not comparable"
    # but not if all of it is within the tolerance.
    found = compared([DRAW, DRAW * np.float32(1 + 1e-6)], [DRAW, DRAW])
    assert found.verdict in ("equal", "equal within tolerance")
    assert found.floor == pytest.approx(1e-6, rel=5)


def test_a_difference_of_a_single_round_may_be_that_of_its_seed():
    once = [replicate(version=target(version), output=sketch(value)) for version, value in ((OLD, 1.0), (NEW, 2.0))]
    [found] = compare_outputs(plan([OF]), once)
    assert (found.verdict, found.reason) == (
        "not comparable", "a single round does not tell a difference from chance",
    )  # fmt: skip


def test_a_version_that_was_not_measured_is_compared_with_nothing():
    assert compare_outputs(plan([OF]), [replicate(version=target(OLD), output=sketch(1.0))]) == ()


def test_a_long_result_is_compared_by_the_same_places_and_by_its_moments():
    long = np.random.RandomState(2).randn(200_000).astype("float32")
    other = long.copy()
    other[-1000:] = 0
    assert compared([long], [long]).verdict == "equal"
    assert compared([long], [other]).verdict == "differs"
    assert len(sketch([long] * 40)) < 20_000


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"parts": []}', '{"parts": [1], "left_out": 0}', '{"parts": [], "left_out": -1}',
     '{"parts": [], "left_out": 0, "more": 1}', "[" * 5000, "x" * 2**17],
)  # fmt: skip
def test_what_is_no_sketch_is_none(text: str):
    assert read_sketch(text) is None


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a negative mean square": lambda part: part.update(rms=-1.0),
    "an infinite mean": lambda part: part.update(mean=float("inf")),
    "too many values": lambda part: part.update(values=[0.0] * 1000),
    "a long name": lambda part: part.update(name="n" * 1000),
    "a value that is a list": lambda part: part.update(values=[[1.0]]),
    "a digest that is a number": lambda part: part.update(digest=5),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_forged_part_is_no_sketch(damage: Callable[[dict[str, Any]], Any]):
    told = json.loads(sketch(DRAW))
    damage(told["parts"][0])
    assert read_sketch(json.dumps(told)) is None


def test_a_forged_count_of_values_is_a_difference_and_no_crash():
    told = json.loads(sketch(DRAW))
    told["parts"][0]["values"] = told["parts"][0]["values"][:5]
    one, other = read_sketch(sketch(DRAW)), read_sketch(json.dumps(told))
    assert one is not None
    assert other is not None
    assert distance(one, other).share == float("inf")


def test_what_a_claim_compares_is_compared_though_no_times_are():
    replicates = [
        replicate(version=target(version), number=number, round=number, output=sketch(value))
        for version, value in ((OLD, 1.0), (NEW, 2.0))
        for number in (1, 2)
    ]
    said = claim(returns=(Returns(case=OF, baseline=target(OLD), candidate=target(NEW), expected="equal"),))
    assert compare_outputs(plan([OF], pairs=()), replicates) == ()
    [found] = compare_outputs(plan([OF], pairs=(), claims=(said,)), replicates)
    assert (found.verdict, found.difference) == ("differs", 0.5)
