"""A search over the commits of a package, built, installed and measured for real."""

import json
from pathlib import Path

import pytest

from tests.conftest import run_command
from tests.support import repository

PROJECT = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "steplib"\nversion = "1.0"\n[tool.setuptools]\npy-modules = ["steplib"]\n',
}
STEP = "import steplib\n\n\ndef build(tf, params):\n    return steplib.step\n"
CODE = "import time\n\n\ndef step():\n    time.sleep({})\n# {}\n"
BROKEN = "[build-system\n"
SPY = """
import os, socket
from setuptools import setup

seen = [os.environ.get("SECRET"), os.path.exists("{}")]
try:
    socket.create_connection(("1.1.1.1", 53), 2)
    seen.append("network")
except OSError:
    pass
if any(seen):
    raise SystemExit("saw %r" % seen)
setup(name="steplib", version="1.0", py_modules=["steplib"])
"""


def make(folder: Path, seconds: list[float]) -> Path:
    """A package of which each commit sleeps for some time; its number never changes."""
    repository.begin(folder)
    for number, each in enumerate(seconds):
        repository.commit(folder, {**PROJECT, "steplib.py": CODE.format(each, number)}, f"c{number}")
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "step.py").write_text(STEP)
    return tmp_path / "own"


def search(tfcompare: str, own: Path, checkout: Path, engine: str, env: dict[str, str], last: int):
    return run_command(
        tfcompare, "bisect", "--over", "steplib@git", "--source", checkout, "--good", "2.13 steplib@c0", "--bad",
        f"2.13 steplib@c{last}", "--workload-folder", own, "--case", "step", "--engine", engine, "--rounds", "4",
        "--format", "json", "--output", own.parent / "hunt", env=env,
    )  # fmt: skip


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("venv", marks=pytest.mark.tensorflow),
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.long]),
    ],
)
def test_the_commit_that_made_a_case_slower_is_found(
    tfcompare: str, own: Path, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    env = {"TFCOMPARE_BASE": request.getfixturevalue("docker_base")} if engine == "docker" else {}
    checkout = make(tmp_path / "checkout", [0.01, 0.01, 0.01, 0.03])
    # It cannot be built, and is left out.
    (checkout / "pyproject.toml").write_text(BROKEN)
    repository.commit(checkout, {"steplib.py": CODE.format(0.01, "broken")}, "broken")
    repository.commit(checkout, {**PROJECT, "steplib.py": CODE.format(0.03, "last")}, "c5")
    done = search(tfcompare, own, checkout, engine, env, 5)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    guilty = repository.git(checkout, "rev-parse", "--short=12", "c3")
    assert [part["later"] for part in answer["changes"]] == [f"steplib-{guilty}"], done.stdout
    assert f"git -C {checkout} show {guilty}" in done.stderr


@pytest.mark.tensorflow
def test_commits_that_change_nothing_are_not_blamed(tfcompare: str, own: Path, tmp_path: Path) -> None:
    checkout = make(tmp_path / "checkout", [0.01, 0.01, 0.01])
    done = search(tfcompare, own, checkout, "venv", {}, 2)
    assert done.returncode == 3, done.stderr
    assert "nothing to find" in done.stderr


@pytest.mark.tensorflow
def test_a_build_on_this_machine_gets_no_login_of_an_index(tfcompare: str, own: Path, tmp_path: Path) -> None:
    checkout = repository.begin(tmp_path / "checkout")
    # The spy also ends the build if it reaches the network, so it may not try here.
    spy = SPY.format("/nonexistent").replace('("1.1.1.1", 53)', '("", 0)').replace('"SECRET"', '"PIP_EXTRA_INDEX_URL"')
    repository.commit(checkout, {"setup.py": spy, "steplib.py": CODE.format(0.01, 0)}, "c0")
    repository.commit(checkout, {"steplib.py": CODE.format(0.01, 1)}, "c1")
    done = search(tfcompare, own, checkout, "venv", {"PIP_EXTRA_INDEX_URL": "file:///nonexistent"}, 1)
    assert done.returncode == 3, done.stderr


@pytest.mark.long
@pytest.mark.docker
def test_a_build_sees_neither_the_network_nor_the_machine(
    tfcompare: str, own: Path, tmp_path: Path, docker_base: str
) -> None:
    checkout = repository.begin(tmp_path / "checkout")
    repository.commit(checkout, {"setup.py": SPY.format(own), "steplib.py": CODE.format(0.01, 0)}, "c0")
    repository.commit(checkout, {"steplib.py": CODE.format(0.01, 1)}, "c1")
    env = {"TFCOMPARE_BASE": docker_base, "SECRET": "told"}
    done = search(tfcompare, own, checkout, "docker", env, 1)
    assert done.returncode == 3, done.stderr
