"""The bench's own slowdown is as large as it says, also where another process takes half of the core."""

import importlib.util
import os
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import arena
from tests.conftest import ROOT

CALLS = 80


@pytest.fixture
def shared_core() -> Iterator[None]:
    """One core for this thread and a process that computes all the time."""
    before = os.sched_getaffinity(0)
    core = min(before)
    os.sched_setaffinity(0, {core})
    with arena.keep_busy(core) as neighbour:
        yield
        neighbour.kill()
    os.sched_setaffinity(0, before)


def made(folder: Path, slowdown: float) -> Callable[[], None]:
    folder.mkdir()
    path = shutil.copy(ROOT / "bench" / "workloads" / "slowed.py", folder)
    (folder / "slowdown.txt").write_text(str(slowdown))
    spec = importlib.util.spec_from_file_location("slowed", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    step: Callable[[], None] = module.build(None, {"body": "matmul"})
    return step


@pytest.mark.parametrize("slowdown", [0.0, 0.2])
def test_a_slowed_body_takes_its_share_of_cpu_time_more(tmp_path: Path, shared_core: None, slowdown: float):
    plain, slowed = made(tmp_path / "plain", 0.0), made(tmp_path / "slowed", slowdown)
    took: dict[Callable[[], None], list[float]] = {plain: [], slowed: []}
    for number in range(2 * CALLS):
        step = (plain, slowed)[number % 2]
        begun = time.thread_time()
        step()
        took[step].append(time.thread_time() - begun)
    # A call that the kernel interrupts for long would outweigh many in the sum.
    ratio = statistics.median(late / early for early, late in zip(took[plain], took[slowed], strict=True))
    assert ratio == pytest.approx(1 + slowdown, abs=0.06)
