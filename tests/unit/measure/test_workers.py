"""What TensorFlow sees of the GPUs is held against what the engine was asked for."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from orchestrator.catalog.gpu_support import GpuSupport, Match
from orchestrator.engines import Environment, StartedWorker, WorkerPaths
from orchestrator.engines.worker.client import DriverAnswer, VisibleGpu, VisibleGpus, WorkerClient
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.machine.gpu import Gpu
from orchestrator.measure.session import Session
from orchestrator.measure.starting import SLOW_START_TIMEOUT_S, START_TIMEOUT_S, _is_same_release, misfit
from orchestrator.measure.workers import Workers
from orchestrator.model import Lost, Target
from orchestrator.results.run_folder import RunFolder
from tests.support.actors import Dressing, Stage
from tests.support.builders import NEW, OLD, environment_facts, plan, run_folder, target

A100 = Gpu(0, "GPU-4d6a", "NVIDIA A100-SXM4-80GB", "8.0", "550.54", 81_920, 400, True, False)
T4 = Gpu(1, "GPU-9f31", "Tesla T4", "7.5", "550.54", 15_360, 70, True, None)
SEES_A100, SEES_T4 = VisibleGpu("NVIDIA A100-SXM4-80GB", "8.0"), VisibleGpu("Tesla T4", "7.5")


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ((), (SEES_T4,)),
        ((), (SEES_T4, SEES_A100)),
        ((A100,), (SEES_A100,)),
        ((A100, T4), (SEES_T4, SEES_A100)),
        ((A100, A100), (SEES_A100, SEES_A100)),
        ((A100,), (VisibleGpu("A100-SXM4-80GB", ""),)),
        ((A100,), (VisibleGpu("", ""),)),
        ((replace(A100, mig=True),), (VisibleGpu("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "8.0"),)),
        ((replace(A100, name=None, capability=None),), (SEES_T4,)),
    ],
)
def test_what_was_asked_for_is_seen(asked, seen):
    assert misfit(asked, seen, "there") == ""


@pytest.mark.parametrize(
    ("asked", "seen", "words"),
    [
        ((), (), "sees no GPU inside its container"),
        ((A100,), (), "sees no GPU inside its container, where GPU 0 (NVIDIA A100-SXM4-80GB) GPU-4d6a"),
        ((A100,), (SEES_T4,), "sees Tesla T4 (compute capability 7.5) inside its container, where GPU 0"),
        ((A100,), (SEES_A100, SEES_T4), "sees NVIDIA A100-SXM4-80GB (compute capability 8.0), Tesla T4"),
        ((A100, T4), (SEES_A100,), "where GPU 0 (NVIDIA A100-SXM4-80GB) GPU-4d6a (compute capability 8.0), GPU 1"),
        ((A100, T4), (SEES_A100, SEES_A100), "sees NVIDIA A100"),
        ((A100,), (VisibleGpu("NVIDIA A100-SXM4-80GB", "8.6"),), "compute capability 8.6"),
        ((A100,), (VisibleGpu("NVIDIA H100", ""),), "sees NVIDIA H100 inside"),
    ],
)
def test_what_was_not_asked_for_is_told_beside_what_was(asked, seen, words: str):
    assert words in misfit(asked, seen, "inside its container")


def workers(folder: Path, stage: Stage, fitting: GpuSupport, *versions: str, **changes) -> Workers:
    asked = plan(versions=versions, device="gpu", **changes)
    environments = {
        version: Dressing(stage, environment_facts(version=str(version), kind="docker")) for version in asked.targets
    }
    session = Session(asked, environments, run_folder(folder / "run", asked), fitting=fitting)
    return Workers(session)


def test_a_worker_that_sees_another_gpu_ends_the_run_before_it_begins(tmp_path: Path):
    stage = Stage(gpus=[{"name": "Tesla T4", "capability": "7.5"}])
    with pytest.raises(EngineUnavailable, match=r"^--gpu: TensorFlow 1\.0\.0 sees Tesla T4 .* was asked for; check"):
        workers(tmp_path, stage, GpuSupport(gpus=(A100,)), OLD).start_all()
    assert stage.doors == [("in", OLD), ("out", OLD)]


def test_a_card_that_is_lost_between_two_rounds_ends_the_run(tmp_path: Path):
    stage = Stage(gpus=[{"name": "Tesla T4", "capability": "7.5"}])
    made = workers(tmp_path, stage, GpuSupport(gpus=(T4,)), OLD, NEW)
    made.start_all()
    stage.gpus.clear()
    with pytest.raises(EngineUnavailable, match=r"sees no GPU in its environment"):
        made.renew({OLD, NEW}, 2)
    made.kill()


def test_why_there_is_no_gpu_is_said_by_the_driver(tmp_path: Path):
    stage = Stage(driver={"code": 802})
    with pytest.raises(EngineUnavailable, match=r"cuInit returned 802: .* `systemctl start nvidia-fabricmanager"):
        workers(tmp_path, stage, GpuSupport(gpus=(T4,)), OLD, NEW).start_all()


def test_a_version_that_sees_no_gpu_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A wheel can lack its libraries, and the others have theirs."""
    driver = DriverAnswer(absent=("libcudnn.so.8", "libcublas.so.11"))
    monkeypatch.setattr(
        WorkerClient,
        "gpus",
        lambda self, timeout_s: (
            VisibleGpus((), driver) if self.target == target(OLD) else VisibleGpus((SEES_T4,), DriverAnswer())
        ),
    )
    made = workers(tmp_path, Stage(), GpuSupport(gpus=(T4,)), OLD, NEW)
    assert set(made.start_all()) == {NEW}
    (lost,) = [entry for entry in RunFolder.open(tmp_path / "run").entries() if isinstance(entry, Lost)]
    assert (lost.target, lost.failure) == (OLD, "gpu")
    assert "TensorFlow does not find libcudnn.so.8, libcublas.so.11" in lost.reason
    made.stop()


def test_workers_that_see_what_was_asked_for_are_ready(tmp_path: Path):
    stage = Stage(gpus=[{"name": "Tesla T4", "capability": "7.5"}])
    made = workers(tmp_path, stage, GpuSupport(gpus=(T4,)), OLD, NEW)
    assert set(made.start_all()) == {OLD, NEW}
    made.stop()


def test_a_version_without_code_for_the_card_is_given_time_and_so_is_its_control(tmp_path: Path, monkeypatch):
    given: dict[Target, float] = {}

    def gpus(self: WorkerClient, timeout_s: float) -> VisibleGpus:
        given[self.target] = timeout_s
        return VisibleGpus((SEES_A100,), DriverAnswer())

    monkeypatch.setattr(WorkerClient, "gpus", gpus)
    fitting = GpuSupport(gpus=(A100,), matches=(Match(OLD, "", "unsupported", ""), Match(NEW, "", "fine", "")))
    made = workers(tmp_path, Stage(), fitting, OLD, f"{OLD}+control", NEW)
    made.start_all()
    made.stop()
    slow, quick = SLOW_START_TIMEOUT_S, START_TIMEOUT_S
    assert given == {OLD: slow, f"{OLD}+control": slow, NEW: quick}


@dataclass(frozen=True)
class Faltering(Dressing):
    """Workers that do not start at these turns."""

    fails: frozenset[int]
    turns: Iterator[int] = field(default_factory=lambda: count(1))

    def start(self, paths: WorkerPaths, stream: Path) -> StartedWorker:
        if next(self.turns) in self.fails:
            raise EnvironmentFailed("does not start", target=self.facts.target)
        return super().start(paths, stream)


@pytest.mark.parametrize(("fails", "lost"), [({1}, True), ({2}, False), ({2, 4}, False), ({2, 3, 5}, True)])
def test_a_replicates_own_worker_that_does_not_start_costs_that_replicate(tmp_path: Path, fails: set[int], lost: bool):
    """Three of them cost the version, and the very first one."""
    asked = plan(versions=(OLD,), isolation="process")
    facts = environment_facts(version=OLD, kind="venv")
    environments: dict[Target, Environment] = {target(OLD): Faltering(Stage(), facts, frozenset(fails))}
    made = Workers(Session(asked, environments, run_folder(tmp_path / "run", asked)))
    made.start_all()
    for turn in range(1, 6):
        client = made.acquire(target(OLD))
        assert (client is None) == (turn in fails or not made.targets())
        if client:
            made.release(target(OLD))
    assert made.targets() == ([] if lost else [OLD])


def test_no_more_workers_start_at_once_than_there_are_cpus_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    widths: list[int] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, width: int) -> None:
            widths.append(width)
            super().__init__(width)

    monkeypatch.setattr("orchestrator.measure.workers.ThreadPoolExecutor", Pool)
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3, 4})
    versions = [f"{number}.0.0" for number in range(9)]
    stage = Stage(gpus=[{"name": "Tesla T4", "capability": "7.5"}])
    made = workers(tmp_path, stage, GpuSupport(gpus=(T4,)), *versions)
    made.start_all()
    assert widths == [5]
    made.kill()


@pytest.mark.parametrize(
    ("stated", "expected", "same"),
    [
        ("2.0.0", "2.0.0", True),
        ("1.14.0", "2.0.0", False),
        ("2.0.1", "2.0.0", False),
        ("2.15.0", "2.15.0.post1", True),
        ("1.15.5", "1.15.5+nv23.3", True),
        ("2.15.1", "2.15.1+mine", True),
        ("2.22.0-dev20261120", "2.22.0.dev20261120", True),
        ("2.22.0-dev20261121", "2.22.0.dev20261120", False),
        ("2.16.0-rc0", "2.16.0", False),
        ("2.16.0-of-mine!", "2.16.0", True),
        ("no number", "2.16.0", False),
    ],
)
def test_a_number_is_compared_without_what_makers_add_to_it(stated: str, expected: str, same: bool):
    assert _is_same_release(stated, expected) is same
