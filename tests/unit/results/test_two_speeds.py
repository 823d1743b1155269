"""Calls that take one of two times at the same CPU time are reported; noise, other processes and more work are not."""

import math
import random

import pytest

from orchestrator.model import Load, Replicate
from orchestrator.results.two_speeds import TwoSpeeds, check_two_speeds, find_two_speeds
from tests.support.builders import replicate

CPU_MS = 160.0


def of_times(*times_ms: float, work: float = 1.0, number: int = 1, round: int = 1, scatter: float = 0.01) -> Replicate:
    """A replicate of one call per burst; `work` is the CPU time of those that take long, next to that of the others."""
    draw = random.Random(number)
    wall = [math.log(each * 1e6) + draw.gauss(0, scatter) for each in times_ms]
    cpu = [math.log(CPU_MS * 1e6 * (work if each > min(times_ms) else 1)) for each in times_ms]
    return replicate(number=number, round=round, bursts=wall, cpu_bursts=cpu)


def find(*replicates: Replicate, loads: tuple[Load, ...] = ()) -> TwoSpeeds | None:
    return next(iter(find_two_speeds(replicates, loads).values()), None)


def load(round: int, foreign: float) -> Load:
    return Load(cases=("power",), round=round, foreign=foreign, steal=0.0, cpus=2, idle=0.2, waiting=None)


def test_calls_of_two_times_are_told_apart_over_all_rounds():
    found = find(of_times(106, 166, 106, 106, 166), of_times(106, 106, 106, 166, 166, number=2, round=2))
    assert found
    assert (found.slow, found.bursts) == (4, 10)
    assert (found.short_ms, found.long_ms) == pytest.approx((106, 166), rel=0.02)
    (line,) = check_two_speeds(find_two_speeds([of_times(*[106, 166] * 5)], ()))
    assert "take either about 106 or 166 ms at the same CPU time (5 of 10 bursts are slow)" in line
    assert check_two_speeds({}) == []


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(of_times(*[106.0] * 12), id="one time"),
        pytest.param(of_times(*[106.0, 166.0] * 6, work=1.6), id="the longer ones compute more"),
        pytest.param(of_times(*[106.0, 112.0] * 6), id="nearly equal times"),
        pytest.param(of_times(*[106.0, 166.0] * 6, scatter=0.2), id="noise as wide as the gap"),
        pytest.param(of_times(*[106.0] * 19, 300.0), id="a single outlier"),
        pytest.param(of_times(106, 166, 106, 166), id="too few"),
        pytest.param(replicate(bursts=(), cpu_bursts=()), id="none, in a stream of a stranger"),
    ],
)
def test_nothing_is_said_of_other_calls(given: Replicate):
    assert find(given) is None


def test_replicates_that_differ_as_a_whole_have_one_speed_each():
    levels = [106.0, 166.0, 106.0, 106.0, 166.0, 166.0]
    whole = [of_times(*[level] * 4, number=number, round=number) for number, level in enumerate(levels, 1)]
    mixed = [
        of_times(level, 106.0, 106.0, 106.0, number=number, round=number) for number, level in enumerate(levels, 1)
    ]
    assert find(*whole) is None
    assert find(*mixed)


def test_noise_of_one_kind_has_one_speed():
    draw = random.Random(5)
    runs = [of_times(*[100.0] * 48, number=number, scatter=draw.choice([0.01, 0.05, 0.2])) for number in range(200)]
    assert sum(find(each) is not None for each in runs) <= 4


def test_what_other_processes_slow_down_is_no_evidence():
    both = [of_times(*[106.0] * 6, 166.0, 166.0, round=number, number=number) for number in (1, 2)]
    assert find(*both, loads=(load(1, 0.0), load(2, 0.1)))
    assert find(*both, loads=(load(1, 1.0), load(2, 1.0))) is None
