"""The log of a build: a file, a watcher, a tail, and the programs that it runs."""

import os
import signal
from pathlib import Path

from orchestrator.engines.build_log import BuildLog


def test_a_build_log_is_a_file_a_watcher_and_a_tail(tmp_path: Path):
    watched: list[str] = []
    log = BuildLog(tmp_path / "build.log", watched.append)
    for number in range(100):
        log.line(f"line {number}\n")
    log.line("\n")
    assert len(watched) == 100
    assert (tmp_path / "build.log").read_text().splitlines() == watched
    assert log.tail(2) == "  | line 98\n  | line 99"
    assert log.end.splitlines()[-1] == "line 99"
    assert "line 3\n" not in log.end, "what lies far back explains no failure"


def test_a_program_that_is_run_leaves_its_lines_and_its_exit_code(tmp_path: Path):
    log = BuildLog(tmp_path / "build.log", lambda line: None)
    assert log.run(["sh", "-c", "echo out; echo err >&2; exit 3"], {}) == 3
    assert log.tail() == "  | $ sh -c echo out; echo err >&2; exit 3\n  | out\n  | err"


def test_a_build_that_is_stopped_ends_with_what_it_started_and_runs_nothing_more(tmp_path: Path):
    def watch(line: str) -> None:
        if line == "begun":
            log.stop()

    log = BuildLog(tmp_path / "build.log", watch)
    # The pipe ends with its last holder: were the inner sleep left alone, this would wait for it.
    assert log.run(["sh", "-c", "sleep 600 & echo begun; wait"], dict(os.environ)) == -signal.SIGKILL
    assert log.run(["sleep", "600"], dict(os.environ)) == -signal.SIGKILL
