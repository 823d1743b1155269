"""What left its session and lost its first process is found by the scratch folder that it began with."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.worker.marked import end_escaped, find_escaped
from tests.support.processes import is_running, read_pids, wait_for_end

# Its own variables change afterwards, which the kernel does not show.
LEAVES = """
import os, sys, time
if os.fork() == 0:
    os.environ.clear()
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "a").write("%d\\n" % os.getpid())
        time.sleep(600)
    os._exit(0)
os.wait()
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[int]:
    variables = {"TMPDIR": str(tmp_path / "scratch")}
    subprocess.run([sys.executable, "-c", LEAVES, str(tmp_path / "pids")], env=variables, check=True)
    (pid,) = read_pids(tmp_path / "pids")
    yield pid
    end_escaped(tmp_path / "scratch")


def test_a_process_that_nothing_else_leads_to_is_ended(daemon: int, tmp_path: Path):
    assert find_escaped(tmp_path / "scratch") == {daemon}
    assert end_escaped(tmp_path / "scratch") == 1
    wait_for_end(daemon)
    assert end_escaped(tmp_path / "scratch") == 0


@pytest.mark.parametrize("other", ["scratch-2", "scratc", "scratch/inner"])
def test_a_process_of_another_folder_is_left_alone(daemon: int, tmp_path: Path, other: str):
    assert end_escaped(tmp_path / other) == 0
    assert is_running(daemon)
