"""The steps of action.yml as a runner calls them: real runs of a stub of TensorFlow, and an API that answers here."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copy

import pytest
import yaml

from tests.conftest import ROOT
from tests.support.forges import TOKEN, FakeForge, fake_forge

WORKLOAD = Path(__file__).parent / "workloads" / "pace.py"
SETTINGS = """
targets = ["1.14", "2.0"]
workload-dir = "own"
cases = ["pace"]
engine = "venv"
fail-on = "slower"
"""
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


class Runner:
    """What GitHub's runner gives to the steps of a job."""

    def __init__(self, folder: Path, forge: FakeForge, env: dict[str, str]) -> None:
        self.folder, self.forge = folder, forge
        self.output, self.summary = folder / "output", folder / "summary"
        event = folder / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7}}))
        (folder / "temp" / "tfcompare").mkdir(parents=True)
        # As the first step would have installed it.
        (folder / "temp" / "tfcompare" / "bin").symlink_to(Path(sys.executable).parent)
        self.env = {
            **os.environ, **env, "RUNNER_TEMP": str(folder / "temp"), "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(self.output), "GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_PATH": str(event), "GITHUB_REPOSITORY": "me/models", "GITHUB_API_URL": forge.url,
            "NAME": "tfcompare",
        }  # fmt: skip

    def step(self, name: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", str(ROOT / "tools" / "action"), name],
            env={**self.env, **env}, cwd=self.folder / "work", capture_output=True, text=True, check=False,
        )  # fmt: skip

    def measure(self, arguments: str = "", **env: str) -> dict[str, str]:
        self.output.unlink(missing_ok=True)
        done = self.step("measure", ARGUMENTS=arguments, **env)
        assert done.returncode == 0, done.stderr
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())


@pytest.fixture(scope="module")
def runner(stub_cache: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    folder = tmp_path_factory.mktemp("runner")
    (folder / "work" / "own").mkdir(parents=True)
    copy(WORKLOAD, folder / "work" / "own")
    paces = {"1.14": (10, 20, 1.0), "2.0": (15, 20, 1.0)}
    (folder / "work" / "own" / "pace.json").write_text(json.dumps(paces))
    (folder / "work" / "tfcompare.toml").write_text(SETTINGS)
    with fake_forge() as forge:
        yield Runner(folder, forge, stub_cache)


@pytest.fixture(scope="module")
def measured(runner: Runner) -> dict[str, str]:
    assert runner.step("install").returncode == 0
    return runner.measure("--rounds 4")


def test_a_case_that_became_slower_fails_the_job_with_a_page_and_a_summary(
    runner: Runner, measured: dict[str, str]
) -> None:
    assert measured["exit-code"] == "1"
    assert "<html" in Path(measured["page"]).read_text()[:200]
    assert Path(measured["run"]) == runner.folder / "temp" / "runs" / "tfcompare"
    assert "slower" in runner.summary.read_text()
    done = runner.step("verdict", CODE="1")
    assert done.returncode == 1
    assert done.stdout.startswith("::error title=tfcompare::what fail-on names was found")


def test_the_comment_is_written_once_and_replaced_by_the_next_run(runner: Runner, measured: dict[str, str]) -> None:
    for link in ("https://ci.example/1", "https://ci.example/2"):
        done = runner.step("comment", RUN=measured["run"], GITHUB_TOKEN=TOKEN, LINK=link)
        assert (done.returncode, done.stdout) == (0, ""), done
    [body] = runner.forge.bodies
    assert "<https://ci.example/2>" in body
    assert "`pace`" in body
    assert TOKEN not in body


def test_a_comment_that_is_refused_fails_nothing(runner: Runner, measured: dict[str, str]) -> None:
    done = runner.step("comment", RUN=measured["run"], GITHUB_TOKEN="of a fork", LINK="")
    assert done.returncode == 0
    assert "::warning title=tfcompare::there is no comment" in done.stdout
    assert "401 Bad credentials" in done.stderr


def test_wrong_arguments_fail_the_job_and_leave_no_page(runner: Runner) -> None:
    found = runner.measure("--no-such-flag", NAME="wrong")
    assert (found["exit-code"], found["page"]) == ("2", "")
    done = runner.step("verdict", CODE="2")
    assert done.returncode == 2
    assert "exit code 2" in done.stdout


def test_arguments_are_words_and_no_commands(runner: Runner) -> None:
    mark = runner.folder / "mark"
    hostile = f"--case 'a b' '$(touch {mark})' `touch {mark}` ; touch {mark}"
    done = runner.step("measure", ARGUMENTS=hostile, NAME="../x y")
    assert not mark.exists()
    assert "run=" + str(runner.folder / "temp" / "runs" / "..-x-y") in runner.output.read_text(), done


def test_an_old_python_is_told(runner: Runner, tmp_path: Path) -> None:
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python3.14"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    done = runner.step("install", RUNNER_TEMP=str(tmp_path), PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "::error title=tfcompare::tfcompare needs Python 3.11 or newer" in done.stdout


def test_every_step_of_the_action_is_one_of_the_script_and_takes_only_variables() -> None:
    runs = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert [run.split()[-1] for run in runs] == ["install", "measure", "comment", "verdict"]
    assert not any("${{" in run for run in runs)
    script = (ROOT / "tools" / "action").read_text()
    for step in ACTION["runs"]["steps"]:
        for name in step.get("env", {}):
            assert re.search(rf"\b{name}\b", script) or name == "GITHUB_TOKEN"
