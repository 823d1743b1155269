"""Start one program and report what it took: `launch.py DESCRIPTOR WORD...`.

This is a small separate process, because the peak memory of a child begins with that of the process that started it,
which would be a worker with TensorFlow in it.
"""

import json
import os
import subprocess
import sys
import time


def launch(words):
    """Run a program; return what it took, and its exit code, which is negative if a signal ended it."""
    begun = time.perf_counter()
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    except OSError as error:
        return {"error": f"{words[0]}: {error.strerror}"}
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - begun
    return {
        "wall_ns": int(wall_s * 1e9),
        "cpu_ns": int((usage.ru_utime + usage.ru_stime) * 1e9),
        "resident_kb": usage.ru_maxrss,
        "code": -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
    }


if __name__ == "__main__":
    os.write(int(sys.argv[1]), json.dumps(launch(sys.argv[2:])).encode("ascii"))
