"""No run of a program finds what an earlier run of it wrote, on any engine, and the run can be continued."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import run_command

TRAIN = """
import os

assert not os.path.exists("checkpoints/model"), "found what an earlier run wrote"
assert os.listdir("empty") == []
assert open("logs/train.log").read() == open("best.h5").read() == "of the project"
for name in ("checkpoints/model", "logs/train.log", "best.h5", "empty/model"):
    with open(name, "w") as file:
        file.write("of a run")
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture(params=[pytest.param("venv"), pytest.param("docker", marks=pytest.mark.docker)])
def run(request: pytest.FixtureRequest, tfcompare: str, tmp_path: Path) -> Run:
    docker = request.param == "docker"
    env = {"TFCOMPARE_BASE": request.getfixturevalue("stub_base")} if docker else request.getfixturevalue("stub_cache")
    start = ("1.14", "2.0", "--engine", request.param, "--output", tmp_path / "run")

    def call(*words: str | Path) -> tuple[int, str]:
        more = start if "--" in words else ("--resume", tmp_path / "run")
        done = run_command(tfcompare, "run", *more, *words, env=env, cwd=tmp_path / "project")
        return done.returncode, done.stdout + done.stderr

    return call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in ("checkpoints", "logs", "empty"):
        (folder / name).mkdir(parents=True)
    (folder / "checkpoints" / ".gitkeep").touch()
    for name in ("logs/train.log", "best.h5"):
        (folder / name).write_text("of the project")
    (folder / "train.py").write_text(TRAIN)
    (folder / "run.sh").write_text("#!/bin/sh\npython train.py\n")
    (folder / "run.sh").chmod(0o755)
    return folder


def read_files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_each_run_of_a_program_begins_with_the_project(run: Run, tmp_path: Path) -> None:
    code, text = run("--rounds", "4", "--", "./run.sh")
    assert code == 0, text
    kept = read_files(tmp_path / "run" / "workloads")
    assert kept == {
        name: (tmp_path / "project" / name).read_text() for name in ("train.py", "run.sh", "logs/train.log", "best.h5")
    }
    code, text = run("--rounds", "4")
    # With much luck four rounds have decided everything, and nothing is left to continue.
    assert code in (0, 3), text
    assert read_files(tmp_path / "run" / "workloads") == kept
