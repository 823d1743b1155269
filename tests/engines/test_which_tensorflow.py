"""Which TensorFlow answered: a version whose worker states another number is lost, and the run says so."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import run_command
from tests.support import stub, stub_environments
from tests.support.end_to_end import Answer, compare, parse

WORK = "def build(tf, params): return lambda: 1\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "work.py").write_text(WORK)
    return tmp_path / "own"


def exchange(packages: Path, number: str) -> None:
    shutil.rmtree(packages / "tensorflow")
    stub.write(packages, number)


def reasons(answer: Answer) -> dict[str, str]:
    return {arm["target"]: arm["reason"] or "" for arm in answer["arms"]}


def test_an_environment_with_another_tensorflow_is_lost_and_made_again_it_counts(
    tfcompare: str, own: Path, tmp_path: Path
) -> None:
    env = stub_environments.build(tmp_path / "cache", ("1.14", "2.0", "2.13"))
    [packages] = (tmp_path / "cache").glob("tfcompare/environments/2.0.0-*/lib/python*/site-packages")
    exchange(packages, "1.14.0")
    flags = ("--engine", "venv", "--workload-folder", own, "--rounds", "2")
    code, answer, stderr = compare(tfcompare, "1.14", "2.0", "2.13", *flags, "--output", tmp_path / "run", env=env)
    assert code == 7, stderr
    found = reasons(answer)
    assert "its TensorFlow states 1.14.0, and 2.0.0 is 2.0.0" in found["2.0.0"]
    assert str(packages.parents[2]) in found["2.0.0"]
    assert (found["1.14.0"], found["2.13.0"]) == ("", "")
    again = run_command(tfcompare, "report", tmp_path / "run", "--format", "json", env=env)
    assert again.returncode == 7
    assert reasons(parse(again)) == found
    assert "2.0.0" not in json.loads((tmp_path / "run" / "manifest.json").read_text())["workers"]

    exchange(packages, "2.0.0")
    code, answer, stderr = compare(tfcompare, "1.14", "2.0", *flags, "--output", tmp_path / "good", env=env)
    assert code == 0, stderr
    assert set(reasons(answer).values()) == {""}


def test_a_profile_loses_it_as_well(tfcompare: str, own: Path, tmp_path: Path) -> None:
    env = stub_environments.build(tmp_path / "cache", ("1.14", "2.0"))
    [packages] = (tmp_path / "cache").glob("tfcompare/environments/2.0.0-*/lib/python*/site-packages")
    exchange(packages, "2.0.1")
    flags = ("--engine", "venv", "--workload-folder", own, "--output", tmp_path / "profile")
    done = run_command(tfcompare, "profile", "--versions", "1.14,2.0", *flags, env=env)
    assert done.returncode == 7, done.stderr
    assert "its TensorFlow states 2.0.1, and 2.0.0 is 2.0.0" in done.stderr
