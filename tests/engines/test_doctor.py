"""What the doctor says of this very machine, by its exit code too."""

import json
import os
import subprocess
from pathlib import Path

import pytest

WITHOUT_DOCKER = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}


def doctor(tfcompare: str, *flags: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tfcompare, "doctor", "--no-probe", "--format", "json", *flags],
        env={**os.environ, **env}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_without_docker_what_can_run_is_told_by_the_pythons_that_are_here(tfcompare: str):
    done = doctor(tfcompare, "--versions", "2.13", **WITHOUT_DOCKER)
    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert found["setup"]["engine"] is None
    assert [way["engine"] for way in found["setup"]["versions"][0]["ways"]] == ["venv"]
    assert found["setup"]["versions"][0]["can_run"]


def test_a_version_without_engine_and_python_ends_with_5_and_is_named(tfcompare: str, tmp_path: Path):
    # An environment that is ready brings its Python with it.
    names = ("PATH", "PYENV_ROOT", "XDG_DATA_HOME", "TFCOMPARE_CACHE")
    nothing = dict.fromkeys(names, str(tmp_path))
    done = doctor(tfcompare, "--versions", "1.14,2.0.4", "--no-python-downloads", **WITHOUT_DOCKER, **nothing)
    assert done.returncode == 5
    assert "cannot run here: 1.14.0, 2.0.4" in done.stderr
    problems = {one["subject"]: one for one in json.loads(done.stdout)["findings"] if one["level"] == "problem"}
    assert "it needs Python 3.7 or 3.6" in problems["1.14.0"]["seen"]


def test_a_gpu_that_nothing_shows_ends_with_5(tfcompare: str):
    done = doctor(tfcompare, "--versions", "2.13", "--gpu", **WITHOUT_DOCKER)
    assert done.returncode == 5
    levels = {one["subject"]: one["level"] for one in json.loads(done.stdout)["findings"]}
    assert (levels["engine"], levels["GPU"]) == ("note", "problem")


def test_on_docker_a_base_that_is_nowhere_to_be_had_is_told_before_a_build(tfcompare: str, docker_base: str):
    gone = "127.0.0.1:9/gone:{python}"
    done = doctor(tfcompare, "--versions", "2.13", "--base", gone)
    [docker, _] = json.loads(done.stdout)["setup"]["versions"][0]["ways"]
    assert not docker["possible"]
    assert docker["outlook"].startswith("its base 127.0.0.1:9/gone:3.11 is neither here nor available")


@pytest.mark.parametrize("flags", [["--versions", "banana"], ["--versions", "2.9", "--duration", "0s"]])
def test_a_bad_call_is_wrong_usage(tfcompare: str, flags: list[str]):
    assert doctor(tfcompare, *flags).returncode == 2
