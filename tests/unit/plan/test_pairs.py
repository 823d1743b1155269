"""Cases become pairs, always the same ones; more rounds take the looks that are left."""

from typing import get_args

import pytest

from orchestrator.model import Pairing
from orchestrator.plan.pairs import (
    LOOKS,
    find_baselines,
    find_further_baselines,
    find_pairing,
    in_order,
    looks_left,
    neighbour_pairs,
    plan_pairs,
    plan_program_pairs,
)
from tests.support.builders import arm, case, case_pair, plan, targets, workload

WORKLOADS = {
    "train": workload(
        "train", params={"loop": (), "mode": ("graph", "eager"), "size": ()}, comparisons={"mode": "eager"}
    )
}
GRAPH, EAGER = (case("train", loop="fit", mode=mode, size="small") for mode in ("graph", "eager"))
POWER = case("power")


def test_each_version_is_paired_with_the_first_and_each_case_with_its_baseline_in_every_version():
    graph, eager = GRAPH.label, EAGER.label
    pairs = plan_pairs([GRAPH, EAGER], targets(("1.0.0", "2.0.0", "3.0.0")), WORKLOADS)
    assert [pair.arms for pair in pairs] == [
        ((graph, "1.0.0"), (graph, "2.0.0")),
        ((graph, "1.0.0"), (graph, "3.0.0")),
        ((eager, "1.0.0"), (eager, "2.0.0")),
        ((eager, "1.0.0"), (eager, "3.0.0")),
        ((eager, "1.0.0"), (graph, "1.0.0")),
        ((eager, "2.0.0"), (graph, "2.0.0")),
        ((eager, "3.0.0"), (graph, "3.0.0")),
    ]


PAIRED = {
    "first": ["a b", "a c", "a d"],
    "neighbours": ["a b", "b c", "c d"],
    "all": ["a b", "a c", "a d", "b c", "b d", "c d"],
}


@pytest.mark.parametrize("pairing", get_args(Pairing))
def test_targets_are_paired_as_asked_and_the_plan_tells_how(pairing):
    four = targets(("a", "b", "c", "d"))
    for pairs in (
        plan_pairs([POWER], four, {"power": workload()}, pairing=pairing),
        plan_program_pairs([POWER], four, ("time",), pairing),
    ):
        assert [f"{pair.baseline} {pair.candidate}" for pair in pairs] == PAIRED[pairing]
    asked = plan((POWER,), ("a", "b", "c", "d"), pairs=pairs)
    assert find_pairing(asked) == pairing
    assert list(find_baselines(asked).values()) == {"neighbours": ["a", "b", "c"]}.get(pairing, ["a", "a", "a"])
    assert find_further_baselines(asked) == (["b", "c"] if pairing == "all" else [])


@pytest.mark.parametrize("pairing", get_args(Pairing))
def test_a_control_is_compared_with_its_target_alone(pairing):
    pairs = plan_pairs([POWER], targets(("a", "a+control", "b")), {"power": workload()}, pairing=pairing)
    assert [f"{pair.baseline} {pair.candidate}" for pair in pairs] == ["a a+control", "a b"]


def test_a_pair_of_cases_names_what_both_share():
    pair = plan_pairs([GRAPH, EAGER], targets(("1.0.0", "2.0.0")), WORKLOADS)[-1]
    assert pair == case_pair(EAGER, GRAPH, "2.0.0")
    assert pair.params == (("loop", "fit"), ("size", "small"))
    assert pair.differing_params == ((("mode", "eager"),), (("mode", "graph"),))


def test_a_case_whose_baseline_is_not_measured_is_paired_with_nothing():
    assert [pair.kind for pair in plan_pairs([GRAPH], targets(("1.0.0", "2.0.0")), WORKLOADS)] == ["target"]


def test_the_order_is_that_of_the_versions_wherever_the_baseline_stands():
    assert in_order(targets(("2.13.0", "1.14.0", "2.2.3", "2.10.1", "2.13.0+control"))) == (
        "1.14.0",
        "2.2.3",
        "2.10.1",
        "2.13.0",
    )
    assert in_order(targets(("b", "a"))) == ("b", "a")
    asked = plan((POWER,), ("2.13.0", "1.14.0", "2.2.3"))
    pairs = neighbour_pairs(asked, [arm(POWER, version) for version in asked.targets])
    assert [(one.baseline, one.candidate) for one in pairs] == [("1.14.0", "2.2.3"), ("2.2.3", "2.13.0")]


def test_two_versions_and_runs_of_claims_have_no_neighbours():
    asked = plan((POWER,), ("1.14.0", "2.0.0"))
    assert neighbour_pairs(asked, [arm(POWER, version) for version in asked.targets]) == ()


@pytest.mark.parametrize(
    ("rounds", "left"),
    [(0, LOOKS), (3, LOOKS), (4, (6, 8, 10, 13, 16, 20)), (5, (6, 8, 10, 13, 16, 20)), (16, (20,)), (20, ()), (28, ())],
)
def test_more_rounds_take_the_looks_that_are_ahead(rounds: int, left: tuple[int, ...]):
    assert looks_left(LOOKS, rounds) == left
