"""A search through real TensorFlows: predict of a model that was never compiled became slow in 2.1."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import run_command

CASE = "predict[call=predict,state=uncompiled,model=tiny]"
# A variable of its own reaches every version of the search.
SETTING = "TF_DETERMINISTIC_OPS=1"
FLAGS = ("--good", f"2.0 {SETTING}", "--bad", f"2.2 {SETTING}", "--case", CASE, "--engine", "venv", "--rounds", "4")


def change(found: dict[str, Any]) -> dict[str, Any]:
    [one] = [one for one in found["changes"] if (one["earlier"], one["later"]) == ("2.0.0", "2.1.4")]
    return one


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_release_is_found_though_the_search_was_interrupted(tfcompare: str, tmp_path: Path) -> None:
    folder = tmp_path / "hunt"
    command = [tfcompare, "bisect", *FLAGS, "--output", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as search:
        while not steps_of(folder) and search.poll() is None:
            time.sleep(0.2)
        search.send_signal(signal.SIGINT)
        _, told = search.communicate(timeout=120)
    assert search.returncode == 130, told
    first = steps_of(folder)
    assert len(first) >= 1

    # The step that was interrupted, begun anew: it is the one that tells. What else changed may stay open.
    done = run_command(tfcompare, "bisect", "--resume", folder, "--steps", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [step["versions"] for step in found["steps"]][: len(first)] == [step["versions"] for step in first]
    assert found["measured_with"] == [SETTING]
    assert found["whole"]["verdict"] == "slower"
    assert change(found)["kind"] == "change"
    assert change(found)["finding"]["ratio"] > 3
    assert len(found["steps"]) == len(first) + 1
    assert change(found)["share"] > 0.5
    for step in found["steps"]:
        report = run_command(tfcompare, "report", folder / step["run"], "--format", "json")
        assert report.returncode == 0, report.stderr
        assert {arm["target"] for arm in json.loads(report.stdout)["arms"]} == {
            f"{version}+{SETTING}" for version in step["versions"]
        }
    assert "<svg" in (folder / "report.html").read_text()


def steps_of(folder: Path) -> list[dict[str, Any]]:
    path = folder / "bisect.json"
    return json.loads(path.read_text())["steps"] if path.exists() else []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_many_versions_are_shown_as_a_trend(tfcompare: str, tmp_path: Path) -> None:
    versions = ("1.14.0", "2.0.0", "2.1.4", "2.2.3", "2.13.0")
    flags = ("--versions", ",".join(versions), "--case", CASE, "--engine", "venv", "--rounds", "4")
    done = run_command(tfcompare, "run", *flags, "--output", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "2.1.4 (" in done.stdout
    assert "step: ratio to the version before" in " ".join(done.stdout.split())
    trend = run_command(tfcompare, "report", tmp_path / "run", "--table", "trend", "--format", "json")
    [found] = json.loads(trend.stdout)["trends"]
    assert [one["version"] for one in found["versions"]] == list(versions)
    step = next(one for one in found["steps"] if one["later"] == "2.1.4")
    assert (step["verdict"], step["rounds"]) == ("slower", 4)
