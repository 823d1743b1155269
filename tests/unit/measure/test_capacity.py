"""The number of arms that are open at once is bounded by what the machine has, and by nothing where it has enough."""

from dataclasses import replace

import pytest

from orchestrator.machine.room import Room
from orchestrator.measure.capacity import Capacity, OpenAtOnce, find_capacity, open_at_once, read_capacity
from orchestrator.model import ArmKey
from tests.support.builders import NEW, OLD, case, case_pair, plan, target

CASES = tuple(case("many", k=str(number)) for number in range(100))
LINKED = tuple(case_pair(CASES[0], other) for other in CASES[1:])
ASKED = plan(CASES, (OLD, NEW), pairs=LINKED)


def test_where_nothing_is_known_to_limit_them_all_arms_are_open_at_once():
    assert find_capacity(ASKED, Room(), 2) == Capacity(200, 200, "")


@pytest.mark.parametrize(
    ("room", "arms", "limit"),
    [
        (Room(memory_mb=1 << 20, tasks=1 << 20, descriptors=1 << 20), 200, ""),
        (Room(memory_mb=10_000), 41, "memory"),
        (Room(memory_mb=100), 2, "memory"),
        (Room(gpu_mb=16_000, memory_mb=10_000), 10, "GPU memory"),
        (Room(gpu_mb=2_000), 2, "GPU memory"),
        (Room(tasks=1_000), 50, "processes"),
        (Room(memory_mb=10_000, tasks=400), 20, "processes"),
        (Room(descriptors=108), 40, "descriptors"),
        (Room(descriptors=20), 4, "descriptors"),
    ],
)
def test_what_there_is_least_of_limits_them(room: Room, arms: int, limit: str):
    found = find_capacity(ASKED, room, 2)
    assert (found.arms, found.limit) == (arms, limit)


def test_descriptors_and_a_containers_processes_are_those_of_one_version():
    assert find_capacity(ASKED, Room(descriptors=108), 2).in_target == 20
    docker = replace(ASKED, engine="docker")
    assert find_capacity(docker, Room(descriptors=108), 2) == Capacity(200, 200, ""), "a container has its own"
    assert find_capacity(docker, Room(), 64).in_target == 8192 // (2 * 64 + 16)
    of_memory = find_capacity(replace(docker, memory_mb=4350), Room(), 2)
    assert (of_memory.arms, of_memory.in_target, of_memory.limit) == (40, 20, "--memory")


def test_more_threads_and_a_worker_for_each_replicate_leave_room_for_fewer():
    room = Room(memory_mb=10_000, tasks=1_000)
    assert find_capacity(replace(ASKED, threads=(20, 14)), room, 2).arms == 20
    assert find_capacity(replace(ASKED, cpus=tuple(range(17))), room, 64).arms == 20
    assert find_capacity(replace(ASKED, isolation="process"), replace(room, tasks=None), 2).arms == 16


def test_a_replicate_on_a_gpu_takes_more_of_the_machines_memory():
    assert find_capacity(replace(ASKED, device="gpu"), Room(memory_mb=10_000), 2).arms == 11


def test_workers_that_have_started_take_nothing_of_what_is_left():
    assert find_capacity(ASKED, Room(memory_mb=10_000), 2, started=True).arms == 45


def test_arms_fit_if_all_do_and_those_of_each_version():
    capacity = Capacity(arms=5, in_target=3, limit="memory")
    arms = [ArmKey(one.label, target(OLD)) for one in CASES]
    assert capacity.fits(())
    assert capacity.fits(arms[:3])
    assert not capacity.fits(arms[:4])
    others = [ArmKey(one.label, target(NEW)) for one in CASES]
    assert capacity.fits([*arms[:3], *others[:2]])
    assert not capacity.fits([*arms[:3], *others[:3]])


def test_the_bound_is_said_where_arms_are_divided_by_it():
    assert str(OpenAtOnce(6, Capacity(200, 200, ""))) == "up to 6 arms open at once"
    assert str(OpenAtOnce(200, Capacity(41, 41, "memory"))) == (
        "at most 41 of the 200 arms that are compared are open at once (limit: memory)"
    )


def test_the_arms_of_linked_cases_are_open_at_once_and_of_isolated_ones_those_of_a_case():
    capacity = Capacity(41, 41, "memory")
    assert open_at_once(ASKED, CASES, capacity).compared == 200
    assert open_at_once(ASKED, CASES[:7], capacity).compared == 14
    assert open_at_once(plan(CASES), CASES, capacity).compared == 2
    assert open_at_once(replace(ASKED, isolation="process"), CASES, capacity).compared == 2
    assert open_at_once(replace(ASKED, exclusive=True), CASES, capacity).compared == 1


def test_this_machine_has_room_for_a_comparison():
    assert read_capacity(ASKED).arms >= 2
