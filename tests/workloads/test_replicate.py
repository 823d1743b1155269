"""What a replicate does beside the calls of its workload."""

import os
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from workloads import readings, replicate

CORES = sorted(os.sched_getaffinity(0))


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """Every set of cores that a thread is let go to; the machine's own affinity is left alone."""
    made: list[set[int]] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: made.append(set(cores)))
    return made


def test_bursts_take_turns_on_the_cores_and_are_free_to_leave(monkeypatch: pytest.MonkeyPatch, moves: list[set[int]]):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 5, 7})
    monkeypatch.setattr(replicate, "find_node", lambda core: "node0")
    for number in (1, 2, 3, 4):
        replicate.take_core(number)
    assert moves == [{5}, {2, 5, 7}, {7}, {2, 5, 7}, {2}, {2, 5, 7}, {5}, {2, 5, 7}]


@pytest.mark.parametrize(("count", "nodes"), [(1, 1), (2, 2), (64, 2), (64, 8)])
def test_a_single_core_and_cores_of_several_nodes_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, moves: list[set[int]], count: int, nodes: int
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(count)))
    monkeypatch.setattr(replicate, "find_node", lambda core: f"node{core % nodes}")
    replicate.take_core(1)
    assert moves == []


@pytest.mark.parametrize("node", ["node0", None], ids=["a node", "nothing is known"])
def test_all_cores_of_a_large_machine_with_one_node_take_turns(
    monkeypatch: pytest.MonkeyPatch, moves: list[set[int]], node: str | None
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)))
    monkeypatch.setattr(replicate, "find_node", lambda core: node)
    for number in (9, 18):
        replicate.take_core(number)
    assert moves == [{9}, set(range(16)), {2}, set(range(16))]


def test_where_it_is_forbidden_a_burst_goes_on(monkeypatch: pytest.MonkeyPatch):
    def forbid(pid: int, cores: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", forbid)
    replicate.take_core(1)


def test_on_this_machine_the_thread_moves_and_keeps_its_cores():
    """Ask in a new thread, whose affinity nothing else has set. The kernel seldom moves it before we look."""
    there: list[bool] = []
    kept: set[frozenset[int]] = set()

    def look() -> None:
        for number in range(100):
            replicate.take_core(number)
            with open(f"/proc/self/task/{threading.get_native_id()}/stat") as stat:
                core = int(stat.read().rpartition(")")[2].split()[36])
            there.append(core == CORES[number % len(CORES)])
            kept.add(frozenset(os.sched_getaffinity(0)))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert kept == {frozenset(CORES)}
    if len(CORES) > 1 and len(set(map(replicate.find_node, CORES))) == 1:
        assert sum(there) > len(there) * 0.75


def test_memory_is_read_once_after_as_many_calls_in_every_arm(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(readings, "peak_kb", lambda: 100 * count)
    monkeypatch.setattr(readings, "resident_kb", lambda: (100 * count, 0))
    memory = readings.Memory()
    for count in range(10):
        memory.called(count)
        assert memory.peak_kb == (100 * readings.EARLY_CALLS if count >= readings.EARLY_CALLS else None)


@pytest.mark.parametrize(
    ("seen", "peak_kb"),
    [
        # Pages of files come and go, and do not count.
        ([(100, 100, 40), (150, 150, 90), (150, 120, 60)], 60),
        # What was given back before anybody looked does.
        ([(100, 100, 40), (500, 110, 40), (500, 110, 40)], 460),
        # Nor do those that the kernel has taken back since the peak.
        ([(100, 100, 60), (150, 100, 20), (150, 100, 20)], 90),
        # A peak of before is not counted again when pages of files have gone.
        ([(200, 200, 150), (200, 60, 10), (200, 60, 10)], 50),
        # No pages of files are known on this system, or no resident ones either.
        ([(100, 90, 0), (120, 90, 0), (120, 90, 0)], 120),
        ([(100, 0, 0), (120, 0, 0), (120, 0, 0)], 120),
    ],
)
def test_memory_is_the_peak_without_pages_of_files(
    monkeypatch: pytest.MonkeyPatch, seen: list[tuple[int, int, int]], peak_kb: int
):
    memory = readings.Memory()
    for count, (peak, resident, of_files) in zip((0, 1, readings.EARLY_CALLS), seen, strict=True):
        monkeypatch.setattr(readings, "peak_kb", lambda peak=peak: peak)
        monkeypatch.setattr(readings, "resident_kb", lambda held=(resident, of_files): held)
        memory.called(count)
    assert memory.peak_kb == peak_kb


@pytest.mark.parametrize(
    ("traced_by", "calls", "early", "later"),
    [
        # By each call, which is as many in an arm that makes more calls.
        (lambda call: 1, 20, 5, 1000),
        (lambda call: 1, 200, 5, 1000),
        (lambda call: 2, 20, 10, 2000),
        (lambda call: call == 1, 20, 1, 0),
        (lambda call: call == 1, 200, 1, 0),
        # Once more in a later call, as for the rest of a batch: that is no growth.
        (lambda call: call in (1, 6), 20, 1, 0),
        (lambda call: call in (1, 6), 200, 1, 0),
        (lambda call: 0, 20, 0, 0),
        (lambda call: call % 4 == 0, 200, 1, 250),
        # Without later calls nobody knows.
        (lambda call: 1, 5, 5, None),
        (lambda call: 1, 4, None, None),
    ],
)
def test_traces_do_not_depend_on_how_many_calls_an_arm_makes(
    traced_by: Callable[[int], int], calls: int, early: int | None, later: int | None
):
    traces = SimpleNamespace(count=0)
    tracing = readings.Tracing(traces)
    for call in range(1, calls + 1):
        traces.count += traced_by(call)
        tracing.called(call)
        if call % 4 == 0:
            tracing.read(call)
    tracing.read(calls)
    assert (tracing.early, tracing.later()) == (early, later)


@pytest.mark.parametrize(
    ("points", "grown"),
    [
        ([], (None, None)),
        ([(5, 1000)], (None, None)),
        ([(5, 1000), (5, 9000)], (None, None)),
        ([(0, 1000), (10, 2000)], (100, 10)),
        ([(0, 5000), (10, 4000)], (-100, 10)),
        # One jump at the start, as when a cache is made, is no leak.
        ([(0, 0), (10, 9_000_000), (20, 9_000_000), (30, 9_000_000), (40, 9_000_000), (50, 9_000_000)], (0, 50)),
        ([(0, 0), (10, 1000), (20, 2000), (30, 999_000), (40, 4000), (50, 5000)], (100, 50)),
    ],
)
def test_growth_is_the_median_of_the_slopes_between_any_two_readings(
    points: list[tuple[int, int]], grown: tuple[int | None, int | None]
):
    memory = readings.Memory()
    memory.readings.points = points
    assert memory.growth() == grown


def test_what_the_process_holds_is_read_from_the_kernel():
    memory = readings.Memory()
    memory.read(7)
    [(count, held)] = memory.readings.points
    assert count == 7
    assert 10 * 2**20 < held < 10 * 2**30
