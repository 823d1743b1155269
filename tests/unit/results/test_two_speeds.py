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
    (line,) = check_two_speeds(find_two_speeds([of_times(*[106, 166] * 5)], ()), tuned=True)
    assert "take either about 106 or 166 ms at the same CPU time (5 of 10 bursts are slow): they wait for some" in line
    assert check_two_speeds({}, tuned=True) == []


def of_waits(waited: float, usual: float = 0.2, count: int = 6) -> list[Replicate]:
    """Replicates with few and many slow bursts; tasks wait for a core for this share of what the slow ones cost.

    They also wait during a share of each burst, whether it is slow or not.
    """
    found, draw = [], random.Random(3)
    for number in range(1, count + 1):
        slow = 1 + 2 * (number % 4)
        made = of_times(*[160.0] * slow, *[100.0] * (8 - slow), number=number, round=number)
        called_ns = sum(map(math.exp, made.bursts))
        lost_ns = slow * 60e6
        psi_us = (usual * called_ns * draw.uniform(0.9, 1.1) + waited * lost_ns) / 1e3
        found.append(made._replace(calls_ns=called_ns + 1e9, first_call_ns=1e9, psi_us=round(psi_us)))
    return found


@pytest.mark.parametrize(
    ("replicates", "wait", "words"),
    [
        pytest.param(of_waits(1.0), "core", "give each version more CPUs", id="a core"),
        pytest.param(of_waits(0.0), "other", "not for a core; an epoch of fit often waits", id="something else"),
        pytest.param(of_waits(0.5), "unknown", "they wait for something; an epoch", id="both"),
        pytest.param(of_waits(1.0, count=3), "unknown", "they wait for something; an epoch", id="too few replicates"),
        pytest.param(
            [each._replace(psi_us=None) for each in of_waits(1.0)], "unknown", "for something;", id="an older kernel"
        ),
        pytest.param(
            [of_waits(1.0)[0]._replace(number=number) for number in range(6)], "unknown", "something;", id="all alike"
        ),
    ],
)
def test_the_kernel_tells_what_slow_bursts_wait_for(replicates: list[Replicate], wait: str, words: str):
    found = find_two_speeds(replicates, ())
    assert [each.wait for each in found.values()] == [wait]
    (line,) = check_two_speeds(found, tuned=True)
    assert words in line


def test_odd_replicates_of_a_stranger_end_no_report():
    empty = replicate(number=90, bursts=(), cpu_bursts=(), psi_us=5, calls_ns=2e9, first_call_ns=1e9)
    huge = of_waits(0.0)[0]._replace(number=91, psi_us=2**62)
    (usual,) = find_two_speeds([*of_waits(1.0), empty], ()).values()
    assert usual.wait == "core"
    (odd,) = find_two_speeds([*of_waits(0.0), huge], ()).values()
    assert odd.wait == "unknown"


def test_a_run_without_tuning_does_not_advise_to_leave_it_out():
    found = find_two_speeds(of_waits(0.0), ())
    (tuned,), (untuned,) = check_two_speeds(found, tuned=True), check_two_speeds(found, tuned=False)
    assert "--untuned-datasets" in tuned
    assert untuned.endswith("they wait for something, not for a core; --judge cpu compares CPU times")


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
