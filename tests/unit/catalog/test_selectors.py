"""A selector means cases: those of the suite that it leaves free, and any that it names."""

import pytest

from orchestrator.catalog.selectors import parse_selector, select_cases
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.model import Case
from tests.support.builders import case, workload

TRAIN = workload(
    "train",
    params={"loop": ("batch", "fit"), "mode": ("graph", "eager"), "size": ("small", "large", "huge")},
    comparisons={"mode": "eager"},
    exclude=({"loop": "batch", "size": "huge"},),
)
PLAIN = workload("plain", params={})
WORKLOADS = {"train": TRAIN, "plain": PLAIN}
SUITE = ("train[size=small]", "plain")


def labels(cases: tuple[Case, ...]) -> list[str]:
    return [one.label for one in cases]


def select(*asked: str, suite: tuple[str, ...] = SUITE) -> list[str]:
    return labels(select_cases(asked, suite, WORKLOADS))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("train", {}),
        ("train[]", {}),
        ("  train[mode=eager]  ", {"mode": ("eager",)}),
        ("train[mode=eager|graph,size=small]", {"mode": ("eager", "graph"), "size": ("small",)}),
        ("train[ mode = eager | graph , size = small ]", {"mode": ("eager", "graph"), "size": ("small",)}),
    ],
)
def test_a_selector_is_a_workload_and_some_of_its_values(text: str, values: dict):
    parsed = parse_selector(text, WORKLOADS)
    assert (parsed.workload, parsed.values) == ("train", values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "invalid case ''; write name"),
        ("train[mode=eager", r"invalid case 'train\[mode=eager': a \] is missing"),
        ("train[mode=eager]x", "invalid case"),
        ("train mode=eager", "invalid case"),
        ("trane", r"unknown workload 'trane' \(did you mean train\?\)"),
        ("train[mod=eager]", r"train has no parameter 'mod' \(did you mean mode\?\); it has loop, mode, size"),
        ("train[eager]", "train has no parameter 'eager'"),
        ("train[mode]", "train has no parameter 'mode'"),
        ("plain[mode=eager]", "plain has no parameter 'mode'; it has none"),
        ("train[mode=eagr]", r"mode cannot be 'eagr' \(did you mean eager\?\); it can be graph, eager"),
        ("train[mode=]", "mode cannot be ''; it can be graph, eager"),
        ("train[mode=eager|]", "mode cannot be ''"),
    ],
)
def test_a_bad_selector_is_refused_with_what_it_can_be(text: str, words: str):
    with pytest.raises(UsageError, match=words):
        parse_selector(text, WORKLOADS)


def test_nothing_asked_is_the_whole_suite_in_its_order():
    assert select() == [
        "train[loop=batch,mode=graph,size=small]",
        "train[loop=batch,mode=eager,size=small]",
        "train[loop=fit,mode=graph,size=small]",
        "train[loop=fit,mode=eager,size=small]",
        "plain",
    ]


def test_a_parameter_that_is_left_free_takes_the_suites_values():
    assert select("train[mode=eager]") == [
        "train[loop=batch,mode=eager,size=small]",
        "train[loop=fit,mode=eager,size=small]",
    ]


def test_a_value_that_is_named_need_not_be_in_the_suite():
    assert select("train[loop=fit,mode=eager,size=large|huge]") == [
        "train[loop=fit,mode=eager,size=large]",
        "train[loop=fit,mode=eager,size=huge]",
    ]


def test_a_workload_that_the_suite_lacks_takes_all_its_values_but_the_excluded():
    found = select("train", suite=("plain",))
    assert len(found) == 2 * 2 * 3 - 2
    assert not [label for label in found if "loop=batch" in label and "size=huge" in label]


def test_cases_stand_once_in_the_order_named():
    assert select("plain", "train[loop=fit,mode=eager]", "train[loop=fit]", "plain") == [
        "plain",
        "train[loop=fit,mode=eager,size=small]",
        "train[loop=fit,mode=graph,size=small]",
    ]


def test_an_excluded_combination_that_is_named_is_said_to_be_nothing():
    with pytest.raises(NothingSelected, match=r"train\[loop=batch,size=huge\]: train leaves that combination"):
        select("train[loop=batch,size=huge]")


def test_a_case_is_written_as_it_is_selected():
    assert case("train", loop="fit", mode="eager").label == "train[loop=fit,mode=eager]"
    assert case("plain").label == "plain"
    assert select(case("train", loop="fit", mode="eager", size="large").label) == [
        "train[loop=fit,mode=eager,size=large]"
    ]
