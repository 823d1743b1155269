"""The order of a run on a GPU: who may hold it, whose code is made first, and what a hot one has done again."""

import time
from collections.abc import Collection
from dataclasses import replace
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from orchestrator import contract
from orchestrator.catalog.gpu_support import GpuSupport, Match
from orchestrator.machine.gpu import Gpu, GpuReading
from orchestrator.measure import replicate, starting
from orchestrator.model import Disturbed, Ended, GpuSpan, Watched
from tests.support.actors import Part, Stage, play
from tests.support.builders import NEW, OLD, case, plan

A, B = case("a"), case("b")
CARD = Gpu(0, "GPU-4d6a", "NVIDIA H100", "9.0", "550.54", 81_920, 700, True, False)
SEEN = [{"name": "NVIDIA H100", "capability": "9.0"}]
COOL = GpuReading(0, 1980, None, 41, 122, None, (), None)
HOT = replace(COOL, sm_mhz=900, temperature_c=90, throttled=("thermal slowdown",))


def on_gpu(*cases, **changes):
    return plan(cases, device="gpu", gpus=(CARD.key,), engine="docker", **changes)


def most_at_once(stage: Stage) -> int:
    here, most = 0, 0
    for door, _ in stage.doors:
        here += 1 if door == "in" else -1
        most = max(most, here)
    return most


def test_where_only_one_process_may_hold_the_gpu_none_meets_another(tmp_path: Path):
    """Not even at the start, where all workers are tried; and everything is measured as ever."""
    stage = Stage(gpus=SEEN)
    asked = on_gpu(A, B, looks=(2,), seed=0, isolation="container", exclusive=True)
    played = play(tmp_path, asked, stage, GpuSupport(gpus=(CARD,)))
    assert most_at_once(stage) == 1
    # Each is tried once, and the pilot is the first of two rounds.
    assert stage.forks == [False] * (2 + 2 * 2 * 2)
    assert [arm.rounds for arm in played.evaluation.arms] == [2] * 4
    for visit in stage.openings():
        assert len({(event.case, event.version) for event in visit}) == 1
    orders = {
        number: [e.version for e in stage.log if (e.round, e.case, e.kind) == (number, "a", "open")]
        for number in (0, 2)
    }
    assert orders[2] == orders[0][::-1]
    places = {row["position"] for row in rows_of(played) if row["round"]}
    assert places == {0, 1}


def rows_of(played) -> list[dict]:
    tables = [pa.ipc.open_stream(stream.path.read_bytes()).read_all() for stream in played.run.worker_output.streams()]
    return [row for table in tables for row in table.select(["round", "position"]).to_pylist()]


def test_without_that_workers_share_the_gpu(tmp_path: Path):
    stage = Stage(gpus=SEEN)
    play(tmp_path, on_gpu(A, looks=(2,)), stage, GpuSupport(gpus=(CARD,)))
    assert most_at_once(stage) == 2


def test_a_death_where_one_process_holds_the_gpu_leaves_it_to_the_next(tmp_path: Path):
    stage = Stage({("a", NEW): Part(takes_its_worker_along=("burst", 2))}, gpus=SEEN)
    asked = on_gpu(A, B, looks=(2,), isolation="container", exclusive=True)
    played = play(tmp_path, asked, stage, GpuSupport(gpus=(CARD,)))
    assert most_at_once(stage) == 1
    outcomes = {(arm.case.label, arm.target): arm.outcome for arm in played.evaluation.arms}
    assert outcomes == {("a", OLD): "measured", ("a", NEW): "died", ("b", OLD): "measured", ("b", NEW): "measured"}


def jit(*versions: str) -> GpuSupport:
    return GpuSupport(
        gpus=(CARD,), matches=tuple(Match(version, CARD.title, "jit", "PTX only") for version in versions)
    )


def test_a_version_whose_code_the_driver_makes_opens_each_case_once_before_the_pilot(tmp_path: Path):
    stage = Stage(gpus=SEEN)
    play(tmp_path, on_gpu(A, B, looks=(2,), seed=0), stage, jit(NEW))
    first, second, *others = stage.openings()
    for opening, name in ((first, "a"), (second, "b")):
        assert [(event.kind, event.version, event.case) for event in opening] == [
            ("open", NEW, name),
            ("burst", NEW, name),
            ("close", NEW, name),
        ]
    assert {(event.version, event.case) for visit in others[:2] for event in visit} == {
        (version, case) for version in (OLD, NEW) for case in "ab"
    }
    assert len(stage.opened("a", NEW)) == len(stage.opened("a", OLD)) + 1


def test_what_was_opened_for_the_driver_is_no_round_beside_a_pilot_that_counts(tmp_path: Path):
    stage = Stage(gpus=SEEN)
    played = play(tmp_path, on_gpu(A, B, looks=(4,)), stage, jit(NEW))
    assert stage.opened("a", NEW) == [0, 0, 2, 3, 4]
    assert {arm.rounds for arm in played.evaluation.arms} == {4}


def test_a_case_that_is_refused_leaves_the_warming_to_the_next(tmp_path: Path):
    stage = Stage({("a", NEW): Part(refuses="no such op")}, gpus=SEEN)
    play(tmp_path, on_gpu(A, B, looks=(2,), seed=0), stage, jit(NEW))
    assert stage.opened("a", NEW) == [0]
    assert stage.opened("b", NEW) == [0, 0, 2]


def test_warming_takes_nothing_of_the_budget_and_has_a_deadline_of_its_own(tmp_path: Path, monkeypatch):
    told: list[float] = []
    real = replicate.Replicates.open

    def opening(self, arm, round, *, timeout_s=None, **how):
        told.append(timeout_s)
        return real(self, arm, round, timeout_s=timeout_s, **how)

    monkeypatch.setattr(replicate.Replicates, "open", opening)
    begun = time.monotonic() - 1000
    played = play(tmp_path, on_gpu(A, looks=(2,), budget_s=60.0), Stage(gpus=SEEN), jit(NEW), started=begun)
    assert played.ending == ""
    assert told[0] == starting.SLOW_START_TIMEOUT_S
    assert set(told[1:]) == {None}


@pytest.fixture
def hot(monkeypatch: pytest.MonkeyPatch) -> list[GpuReading]:
    """A GPU that gets hot in the burst that these readings are taken after, one after another; then it stays cool."""
    coming: list[GpuReading] = []
    looks: list[GpuReading] = []

    def read(only: Collection[str] = (), *, brief: bool = False) -> tuple[GpuReading, ...]:
        if brief:
            looks.append(coming.pop(0) if coming else COOL)
            return (looks[-1],)
        return (COOL,)

    monkeypatch.setattr("orchestrator.machine.host.read_gpus", read)
    monkeypatch.setattr("orchestrator.machine.host.read_counters", lambda cpus: None)
    return coming


def test_a_visit_with_one_throttled_burst_is_redone_and_every_visit_is_in_the_journal(tmp_path: Path, hot):
    hot += [*[COOL] * 16, COOL, HOT]
    played = play(tmp_path, on_gpu(A, looks=(5,)), Stage(gpus=SEEN), GpuSupport(gpus=(CARD,)))
    (disturbed,) = [entry for entry in played.run.entries() if isinstance(entry, Disturbed)]
    assert (disturbed.round, disturbed.redone, disturbed.cause) == (2, True, "GPU 0 was throttled (thermal slowdown)")
    watched = [entry for entry in played.run.entries() if isinstance(entry, Watched)]
    assert [(entry.round, entry.cases) for entry in watched] == [(number, ("a",)) for number in (0, 2, 2, 3, 4, 5)]
    assert watched[1].gpus == (
        GpuSpan(
            index=0, sm_mhz_min=900, sm_mhz_max=1980, temperature_c=90, power_w=122, throttled=("thermal slowdown",)
        ),
    )
    assert watched[0].gpus[0].throttled == watched[2].gpus[0].throttled == ()


def test_a_pilot_with_a_throttled_burst_is_not_the_first_round(tmp_path: Path, hot):
    hot += [HOT]
    stage = Stage(gpus=SEEN)
    played = play(tmp_path, on_gpu(A, looks=(2,)), stage, GpuSupport(gpus=(CARD,)))
    assert stage.opened("a", NEW) == [0, 1, 2]
    assert {arm.rounds for arm in played.evaluation.arms} == {2}


def test_a_replicate_without_its_gpu_has_its_container_replaced_and_its_round_repeated(tmp_path: Path, hot):
    part = Part(dies=("open", 3), how=contract.GPU_LOST, reason="TensorFlow found 0 of 1 GPUs", times=1)
    stage = Stage({("a", NEW): part}, gpus=SEEN)
    played = play(tmp_path, on_gpu(A, looks=(5,)), stage, GpuSupport(gpus=(CARD,)))
    (disturbed,) = [entry for entry in played.run.entries() if isinstance(entry, Disturbed)]
    assert (disturbed.round, disturbed.redone, disturbed.cause) == (3, True, "a replicate did not find its GPU")
    assert stage.opened("a", NEW) == [0, 2, 3, 3, 4, 5]
    # One for each round after the pilot's, and the one that was replaced.
    assert stage.doors.count(("in", NEW)) == stage.doors.count(("in", OLD)) + 1
    (died,) = [entry for entry in played.run.entries() if isinstance(entry, Ended) and entry.outcome == "died"]
    assert (died.how, died.failure, died.external) == ("gpu lost", "gpu", True)
    assert {arm.rounds for arm in played.evaluation.arms} == {5}


def test_a_gpu_that_stays_lost_costs_the_version_and_not_the_run(tmp_path: Path, hot):
    part = Part(dies=("open", 3), how=contract.GPU_LOST, reason="TensorFlow found 0 of 1 GPUs")
    stage = Stage({("a", NEW): part}, gpus=SEEN)
    played = play(tmp_path, on_gpu(A, looks=(5,)), stage, GpuSupport(gpus=(CARD,)))
    assert stage.opened("a", NEW)[:4] == [0, 2, 3, 3]
    assert played.ending == ""
    assert {arm.target: arm.rounds for arm in played.evaluation.arms}[OLD] == 5


def test_a_stranger_on_the_gpu_has_the_visit_redone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = count(1)

    def read(only: Collection[str] = (), *, brief: bool = False) -> tuple[GpuReading, ...]:
        if brief:
            return (COOL,)
        # Before, at the beginning, at the end and after the bursts of each visit.
        visit, place = divmod(next(asked) - 1, 4)
        return (replace(COOL, pids=(815,) if (visit, place) == (2, 3) else (4711,) if place in (1, 2) else ()),)

    monkeypatch.setattr("orchestrator.machine.host.read_gpus", read)
    monkeypatch.setattr("orchestrator.machine.host.read_counters", lambda cpus: None)
    played = play(tmp_path, on_gpu(A, looks=(5,)), Stage(gpus=SEEN), GpuSupport(gpus=(CARD,)))
    (disturbed,) = [entry for entry in played.run.entries() if isinstance(entry, Disturbed)]
    assert (disturbed.round, disturbed.redone) == (3, True)
    assert disturbed.cause == "another process (pid 815) was on GPU 0"


def test_on_a_cpu_nothing_of_a_card_is_in_the_journal(tmp_path: Path, hot):
    played = play(tmp_path, plan([A], looks=(2,)), Stage())
    assert not any(isinstance(entry, Watched) for entry in played.run.entries())
