"""Whether two versions return the same, from the very sketches that workers make."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrator.model import OutputComparison, Replicate, Returns
from orchestrator.results.outputs import compare_outputs
from orchestrator.results.sketches import find_distance, read_sketch
from tests.support.builders import NEW, OLD, case, claim, plan, replicate, target
from workloads.sketches import sketch

OF = case()
DRAW = np.random.RandomState(1).randn(30, 40).astype("float32")


def compared(baseline: list[Any], candidate: list[Any], *, of_fifth: tuple[Any, Any] | None = None) -> OutputComparison:
    """What two arms come to whose replicates returned these, and these by their fifth calls or else the same."""
    replicates = [
        returned(version, value, number, fifth=None if of_fifth is None else of_fifth[version == NEW])
        for version, values in ((OLD, baseline), (NEW, candidate))
        # A single one is what all of them return.
        for number, value in enumerate(values * 2 if len(values) == 1 else values, 1)
    ]
    [found] = compare_outputs(plan([OF]), replicates)
    return found


LACKING = object()


def returned(version: str, value: Any, number: int = 1, fifth: Any = None) -> Replicate:
    first = None if value is LACKING else sketch(value)
    later = first if fifth is None else None if fifth is LACKING else sketch(fifth)
    return replicate(target=target(version), number=number, round=number, output=first, fifth_output=later)


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
        ([1.0, object()], [1.0, object()], "not comparable"),
        ([1.0, object()], [2.0, object()], "differs"),
        ([1.0, iter([1])], [1.0, iter([1])], "not comparable"),
        ([1.0, None], [1.0, None], "equal"),
        (np.array([2**63 + 1], "uint64"), np.array([2**63 + 2], "uint64"), "differs"),
        (np.array([1e308, -1e308, 1e308]), np.array([1e308, -1e308, 0.0]), "differs"),
        (np.float32([1e-40, 2e-40]), np.float32([1e-40, 3e-40]), "differs"),
        # Parts after the 16th, which are sketched together.
        ([{}] * 16 + [DRAW] * 5, [{}] * 16 + [DRAW.astype("float64")] * 5, "equal"),
        ([{}] * 16 + [DRAW] * 5, [{}] * 16 + [DRAW] * 4 + [DRAW.T], "differs"),
        ([{}] * 16 + [DRAW, 1.5], [{}] * 16 + [DRAW, 1], "differs"),
        ([{}] * 16 + [DRAW, "a"], [{}] * 16 + [DRAW, "b"], "differs"),
        ([{}] * 16 + [DRAW, object()], [{}] * 16 + [DRAW, object()], "not comparable"),
        (np.array(["a"]), np.array(["a"], object), "equal"),
        # Whichever of two parts exceeds its tolerance more.
        ([np.float16([1.0]), np.float64([1.0])], [np.float16([1.005]), np.float64([1.0001])], "differs"),
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
    once = [returned(version, value) for version, value in ((OLD, 1.0), (NEW, 2.0))]
    [found] = compare_outputs(plan([OF]), once)
    assert (found.verdict, found.reason) == (
        "not comparable", "a single round does not tell a difference from chance",
    )  # fmt: skip


def test_a_version_that_was_not_measured_is_compared_with_nothing():
    assert compare_outputs(plan([OF]), [returned(OLD, 1.0)]) == ()


def test_a_later_call_is_compared_as_well():
    """The loss of a first call is from before any update of weights."""
    found = compared([1.0], [1.0], of_fifth=(0.5, 2.0))
    assert (found.verdict, found.call, found.difference) == ("differs", "fifth", 0.75)
    assert found.reason == "in the fifth call"
    found = compared([1.0], [1.0], of_fifth=(0.5, 0.5))
    assert (found.verdict, found.call, found.reason) == ("equal", "first", "")
    found = compared([1.0], [2.0], of_fifth=(0.5, 0.5))
    assert (found.verdict, found.call) == ("differs", "first")
    found = compared([1.0], [1.0], of_fifth=(0.5, LACKING))
    assert (found.verdict, found.call) == ("not comparable", "fifth")
    assert found.reason == "in the fifth call: its results were not kept"
    # A replicate that made fewer calls takes nothing from those of others.
    some = [returned(version, 1.0, number) for version in (OLD, NEW) for number in (1, 2)]
    [found] = compare_outputs(plan([OF]), [*some, returned(NEW, 1.0, 3, fifth=LACKING)])
    assert found.verdict == "equal"


def test_values_that_differ_are_counted():
    other = DRAW.copy()
    other[:2, :3] += 5
    long, many = np.tile(DRAW, (100, 1)), np.tile(DRAW, (100, 1))
    many[::2] += 1
    found = compared([{"a": DRAW[:2], "b": DRAW[2:4]}], [{"a": other[:2], "b": DRAW[2:4]}])
    assert (found.changed, found.compared, found.complete) == (6, 160, True)
    assert found.reason == "6 of 160 values differ"
    found = compared([long], [many])
    assert (found.compared, found.complete) == (256, False)
    assert 90 < found.changed < 160
    assert found.reason == f"{found.changed} of 256 sampled values differ"
    found = compared([long], [long + np.float32(1e-6)])
    assert (found.verdict, found.reason) == ("equal within tolerance", "beyond 256 values compared by sums")
    found = compared([long], [long.copy()])
    assert (found.verdict, found.changed, found.compared, found.complete) == ("equal", 0, 120_000, True)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"parts": []}', sketch(DRAW).replace('"others"', '"other"'), sketch([1.0])[:-1],
     sketch(1.0).replace('"parts"', '"more":1,"parts"'), "[" * 5000, "x" * 2**19],
)  # fmt: skip
def test_what_is_no_sketch_is_none(text: str):
    assert read_sketch(text) is None


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a negative norm": lambda part: part["bands"][0].update(norm=-1.0),
    "a norm beyond the number of values": lambda part: part["bands"][0].update(norm=1e300),
    "an infinite sum": lambda part: part["bands"][0]["sums"].__setitem__(3, float("inf")),
    "a sum beyond the number of values": lambda part: part["bands"][0]["sums"].__setitem__(3, 1e9),
    "a sum too few": lambda part: part["bands"][0]["sums"].pop(),
    "a level that no float has": lambda part: part["bands"][0].update(level=10**9),
    "a level between others": lambda part: part["bands"][0].update(level=3),
    "the same band twice": lambda part: part["bands"].append(part["bands"][0]),
    "too many bands": lambda part: part["bands"].extend(part["bands"] * 20),
    "fewer values than the shape has": lambda part: part["bands"][0].update(count=3),
    "another shape": lambda part: part.update(shape=[2**60, 2**60]),
    "a negative shape": lambda part: part.update(shape=[-30, -40]),
    "a typical size beyond all values": lambda part: part.update(typical=1e300),
    "no typical size": lambda part: part.update(typical=float("nan")),
    "too many values": lambda part: part.update(values=[0.0] * 1000),
    "a long name": lambda part: part.update(name="n" * 1000),
    "a value that is a list": lambda part: part.update(values=[[1.0]]),
    "a digest that is a number": lambda part: part.update(digest=5),
    "a digest that is too short": lambda part: part.update(digest="abc"),
    "values without sums": lambda part: part.update(bands=[]),
    "something else": lambda part: part.update(more=1),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_forged_part_is_no_sketch(damage: Callable[[dict[str, Any]], Any]):
    told = json.loads(sketch(DRAW))
    damage(told["parts"][0])
    assert read_sketch(json.dumps(told)) is None


def test_a_forged_count_of_values_is_a_difference_and_no_crash():
    told = json.loads(sketch(DRAW))
    told["parts"][0].update(values=told["parts"][0]["values"][:5], digest="0" * 16)
    one, other = read_sketch(sketch(DRAW)), read_sketch(json.dumps(told))
    assert one is not None
    assert other is not None
    assert find_distance(one, other).share == float("inf")


def test_what_a_claim_compares_is_compared_though_no_times_are():
    replicates = [returned(version, value, number) for version, value in ((OLD, 1.0), (NEW, 2.0)) for number in (1, 2)]
    said = claim(returns=(Returns(case=OF, baseline=target(OLD), candidate=target(NEW), expected="equal"),))
    assert compare_outputs(plan([OF], pairs=()), replicates) == ()
    [found] = compare_outputs(plan([OF], pairs=(), claims=(said,)), replicates)
    assert (found.verdict, found.difference) == ("differs", 0.5)
