"""A run on a terminal, with real workers and a stub in place of TensorFlow: the table is drawn while it measures."""

import os
import pty
import re
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support import stub
from tests.support.stub_runs import RUN
from tests.support.terminals import read_terminal

WORKLOAD = """
import time


def build(tf, params):
    def step():
        time.sleep(0.01)
        return 1.0

    return step
"""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def watch(folder: Path, width: int, height: int, *flags: str) -> str:
    """What a terminal of this size gets from a run of six rounds, without what moves its cursor."""
    (folder / "mine").mkdir()
    (folder / "mine" / "wait.py").write_text(WORKLOAD)
    words = ["run", "2.0", "2.13", "--engine", "venv", "--workload-folder", "mine", "--output", "run", *flags]
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(folder)
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "HOME": str(folder)}
        argv = [sys.executable, "-c", RUN, *words, str(stub.write(folder / "stub"))]
        os.execve(sys.executable, argv, environment)
    return ESCAPE.sub("", read_terminal(pid, terminal, width, height)).replace("\r", "\n")


@pytest.mark.parametrize("width", [60, 120])
def test_rows_appear_with_the_first_round_and_a_line_says_what_is_measured(tmp_path: Path, width: int):
    seen = watch(tmp_path, width, 40, "--rounds", "6")
    # The table is there before it has a verdict, and the report follows with it.
    assert re.search(r"\? [\d.]+x +[1-5] of [46] rounds", seen)
    assert re.search(r"round [1-6] · 2\.\d+\.0 · wait", seen)
    assert "a round of 1 case takes" in seen
    report = seen.split("2.13.0 against 2.0.0")[-1]
    assert re.search(r"wait +[\d.]+ ms  [▲▼△▽=?▴▾] \d", report)


def test_a_low_terminal_keeps_the_line_below_the_table(tmp_path: Path):
    seen = watch(tmp_path, 100, 5, "--rounds", "4")
    assert "a round of 1 case takes" in seen
    assert "2.13.0 against 2.0.0" in seen
