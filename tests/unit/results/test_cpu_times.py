"""CPU times: a family of verdicts next to those of wall times, or the times that are judged."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.errors import UsageError
from orchestrator.history.points import of_run
from orchestrator.metrics import METRICS
from orchestrator.model import Case, Load, Plan
from orchestrator.results.compare_runs import compare_runs
from orchestrator.results.endings import Endings
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run import load_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.warnings import find_open_times, is_crowded
from tests.support.builders import (
    MS,
    NEW,
    OLD,
    case,
    finished,
    manifest,
    plan,
    rows,
    run_folder,
    target,
    write_stream,
)

ROUNDS = 6
CASES = tuple(case(name) for name in "abc")
# In each round, how the logs of the newer version's times differ from those of the older one.
Logs = Callable[[Case, int], float]


def busy(of: Case, number: int) -> float:
    """Wall times that show nothing."""
    return 0.4 * (-1) ** (number // 2)


def slower(of: Case, number: int) -> float:
    """CPU times that are 10 % longer in the first case and equal in the others."""
    return (math.log(1.1) if of == CASES[0] else 0.0) + 0.002 * (-1) ** number


def measured(path: Path, of: Plan, wall: Logs = busy, cpu: Logs = slower) -> RunFolder:
    run = run_folder(path, of, host=manifest().host | {"id": "abc", "boot": "1"})
    for place, version in enumerate((OLD, NEW)):
        batches = []
        for which, one in enumerate(of.cases):
            for number in range(1, ROUNDS + 1):
                replicate = (number * len(of.cases) + which) * 2 + place
                batch = rows(one, version, round=number, replicate=replicate, run=of.run)
                for row in batch:
                    if row["phase"] == "burst":
                        row["wall_ns"] = int(10 * MS * math.exp(place * wall(one, number)))
                        row["cpu_ns"] = int(8 * MS * math.exp(place * cpu(one, number)))
                batches.append(batch)
        stream = run.worker_output.stream(target(version), 1)
        write_stream(stream, batches)
        run.worker_output.settle(stream)
    run.record(finished(how="", seconds=1.0))
    return run


def test_cpu_times_are_judged_by_the_rule_of_a_metric_with_their_own_correction(tmp_path: Path):
    run = measured(tmp_path / "run", plan(CASES))
    found = judge_run(run)
    assert [each.verdict for each in found.comparisons] == ["inconclusive"] * 3
    assert [each.cpu_verdict for each in found.comparisons] == ["slower", "same", "same"]
    assert all(each.is_decided_by_cpu for each in found.comparisons)
    as_metric = judge_run(run, metrics=["cpu"]).metrics["cpu"]
    assert [
        (each.cpu_ratio, each.cpu_low, each.cpu_high, each.cpu_verdict, each.cpu_spread) for each in found.comparisons
    ] == [(each.ratio, each.ci_low, each.ci_high, each.verdict, each.spread) for each in as_metric]
    assert found.comparisons[0].spread > 50 * found.comparisons[0].cpu_spread
    assert len(find_open_times(found)) == 3
    [warning] = found.warnings
    assert "CPU time decides 3 of these (--columns +cpu-ratio)" in warning
    # A look has no use for them.
    assert all(each.cpu_verdict is None for each in judge_run(run, at_look=True).comparisons)


def test_among_many_rows_cpu_time_needs_more_than_alone(tmp_path: Path):
    """The same CPU times: a verdict alone, and none among thirty cases in which nothing differs."""
    draw = np.random.default_rng(7)
    noise = {(str(place), number): draw.normal(0, 0.06) for place in range(30) for number in range(1, ROUNDS + 1)}
    shift = {1: 0.14, 2: 0.04, 3: 0.12, 4: 0.06, 5: 0.11, 6: 0.07}

    def cpu(of: Case, number: int) -> float:
        return shift[number] if of.workload == "0" else noise[of.workload, number]

    verdicts = []
    for count in (1, 30):
        cases = tuple(case(str(place)) for place in range(count))
        found = judge_run(measured(tmp_path / str(count), plan(cases), cpu=cpu))
        verdicts.append(found.comparisons[0].cpu_verdict)
    assert verdicts == ["slower", "inconclusive"]


def test_cpu_times_decide_nothing_on_a_gpu_or_where_an_arm_drifts(tmp_path: Path):
    [found, *_] = judge_run(measured(tmp_path / "gpu", plan(CASES, device="gpu"))).comparisons
    assert (found.cpu_ratio, found.cpu_verdict) == (pytest.approx(1.1, rel=0.01), None)
    run = run_folder(tmp_path / "drift", plan(CASES[:1]))
    for place, version in enumerate((OLD, NEW)):
        batches = []
        for number in range(1, ROUNDS + 1):
            batch = rows(CASES[0], version, round=number, replicate=2 * number + place, bursts=(10 * MS,) * 8)
            bursts = [row for row in batch if row["phase"] == "burst"]
            for burst, row in enumerate(bursts):
                row["cpu_ns"] = int(8 * MS * (1 + 0.1 * place * burst + 0.001 * number))
            batches.append(batch)
        write_stream(run.worker_output.stream(target(version), 1), batches)
    run.record(finished(how="", seconds=1.0))
    [found] = judge_run(run).comparisons
    assert found.cpu_ratio > 1.2
    assert found.cpu_verdict == "inconclusive"


def test_a_run_that_is_judged_by_cpu_time_has_cpu_times_for_its_times(tmp_path: Path):
    by_wall = judge_run(measured(tmp_path / "wall", plan(CASES)))
    found = judge_run(measured(tmp_path / "cpu", plan(CASES, judge="cpu")))
    assert [each.verdict for each in found.comparisons] == ["slower", "same", "same"]
    assert [(each.ratio, each.ci_low, each.ci_high) for each in found.comparisons] == [
        (each.cpu_ratio, each.cpu_low, each.cpu_high) for each in by_wall.comparisons
    ]
    assert all(each.cpu_ratio is None for each in found.comparisons)
    for arm, other in zip(found.arms, by_wall.arms, strict=True):
        assert (arm.time_ms, arm.figures["cpu"], arm.wall_ms) == (*[other.figures["cpu"]] * 2, other.time_ms)
        # Of what is in no burst, the wall time is known.
        for each in (arm, other):
            assert (each.figures["first"], each.second_ms, each.train_s) == (
                arm.figures["first"],
                arm.second_ms,
                arm.train_s,
            )
    assert find_open_times(found) == []
    # A look ends rounds by them as well.
    assert [each.verdict for each in judge_run(RunFolder.open(tmp_path / "cpu"), at_look=True).comparisons] == [
        "slower", "same", "same",
    ]  # fmt: skip


def test_runs_of_different_times_are_not_compared_and_are_different_series(tmp_path: Path):
    paths = {judge: tmp_path / judge for judge in ("wall", "cpu")}
    for judge, path in paths.items():
        measured(path, plan(CASES, run=f"20260102-030405-{judge}", judge=judge, metrics=("memory",)))
    with pytest.raises(UsageError, match=r"was judged by wall time and .* by CPU time: their ratios are of different"):
        compare_runs(*paths.values())
    points = {judge: of_run(load_run(path), "screen") for judge, path in paths.items()}
    keys = {judge: {point.key for point in of_judge} for judge, of_judge in points.items()}
    assert {key.metric for key in keys["wall"] & keys["cpu"]} == {"memory"}
    assert {(key.metric, key.judge) for key in keys["cpu"] - keys["wall"]} == {("time", "cpu")}
    assert len({key.id for key in keys["wall"] | keys["cpu"]}) == 3 * len(CASES)
    [point] = [point for point in points["cpu"] if point.metric == "time" and point.case == CASES[0].label]
    assert math.exp(point.effect) == pytest.approx(1.1, rel=0.01)
    assert point.reference_figure == pytest.approx(8.0)


def test_the_metric_is_the_time_itself_where_cpu_time_is_judged(tmp_path: Path):
    replicate = load_run(measured(tmp_path / "run", plan(CASES, judge="cpu")).path).replicates[0]
    assert METRICS["time"].values(replicate) == METRICS["cpu"].values(replicate)
    assert replicate.wall_ns == pytest.approx(10 * MS)


def load(**changes: float | None) -> Load:
    """Two loops beside the run, on two cores."""
    facts = {"foreign": 1.3, "steal": 0.0, "cpus": 2, "idle": 0.0, "waiting": 0.95} | changes
    return Load(cases=("a",), round=1, **facts)


@pytest.mark.parametrize(
    ("changes", "crowded"),
    [
        ({}, True),
        ({"waiting": None}, True),
        # One loop, and a call that has the other core for itself.
        ({"foreign": 1.0, "waiting": 0.1}, False),
        ({"foreign": 1.0, "waiting": None}, False),
        # One loop, and calls of two threads.
        ({"foreign": 0.7, "waiting": 0.9}, True),
        # The threads of the run alone.
        ({"foreign": 0.05, "waiting": 0.95}, False),
        ({"idle": 0.3}, False),
        # Another machine of the same host.
        ({"foreign": 0.0, "steal": 0.4, "waiting": 0.9}, True),
        ({"foreign": math.nan, "idle": math.nan}, False),
    ],
)  # fmt: skip
def test_cores_are_shared_if_none_is_idle_and_others_take_part_of_them(changes: dict, crowded: bool):
    assert load(**changes).is_crowded is crowded


def test_a_run_on_shared_cores_is_told_that_its_ratios_are_mixtures(tmp_path: Path):
    run = measured(tmp_path / "run", plan(CASES), wall=slower)
    assert judge_run(run).warnings == ()
    assert not is_crowded(Endings())
    for visit in (load(), load(), load(idle=0.5)):
        run.record(visit)
    found = judge_run(run)
    assert found.crowded
    assert found.warnings == (
        "other work shared all cores in 2 of 3 visits, so wall times are a mixture of computing and of waiting for a "
        "core; --judge cpu compares CPU times",
    )
    run.write_plan(replace(run.read_plan(), judge="cpu"))
    assert judge_run(run).warnings == ()
