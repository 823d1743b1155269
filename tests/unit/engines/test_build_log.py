"""The log of a build: a file, a watcher, a tail, and the programs that it runs."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.build_log import BuildLog
from tests.support.heard import Listener


def test_a_build_log_is_a_file_a_watcher_and_a_tail(tmp_path: Path):
    watched: list[str] = []
    log = BuildLog(tmp_path / "build.log", Listener(watch=watched.append))
    for number in range(100):
        log.line(f"line {number}\n")
    log.line("\n")
    assert len(watched) == 100
    assert (tmp_path / "build.log").read_text().splitlines() == watched
    assert log.tail(2) == "  | line 98\n  | line 99"
    assert log.end.splitlines()[-1] == "line 99"
    assert "line 3\n" not in log.end, "what lies far back explains no failure"


def test_a_program_that_is_run_leaves_its_lines_and_its_exit_code(tmp_path: Path):
    log = BuildLog(tmp_path / "build.log")
    assert log.run(["sh", "-c", "echo out; echo err >&2; exit 3"], {}) == 3
    assert log.tail() == "  | $ sh -c echo out; echo err >&2; exit 3\n  | out\n  | err"


def test_a_build_leaves_nothing_that_a_terminal_obeys_and_may_print_any_bytes(tmp_path: Path):
    watched: list[str] = []
    log = BuildLog(tmp_path / "build.log", Listener(watch=watched.append))
    assert log.run(["printf", r"\033[91mred\033[0m \033]0;owned\007 \377\n"], {"PATH": os.environ["PATH"]}) == 0
    assert watched[-1] == r"red \x1b]0;owned\x07 \xff"
    assert (tmp_path / "build.log").read_text().splitlines()[-1] == watched[-1]


def test_a_build_that_is_stopped_ends_with_what_it_started_and_runs_nothing_more(tmp_path: Path):
    def watch(line: str) -> None:
        if line == "begun":
            log.stop()

    log = BuildLog(tmp_path / "build.log", Listener(watch=watch))
    # The pipe ends with its last holder: were the inner sleep left alone, this would wait for it.
    assert log.run(["sh", "-c", "sleep 600 & echo begun; wait"], dict(os.environ)) == -signal.SIGKILL
    with pytest.raises(KeyboardInterrupt):
        log.run(["touch", str(tmp_path / "begun")], dict(os.environ))
    assert not (tmp_path / "begun").exists()


def test_a_program_that_is_just_being_started_is_stopped_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Between its fork and the moment its parent knows it, a program would outlive a tool that ends meanwhile."""
    log = BuildLog(tmp_path / "build.log")
    forked, codes = threading.Event(), []
    popen = subprocess.Popen

    def start_slowly(*arguments: Any, **options: Any) -> Any:
        process = popen(*arguments, **options)
        forked.set()
        time.sleep(0.2)
        return process

    monkeypatch.setattr(subprocess, "Popen", start_slowly)
    running = threading.Thread(target=lambda: codes.append(log.run(["sleep", "600"], dict(os.environ))))
    running.start()
    forked.wait()
    log.stop()
    running.join(10)
    assert codes == [-signal.SIGKILL]
