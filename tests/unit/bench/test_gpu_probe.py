"""Probe a stub of NVIDIA's driver: the report has every line, and a call that fails is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import gpu_probe
from bench.gpu_probe import Cuda, CudaError, report
from orchestrator.machine.gpu import find_gpus
from tests.conftest import ROOT
from tests.support import libcuda
from tests.support.nvidia import MadeUpDriver

CARD = {
    "nvmlDeviceGetUUID": f"GPU-{libcuda.UUID}",
    "nvmlDeviceGetName": "Tesla T4",
    "nvmlDeviceGetClockInfo": {0: 300, 1: 1590, 2: 5000},
    "nvmlDeviceGetCurrentClocksEventReasons": 0x004,
    "nvmlDeviceGetComputeRunningProcesses_v3": [],
}


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The stub, for this process by its path and for those that it starts by their variables."""
    folder = libcuda.build(tmp_path / "cuda")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return str(folder / "libcuda.so.1")


def test_everything_is_asked_and_written(library: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu_probe, "READINGS", 3)
    driver = MadeUpDriver(CARD)
    [gpu] = find_gpus(driver)
    lines = list(report(gpu, Cuda(library=library), driver, rest_s=0.01, ramp_s=0.05))
    assert "Tesla T4" in lines[0]
    assert sum("reading" in line and "us (median of 3)" in line for line in lines) == 4
    assert any("0 ms: 1590" in line for line in lines)
    assert any("held back busy: power cap" in line for line in lines)
    assert any("on the GPU" in line for line in lines)
    assert [line.rpartition(": ")[2] for line in lines if "the child" in line] == ["the child computes"] * 2


def test_a_child_that_cannot_compute_is_told(library: str):
    env = {**os.environ, "STUB_CTX": "3"}
    command = [sys.executable, "-m", "bench.gpu_probe", "--fork", "loaded"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "fails: cuCtxCreate_v2 returned 3"


def test_a_driver_that_does_not_start_says_which_call_failed(library: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STUB_CUINIT", "802")
    with pytest.raises(CudaError, match=r"^cuInit returned 802$"):
        Cuda(library=library)
