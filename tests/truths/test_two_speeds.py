"""Slow calls that sleep, and slow calls whose threads share a core, are never taken for each other."""

import os
from pathlib import Path

import pytest

from orchestrator.results.evaluation import gather
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.two_speeds import find_two_speeds
from tests.support.truths import Stage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two threads share a core only where there are two"),
]

# Two threads compute in each call. Some calls take 1.7 times as long, for one of two reasons.
BODY = """
    import hashlib, random, threading

    def build(tf, params):
        draw, block, cores = random.Random(os.getpid()), b"x" * (24 << 20), sorted(os.sched_getaffinity(0))
        often = draw.choice([0.1, 0.5, 0.9])

        def compute(core):
            os.sched_setaffinity(0, {{core}})
            hashlib.sha256(block).digest()

        def step():
            slow, begun = draw.random() < often, time.perf_counter()
            own = [cores[0], cores[0 if slow and {shared} else 1]]
            threads = [threading.Thread(target=compute, args=(core,)) for core in own]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if slow and not {shared}:
                time.sleep(0.7 * (time.perf_counter() - begun))
        return step
    """


def test_what_slow_calls_wait_for_is_not_mistaken(tmp_path: Path):
    workloads = {f"{name}.py": BODY.format(shared=name == "shared") for name in ("shared", "sleeping")}
    stage = Stage(tmp_path, {}, {})
    stage.measure(workloads, "--rounds", "5", differ=False)
    gathered = gather(RunFolder.open(tmp_path / "equal" / "run"))
    found = find_two_speeds(gathered.replicates, gathered.endings.loads)
    # Rounds in which other tests use the machine say nothing.
    waits = {(arm.case, speeds.wait) for arm, speeds in found.items() if speeds.wait != "unknown"}
    assert waits <= {("shared", "core"), ("sleeping", "other")}
