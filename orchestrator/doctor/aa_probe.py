"""The A/A probe: designed like a run with two identical arms, so that every difference comes from the machine."""

import math
import os
import secrets
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from orchestrator.engines.worker.channel import ChannelClosed, ChannelTimeout, ProcessChannel
from orchestrator.errors import EnvironmentFailed
from orchestrator.machine import host
from orchestrator.machine.host import Interference, read_counters
from orchestrator.options import check_cpus
from orchestrator.plan.order import visit_order
from orchestrator.stats.paired import Estimate, estimate
from orchestrator.stats.round_times import RoundTimes

BODY = Path(__file__).with_name("aa_probe_child.py")
ARMS = ("A", "A again")
FEWEST_ROUNDS = 3
# All calls take a fifth of a second per arm, about what a replicate of the quick suite spends on its calls.
BURSTS, CALLS = 4, 10
ANSWER_S = 60.0
# With more threads, the times would also depend on how these wait for each other, which differs between versions.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# A process that keeps less than this share of a core busy is not listed.
LEAST_CORES = 0.05
MOST_NAMED = 2


@dataclass(frozen=True)
class Neighbour:
    """A process that is not ours, and how many cores it kept busy."""

    pid: int
    name: str
    cores: float


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The difference between two identical arms, and what other processes did to the machine meanwhile."""

    estimate: Estimate
    call_ms: tuple[float, float]
    seconds: float
    cpus: tuple[int, ...] | None
    meanwhile: Interference | None
    neighbours: tuple[Neighbour, ...]


def probe_rounds(seconds: float, cpus: tuple[int, ...] | None) -> Probe:
    """Measure rounds until the time is spent."""
    check_cpus(cpus, os.sched_getaffinity(0))
    pinned = frozenset(cpus) if cpus else None
    seed = secrets.randbelow(2**31)
    times: dict[str, dict[int, RoundTimes]] = {arm: {} for arm in ARMS}
    number, took = 0, 0.0
    processes, counters, own_s, begun = count_processes(), read_counters(pinned), _own_s(pinned), time.monotonic()
    while number < FEWEST_ROUNDS or time.monotonic() - begun + took <= seconds:
        number += 1
        started = time.monotonic()
        for arm, of_round in _round(visit_order(ARMS, seed, "probe", number), cpus).items():
            times[arm][number] = of_round
        took = time.monotonic() - started
    elapsed, counted, spent_s = time.monotonic() - begun, read_counters(pinned), _own_s(pinned) - own_s
    summary = estimate(*(times[arm] for arm in ARMS))
    assert summary is not None
    levels = ([of_round.level for of_round in times[arm].values()] for arm in ARMS)
    first, second = (math.exp(statistics.median(of_arm)) / 1e6 for of_arm in levels)
    return Probe(
        estimate=summary,
        call_ms=(first, second),
        seconds=elapsed,
        cpus=cpus,
        meanwhile=counters.until(counted, spent_s) if counters and counted else None,
        neighbours=find_busiest_processes(processes, count_processes(), elapsed),
    )


def _round(order: Sequence[str], cpus: tuple[int, ...] | None) -> dict[str, RoundTimes]:
    """Measure a round: each arm runs in a fresh process, and their bursts alternate back and forth."""
    bursts: dict[str, list[float]] = {arm: [] for arm in order}
    try:
        with ExitStack() as held:
            argv, environment = [sys.executable, "-P", str(BODY)], {**os.environ, **ONE_THREAD}
            processes = {
                arm: held.enter_context(closing(ProcessChannel(argv, environment, Path(os.devnull), cpus)))
                for arm in order
            }
            for process in processes.values():
                process.receive(ANSWER_S)
            for burst in range(BURSTS):
                for arm in order if burst % 2 == 0 else order[::-1]:
                    processes[arm].send(f"{CALLS}\n")
                    walls_ns = map(int, processes[arm].receive(ANSWER_S).split())
                    bursts[arm].append(math.log(statistics.fmean(walls_ns)))
    except ChannelTimeout as error:
        raise EnvironmentFailed(
            f"a process of the probe gave no answer for {ANSWER_S:.0f} s; "
            "see with `top` whether this machine is swapping or overloaded, and probe again"
        ) from error
    except (ChannelClosed, OSError) as error:
        raise EnvironmentFailed(
            f"a process of the probe died: {error}; "
            "see with `dmesg` whether this machine ran out of memory or of processes, and probe again"
        ) from error
    return {arm: RoundTimes((tuple(logs),)) for arm, logs in bursts.items()}


def _own_s(pinned: frozenset[int] | None) -> float:
    """Return the CPU time of this process and of the children that it has waited for.

    If the children are pinned to CPUs, only their time counts.
    """
    user, system, children_user, children_system, _ = os.times()
    return children_user + children_system + (0.0 if pinned else user + system)


# The keys are pid and start time, because pids are reused; the values are the name and the CPU seconds so far.
Processes = Mapping[tuple[int, int], tuple[str, float]]


def count_processes() -> Processes:
    return {(process.pid, process.started): (process.name, process.spent_s) for process in host.read_processes()}


def find_busiest_processes(before: Processes, after: Processes, seconds: float) -> tuple[Neighbour, ...]:
    """Return the busiest processes except this one; those of the probe have ended before the second reading."""
    neighbours = (
        Neighbour(pid, name, (spent - before.get((pid, started), (name, 0.0))[1]) / seconds)
        for (pid, started), (name, spent) in after.items()
        if pid != os.getpid()
    )
    busy = [neighbour for neighbour in neighbours if neighbour.cores >= LEAST_CORES]
    return tuple(sorted(busy, key=lambda neighbour: neighbour.cores, reverse=True)[:MOST_NAMED])
