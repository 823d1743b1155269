"""Tests wait for processes of others: one runs as long as any of its threads does."""

import subprocess
import sys

from tests.support.processes import is_running, wait_for_end

# Its first thread ends at once, and is a zombie; the other one ends with its input.
PROGRAM = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
print(flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_runs_until_its_last_thread_ends():
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdout:
        process.stdout.readline()
        assert is_running(process.pid)
        process.kill()
        wait_for_end(process.pid)
