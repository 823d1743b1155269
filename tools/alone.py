"""Make a file by commands, unless another process has just made it: two `make run` at once set up one `.venv`.

    python tools/alone.py TARGET PREREQUISITE... -- COMMAND...

The kernel's lock on the Makefile is held meanwhile, by the commands as well, and released however they end.
"""

import fcntl
import os
import subprocess
import sys
from pathlib import Path


def main(words: list[str]) -> int:
    """Run each command in a shell until one fails, then touch the target; return the exit code."""
    end = words.index("--")
    target, prerequisites, commands = Path(words[0]), words[1:end], words[end + 1 :]
    with open("Makefile", "r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another make is at work here; waiting before {target}", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists() and all(target.stat().st_mtime_ns >= os.stat(each).st_mtime_ns for each in prerequisites):
            return 0
        for command in commands:
            print(command, flush=True)
            done = subprocess.run(["sh", "-c", command], pass_fds=[lock.fileno()], check=False)
            if done.returncode:
                return done.returncode if done.returncode > 0 else 128 - done.returncode
        target.touch()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
