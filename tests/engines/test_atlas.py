"""`tfcompare atlas` with stubs of three releases: it finds a planted step, names no other, and survives a kill."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from shutil import copy

import pytest

from orchestrator.child_process import PROGRAM
from tests.conftest import run_command

WORKLOADS = Path(__file__).parent / "workloads"
# 2.0 takes half as long again, and 2.13 is like 2.0.
PACES = {"1.14": (10, 20, 1.0), "2.0": (15, 20, 1.0), "2.13": (15, 20, 1.0)}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    copy(WORKLOADS / "pace.py", folder)
    (folder / "pace.json").write_text(json.dumps(PACES))
    return folder


def words(own: Path, *more: str) -> list[str]:
    return [
        *PROGRAM, "atlas", "--releases", "1.14,2.0,2.13", "--workload-folder", str(own), "--engine", "venv",
        "--output", str(own.parent / "atlas"), "--explain", "0", *more,
    ]  # fmt: skip


@pytest.mark.slow
def test_an_atlas_of_three_releases_finds_the_step_that_was_planted(stub_cache: dict[str, str], own: Path):
    done = run_command(*words(own), env=stub_cache, cwd=own.parent)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    assert [line for line in lines if re.match(r"2\.0: (.*; )?slower: pace 1\.[45]", line)], done.stdout
    # Its Python is another, so its memory may differ.
    assert not [line for line in lines if line.startswith("2.13: ") and "er: pace" in line]
    site = own.parent / "atlas" / "site"
    figures = json.loads((site / "figures.json").read_text())
    steps = {(step["older"], step["newer"]): step for step in figures["steps"] if step["metric"] == "time"}
    assert steps["1.14.0", "2.0.0"]["verdict"] == "slower"
    assert 1.4 < steps["1.14.0", "2.0.0"]["ratio"] < 1.6
    assert steps["2.0.0", "2.13.0"]["verdict"] == "same"
    levels = {level["newer"]: level["ratio"] for level in figures["levels"] if level["metric"] == "time"}
    assert levels["1.14.0"] == pytest.approx(2 / 3, rel=0.06)
    assert levels["2.0.0"] == pytest.approx(1.0, rel=0.06)
    assert (site / "index.html").is_file()
    # Everything is decided, so a second call measures nothing, and makes the same figures.
    again = run_command(*PROGRAM, "atlas", "--resume", "atlas", env=stub_cache, cwd=own.parent)
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout


@pytest.mark.slow
def test_a_killed_atlas_continues_and_keeps_what_it_measured(stub_cache: dict[str, str], own: Path):
    process = subprocess.Popen(
        words(own), env={**os.environ, **stub_cache}, cwd=own.parent,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    first = own.parent / "atlas" / "units" / "01" / "plan.json"
    end = time.monotonic() + 120
    while not first.exists() and time.monotonic() < end:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    state = json.loads((own.parent / "atlas" / "atlas.json").read_text())
    assert state["runs"]["00"]["is_done"]
    before = (own.parent / "atlas" / "units" / "00" / "journal.jsonl").read_bytes()
    done = run_command(*PROGRAM, "atlas", "--resume", "atlas", env=stub_cache, cwd=own.parent)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if re.match(r"2\.0: (.*; )?slower: pace 1\.[45]", line)], (
        done.stdout
    )
    assert (own.parent / "atlas" / "units" / "00" / "journal.jsonl").read_bytes() == before
