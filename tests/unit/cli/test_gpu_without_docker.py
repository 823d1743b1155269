"""`--gpu` in virtual environments: real workers of a real command, whose TensorFlow and driver are stubs.

A program named nvidia-smi shows one GPU, and the stubs see as many as the variables of their target say.
"""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from orchestrator import catalog
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.engine import MARKER, environment_path
from orchestrator.results.streams import read_stream
from tests.conftest import run_command
from tests.support import libcuda, stub
from tools import gpu_check

VERSIONS = ("2.15", "2.16")
CARD = f"GPU-{libcuda.UUID}"
LINE = f"0, {CARD}, Tesla T4, 7.5, 550.54.15, 15360, 70, Enabled, [N/A]"
WORKLOAD = """
import os
import time

def build(tf, params):
    print("seen by it:", os.environ["CUDA_VISIBLE_DEVICES"], os.environ["CUDA_DEVICE_ORDER"])
    return lambda: time.sleep(0.002)
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables of a machine with one GPU, and with stub environments for GPUs."""
    cache, programs = tmp_path / "cache", tmp_path / "bin"
    monkeypatch.setenv("TFCOMPARE_CACHE", str(cache))
    for version in catalog.resolve_versions(VERSIONS):
        [flavour] = version.on("gpu")
        interpreter = interpreters.find_interpreter(flavour.python.number)
        if interpreter is None or flavour.python.number != sysconfig.get_python_version():
            pytest.skip(f"no Python {flavour.python.number} that shares its packages with the tests")
        path = environment_path(flavour, interpreter)
        subprocess.run([interpreter.path, "-I", "-m", "venv", "--without-pip", path], check=True)
        [packages] = path.glob("lib/python*/site-packages")
        stub.write(packages, version.number)
        (packages / "of_the_tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
        (path / MARKER).write_text("{}")
    programs.mkdir()
    (programs / "nvidia-smi").write_text(f"#!/bin/sh\necho '{LINE}'\n")
    (programs / "nvidia-smi").chmod(0o755)
    return {"PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.fixture
def targets(tmp_path: Path) -> list[str]:
    """Flags for both versions; their TensorFlow and driver see the GPU."""
    library = libcuda.build(tmp_path / "cuda")
    told = f"STUB_GPUS=1 STUB_CUDA_DEVICES=1 LD_LIBRARY_PATH={library}"
    return [flag for version in VERSIONS for flag in ("--target", f"{version} {told} as stub-{version}")]


def measure(tfcompare: str, tmp_path: Path, machine: dict[str, str], *flags: str) -> tuple[Path, str]:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "naps.py").write_text(WORKLOAD)
    out = tmp_path / "run"
    flags = ("--engine", "venv", *flags, "--workload-folder", str(tmp_path / "mine"), "--case", "naps", "--rounds", "2")
    done = run_command(tfcompare, "run", *flags, "--output", out, env=machine)
    assert done.returncode == 0, done.stderr
    return out, done.stderr


def build_rows(run: Path) -> list[dict[str, Any]]:
    rows = [row for stream in sorted((run / "streams").iterdir()) for row in read_stream(stream)[0].to_pylist()]
    return [row for row in rows if row["phase"] == "build"]


def test_each_replicate_has_the_card_of_the_run(
    tfcompare: str, tmp_path: Path, machine: dict[str, str], targets: list[str]
) -> None:
    run, _ = measure(tfcompare, tmp_path, machine, "--gpus", "0", *targets)
    plan = json.loads((run / "plan.json").read_text())
    assert (plan["device"], plan["engine"], plan["gpus"]) == ("gpu", "venv", [CARD])
    # A pilot and two rounds, in two targets.
    assert {row["device"] for row in build_rows(run)} == {f"Tesla T4 {CARD}"}
    assert len(build_rows(run)) >= 4
    for name in plan["targets"]:
        assert f"seen by it: {CARD} PCI_BUS_ID" in (run / "logs" / f"worker-{name}.log").read_text()
    environments = json.loads((run / "manifest.json").read_text())["environments"]
    assert {each["details"]["gpus"] for each in environments.values()} == {CARD}


def test_a_card_for_one_process_at_a_time_gets_a_worker_per_replicate(
    tfcompare: str, tmp_path: Path, machine: dict[str, str], targets: list[str]
) -> None:
    run, _ = measure(tfcompare, tmp_path, machine, "--gpu-exclusive", *targets)
    plan = json.loads((run / "plan.json").read_text())
    assert (plan["exclusive"], plan["isolation"]) == (True, "process")
    assert {row["device"] for row in build_rows(run)} == {f"Tesla T4 {CARD}"}


def test_a_version_whose_cuda_is_in_an_image_needs_docker(
    tfcompare: str, tmp_path: Path, machine: dict[str, str]
) -> None:
    flags = ("--engine", "venv", "--gpu", "--versions", "1.14,2.0", "--suite", "smoke", "--output", tmp_path / "run")
    done = run_command(tfcompare, "run", *flags, env=machine)
    assert done.returncode == 5, done.stderr
    assert "1.14.0, 2.0.0: its CUDA comes with an image" in done.stderr
    assert "--engine docker" in done.stderr


def test_a_comparison_that_takes_docker_does_not_measure_what_is_left_of_it(
    tfcompare: str, tmp_path: Path, machine: dict[str, str]
) -> None:
    """With `auto`, and no Docker that has a GPU."""
    flags = ("--gpu", "--versions", "1.14,2.15", "--suite", "smoke", "--output", tmp_path / "run")
    done = run_command(tfcompare, "run", *flags, env={**machine, "DOCKER_HOST": "unix:///nowhere/docker.sock"})
    assert done.returncode == 5, done.stderr
    assert "too few versions for a comparison could be made ready" in done.stderr
    assert "1.14.0: its CUDA comes with an image" in done.stderr


def test_a_run_continues_on_its_card(
    tfcompare: str, tmp_path: Path, machine: dict[str, str], targets: list[str]
) -> None:
    run, _ = measure(tfcompare, tmp_path, machine, "--gpu", *targets)
    before = len(build_rows(run))
    more = run_command(tfcompare, "run", "--resume", run, "--rounds", "2", env=machine)
    assert more.returncode == 0, more.stderr
    rows = build_rows(run)
    assert len(rows) >= before + 4
    assert {row["device"] for row in rows} == {f"Tesla T4 {CARD}"}


def test_the_steps_of_the_gpu_check_pass_without_docker(
    tfcompare: str, tmp_path: Path, machine: dict[str, str], targets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the one in which the driver has to tell of another process: this one tells of none."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "naps.py").write_text(WORKLOAD)
    few = ("--workload-folder", str(tmp_path / "mine"), "--case", "naps", "--rounds")
    monkeypatch.setattr(gpu_check, "STEP", (*few, "2"))
    monkeypatch.setattr(gpu_check, "USUAL", (*few, "2"))
    monkeypatch.setattr(gpu_check.Check, "version_flags", tuple(targets))
    for name, value in machine.items():
        monkeypatch.setenv(name, value)
    check = gpu_check.Check(tmp_path / "check", tfcompare, "venv")
    on_the_card = f"all replicates on Tesla T4 {CARD}"
    assert list(gpu_check.steps_on("venv")) == ["look", "twins", "stranger", "kill", "turns", "draw"]
    assert gpu_check.compare_twins(check).endswith(on_the_card)
    assert gpu_check.kill_worker(check) == on_the_card
    assert gpu_check.draw(check)
    with pytest.raises(gpu_check.StepFailed, match="a process that kept the GPU busy was not noticed"):
        gpu_check.share_gpu(check)
    plans = [json.loads(path.read_text()) for path in (tmp_path / "check" / "runs").glob("*/plan.json")]
    assert [plan["engine"] for plan in plans] == ["venv"] * 4
