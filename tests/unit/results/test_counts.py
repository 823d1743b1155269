"""Why counts have no verdict: too few replicates, counts that do not agree, and targets that count in other ways."""

from typing import Any

import pytest

from orchestrator.metrics import METRICS
from orchestrator.model import ArmKey
from orchestrator.results.counts import find_disagreement
from tests.support.builders import NEW, OLD, case, replicate, target, version_pair

PAIR = version_pair(case())
PYTHON = {target(OLD): {"python": "3.11.7"}, target(NEW): {"python": "3.11.2"}}
EQUAL = [(1000, 1000), (1000, 1000)]


def find(
    old: list[tuple[int | None, int | None]], new: Any = EQUAL, python: Any = PYTHON, metric: str = "calls"
) -> str:
    column = {"ops": "operations"}.get(metric, "python_calls")
    replicates = {
        ArmKey(case().label, target(version)): [
            replicate(**{column: first, f"next_{column}": later}) for first, later in counts
        ]
        for version, counts in ((OLD, old), (NEW, new))
    }
    return find_disagreement(METRICS[metric], PAIR, replicates, python)


@pytest.mark.parametrize("metric", ["calls", "ops"])
@pytest.mark.parametrize("old", [EQUAL, [(1000, 1001), (1002, 1000)]])
def test_counts_that_agree_are_compared(old: list[tuple[int | None, int | None]], metric: str):
    assert find(old, metric=metric) == ""


@pytest.mark.parametrize("metric", ["calls", "ops"])
@pytest.mark.parametrize(
    ("old", "said"),
    [
        ([(1000, 1000), (1003, 1000)], "counts vary in 1.0.0: 1,000 to 1,003"),
        ([(20_866, 26_000), (20_870, 31_961)], "counts grow from call to call in 1.0.0: 20,866 to 31,961"),
        ([(1000, 1000)], "1 of 2 replicates were counted in 1.0.0"),
        ([], "0 of 2 replicates were counted in 1.0.0"),
        # A replicate that made its first call alone has none.
        ([(1000, 1000), (None, None)], "1 of 2 replicates were counted in 1.0.0"),
        # Nothing has no ratio.
        ([(0, 0), (0, 0)], "a call in 1.0.0 runs none"),
        ([(0, 0), (0, 1)], "counts vary in 1.0.0: 0 to 1"),
    ],
)
def test_others_are_not_and_say_why(old: list[tuple[int | None, int | None]], said: str, metric: str):
    assert find(old, metric=metric) == said


def test_the_newer_arm_has_to_agree_as_well():
    assert find(EQUAL, [(1000, 1100), (1100, 1000)]) == "counts vary in 2.0.0: 1,000 to 1,100"


@pytest.mark.parametrize("other", ["3.7.16", "", "x"])
def test_pythons_of_two_minor_versions_are_not_compared(other: str):
    said = find(EQUAL, python={**PYTHON, target(NEW): {"python": other}})
    assert said.startswith("Python 3.11 and ")
    assert said.endswith("count calls in other ways")


@pytest.mark.parametrize("other", ["3.7.16", "", "x"])
def test_operations_do_not_depend_on_python(other: str):
    assert find(EQUAL, python={**PYTHON, target(NEW): {"python": other}}, metric="ops") == ""


def test_only_tensorflow_has_operations():
    stated = {**PYTHON, target(NEW): {"python": "3.11.2", "backend": "torch"}}
    assert find(EQUAL, [], stated) == "0 of 2 replicates were counted in 2.0.0"
    said = "2.0.0 computes with torch, whose operations are not counted"
    assert find(EQUAL, [], stated, metric="ops") == said


def test_a_figure_without_a_next_one_is_compared_as_it_is():
    assert find([], metric="size") == ""
