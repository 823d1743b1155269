"""Cases are dealt out to machines: each to one, and those that are compared to the same."""

import pytest

from orchestrator.errors import NothingSelected
from orchestrator.plan.pairs import plan_pairs
from orchestrator.plan.shards import take_shard
from tests.support.builders import case, targets, workload

WORKLOADS = {
    "train": workload(
        "train", params={"mode": (), "input": (), "size": ()}, comparisons={"mode": "eager", "input": "numpy"}
    ),
    "power": workload("power", params={"size": ()}),
}
TRAIN = [
    case("train", mode=mode, input=kind, size=size)
    for size in ("small", "large")
    for mode in ("graph", "eager")
    for kind in ("numpy", "dataset")
]
CASES = [*TRAIN, *(case("power", size=str(size)) for size in range(5))]
VERSIONS = targets(("1.14.0", "2.0.0"))


@pytest.mark.parametrize("count", range(1, 8))
def test_every_case_is_in_one_shard_and_every_comparison_in_one(count: int):
    shards = [take_shard(CASES, WORKLOADS, number, count) for number in range(1, count + 1)]
    assert sorted(case for shard in shards for case in shard) == sorted(CASES)
    pairs = [pair for shard in shards for pair in plan_pairs(shard, VERSIONS, WORKLOADS)]
    assert sorted(map(str, pairs)) == sorted(map(str, plan_pairs(CASES, VERSIONS, WORKLOADS)))
    assert all(list(shard) == [case for case in CASES if case in shard] for shard in shards)


def test_the_shards_are_about_as_large():
    assert [len(take_shard(CASES, WORKLOADS, number, 3)) for number in (1, 2, 3)] == [5, 4, 4]


def test_a_shard_without_a_case_says_how_many_there_can_be():
    with pytest.raises(NothingSelected, match=r"shard 8 of 8 has no case: .* form 7 groups; use at most 7 shards"):
        take_shard(CASES, WORKLOADS, 8, 8)
