"""Kills at random points of a real command: nothing is lost, counted twice, or left behind. `make soak` has 200."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.soak.kills import (
    ENDINGS,
    FIRST,
    KILLS,
    PATIENCE_S,
    check_killed_night,
    check_resumed,
    kill,
    marked,
    until,
)

OWN = Path(__file__).parent / "workloads"
VICTIMS = ("host", "worker", "replicate")
FLAGS = ("--engine", "venv", "--versions", "2.0,2.13", "--workload-folder", str(OWN), "--case", "tick", "--quiet")
# A run of these flags takes about as long on an idle machine; a later kill finds nothing to kill, which counts as well.
LONGEST_S = 4.5
# A nightly run measures the baseline twice, and judges.
LONGEST_NIGHT_S = 9.0


def victim_of(kind: str, host: int, mark: str, draw: random.Random) -> int | None:
    workers = [process for process in marked(mark) if "worker.py" in process.words]
    leaders = [process.pid for process in workers if process.parent == host]
    replicates = [process.pid for process in workers if process.parent in leaders]
    candidates = {"host": [host], "worker": leaders, "replicate": replicates}[kind]
    return draw.choice(candidates) if candidates else None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + KILLS))
def test_nothing_is_lost_doubled_or_left(tfcompare: str, stub_cache: dict[str, str], tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    kind, moment_s = draw.choice(VICTIMS), draw.uniform(0.2, LONGEST_S)
    mark = f"TF_CPP_SOAK=soak-{os.getpid()}-{seed}"
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    env = {**stub_cache, "TMPDIR": str(scratch), "TF_CPP_SOAK": mark.partition("=")[2]}
    run = tmp_path / "run"
    argv = [tfcompare, "run", *FLAGS, "--rounds", "3", "--output", str(run)]
    with subprocess.Popen(argv, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(moment_s)
        victim = victim_of(kind, process.pid, mark, draw)
        kill(victim)
        _, stderr = process.communicate(timeout=PATIENCE_S)
    print(f"seed {seed}: {kind} {victim} after {moment_s:.2f} s; exit code {process.returncode}")
    assert process.returncode in ENDINGS, stderr
    assert b"Traceback" not in stderr
    until(lambda: not marked(mark), "the last process of the killed run")
    if (run / "plan.json").exists():
        check_resumed(run, tfcompare, env)
        assert list(scratch.iterdir()) == [], "scratch folders are left"
    assert not marked(mark)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(3, KILLS // 8)))
def test_no_night_measures_beside_one_that_was_killed(
    tfcompare: str, stub_cache: dict[str, str], tmp_path: Path, seed: int
) -> None:
    scratch, history = tmp_path / "tmp", tmp_path / "history"
    scratch.mkdir()
    env = {**stub_cache, "TMPDIR": str(scratch), "TFCOMPARE_DATA": str(tmp_path / "data")}
    argv = [tfcompare, "nightly", "run", *FLAGS, "--rounds", "3", "--backfill", "0", "--history", str(history)]
    for run in check_killed_night(argv, history, env, seed, LONGEST_NIGHT_S):
        if (run / "plan.json").exists():
            check_resumed(run, tfcompare, env)
            assert list(scratch.iterdir()) == [], "scratch folders are left"
    assert list(scratch.glob("tfcompare-crash-*")) == []
