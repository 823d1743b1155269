"""Bursts whose two busy threads had one core are counted; those that something else slowed, or that do more, are not."""

import math
import random

import pytest

from orchestrator.results.replicates import Replicate
from orchestrator.results.shared_cores import SharedCore, check_shared_cores, find_shared_cores
from tests.support.builders import replicate

CPU_MS = 160.0


def of_bursts(number: int, cores: list[float], work: list[float] | None = None) -> Replicate:
    draw = random.Random(number)
    cpu = [math.log(CPU_MS * each) + draw.gauss(0, 0.02) for each in work or [1.0] * len(cores)]
    wall = [each - math.log(used) for each, used in zip(cpu, cores, strict=True)]
    return replicate(number=number, bursts=wall, cpu_bursts=cpu)


def find(*replicates: Replicate) -> SharedCore | None:
    return next(iter(find_shared_cores(replicates).values()), None)


def test_bursts_of_half_the_speed_at_the_same_cpu_time_shared_a_core():
    found = find(of_bursts(1, [1.9, 1.0, 1.85, 1.9, 1.02, 1.8]), of_bursts(2, [1.9, 1.9, 1.0, 1.0, 1.9, 1.9]))
    assert found
    assert (found.shared, found.bursts) == (4, 12)
    assert found.slowdown == pytest.approx(1.87, rel=0.05)
    (line,) = check_shared_cores(find_shared_cores([of_bursts(1, [1.9, 1.0] * 6)]))
    assert "in 6 of 12 bursts, which then took 1.89 times" in line


@pytest.mark.parametrize(
    "cores",
    [
        pytest.param([1.9] * 12, id="two cores throughout"),
        pytest.param([1.0] * 12, id="one busy thread"),
        pytest.param([1.9, 0.5, 1.9, 0.6] * 3, id="something else took a part of the only core"),
        pytest.param([1.9] * 11 + [1.0], id="once, by chance"),
    ],
)
def test_nothing_is_said_of_other_bursts(cores: list[float]):
    assert check_shared_cores(find_shared_cores([of_bursts(1, cores)])) == []


def test_a_burst_that_computes_more_on_one_core_is_no_evidence():
    found = find(of_bursts(1, [1.9, 1.0, 1.9, 1.0] * 3, [1.0, 1.5, 1.0, 1.5] * 3))
    assert found is None or found.shared == 0
