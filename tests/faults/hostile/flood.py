"""Writes a line without end, into its own pipe to its worker or into that of its worker to the host."""

import fcntl
import os
import stat

PARAMS = {"way": ("own", "worker")}


def build(tf, params):
    folder = "/proc/self/fd" if params["way"] == "own" else f"/proc/{os.getppid()}/fd"

    def step():
        for number in seen(folder):
            try:
                pipe = os.open(os.path.join(folder, number), os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                continue
            fcntl.fcntl(pipe, fcntl.F_SETFL, os.O_WRONLY)
            while True:
                os.write(pipe, b"A" * 2**20)
        return 1.0

    return step


def seen(folder):
    """The pipes that can be written to, but for those that are read nowhere else."""
    try:
        numbers = sorted(os.listdir(folder), key=int)
    except OSError:
        return []
    return [number for number in numbers if int(number) > 2 and is_way_out(os.path.join(folder, number))]


def is_way_out(path):
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode) and stat.S_IMODE(os.lstat(path).st_mode) & stat.S_IWUSR
    except OSError:
        return False
