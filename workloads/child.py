"""A process that a worker forks for a replicate: its orders and answers, its prints, and how it ends."""

import contextlib
import fcntl
import json
import os
import signal
import sys
import tempfile
import time

from workloads import contract, processes

LOG_TAIL_BYTES = 4000
# The end of a replicate's output is kept, up to the first size; its file is emptied once it exceeds the second.
KEPT_BYTES, MOST_PRINTED_BYTES = 2**16, 2**20
# The file is checked this often while an answer is awaited.
LOOK_S = 1.0
# Commands come from this descriptor, whose other end is the host.
HOST = 0
# A replicate may take this long to end after it has closed its pipe.
CLOSED_S = 2.0


class ChildDied(Exception):
    """A forked process ended, or was ended, without an answer."""

    def __init__(self, how, reason):
        Exception.__init__(self, reason)
        self.how = how


class Prints:
    """The output of a replicate: a file without a name, whose end is kept however much is written."""

    def __init__(self):
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the replicate
        # The replicate shares the position in the file, and must continue at the start once the file is emptied.
        fcntl.fcntl(self.file, fcntl.F_SETFL, fcntl.fcntl(self.file, fcntl.F_GETFL) | os.O_APPEND)
        self.end = b""
        self.left_out = 0

    def fileno(self):
        return self.file.fileno()

    def cut(self, most=MOST_PRINTED_BYTES):
        """Empty the file if it has more than `most` bytes, and keep its end."""
        size = os.fstat(self.fileno()).st_size
        if size > most:
            kept = os.pread(self.fileno(), KEPT_BYTES, max(0, size - KEPT_BYTES))
            os.ftruncate(self.fileno(), 0)
            whole = len(self.end) + size
            self.end = (self.end + kept)[-KEPT_BYTES:] if size < KEPT_BYTES else kept
            self.left_out += whole - len(self.end)

    def close(self):
        """Return the end of the output, after a line that says how much is missing."""
        self.cut(most=0)
        self.file.close()
        note = f"[tfcompare left out {self.left_out} bytes that were printed before this]\n"
        return note.encode("ascii") + self.end if self.left_out else self.end


class HostGone(Exception):
    """The host has ended, so that no answer is of use any more."""


class Child:
    """A forked process that answers JSON lines on a separate pipe; the end of its output is kept for the log.

    Its end is noticed by a signal as well as by the pipe, because a process of the workload may hold the pipe open.
    """

    def __init__(self, main, others, deaths):
        """Fork a process for `main`, which closes the descriptors `others`; `deaths` wakes up when a process ends."""
        self.deaths = deaths
        self.buffer = bytearray()
        self.status = None
        with contextlib.ExitStack() as made:
            down_read, self.orders = _pipe(made)
            self.answers, up_write = _pipe(made)
            self.prints = Prints()
            made.callback(self.prints.file.close)
            worker = os.getpid()
            self.pid = os.fork()
            if self.pid == 0:
                _run_child(main, down_read, up_write, self.prints, lambda: self._begin(worker, others))
            made.pop_all()
        os.close(down_read)
        os.close(up_write)

    def _begin(self, worker, others):
        """Prepare the fork before it does anything else."""
        processes.die_with(worker)
        processes.adopt_orphans()
        self.deaths.close()
        # An inherited end of another replicate's pipe would hide that replicate's death.
        for fd in others + [self.orders, self.answers]:
            os.close(fd)

    @property
    def descriptors(self):
        return [self.orders, self.answers, self.prints.fileno()]

    def ask(self, order, timeout_s, longest=contract.LONGEST_LINE):
        """Send an order, unless it is None, and return the answer, of which at most `longest` bytes are read."""
        deadline = time.monotonic() + timeout_s
        if order is not None:
            try:
                write_line(self.orders, order)
            except OSError:
                raise self._explain_end()
        # A profile is a line of megabytes, so no byte is searched twice.
        searched = 0
        while self.buffer.find(b"\n", searched) < 0:
            searched = len(self.buffer)
            if searched > longest:
                self.end()
                raise ChildDied("contract", f"its answer has more than {longest >> 20} MiB; ended")
            chunk = self._read(deadline)
            if chunk is None:
                self.end()
                raise ChildDied("timeout", f"no answer within {timeout_s:g} s; ended")
            if not chunk:
                raise self._explain_end()
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        try:
            return json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            raise ChildDied("contract", "its answer is not JSON")

    def _read(self, deadline):
        """Return what it has written: nothing if it has ended or closed its pipe, and None after the deadline."""
        while True:
            self.prints.cut()
            ended = self._has_ended()
            left = deadline - time.monotonic()
            ready = processes.wait([self.answers, self.deaths.fd], HOST, 0.0 if ended else min(left, LOOK_S))
            if self.answers in ready and left > 0:
                return os.read(self.answers, 1 << 16)
            if ended:
                return b""
            if HOST in ready:
                raise HostGone
            if left <= 0:
                return None
            self.deaths.drain()

    def _explain_end(self):
        """Return how the process ended; one that continues after it has closed its pipe is ended."""
        until = time.monotonic() + CLOSED_S
        while not self._has_ended():
            left = until - time.monotonic()
            if left <= 0:
                self.end()
                if self.status == signal.SIGKILL:
                    return ChildDied("closed", "it closed its pipe to the worker and did not end; ended")
                break
            processes.wait([self.deaths.fd], None, left)
            self.deaths.drain()
        if os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            hint = "; often the kernel, out of memory" if number == signal.SIGKILL else ""
            return ChildDied("signal", f"killed by {signal.Signals(number).name}{hint}")
        return ChildDied("exit", f"ended with exit code {os.WEXITSTATUS(self.status)}")

    def _has_ended(self):
        """Return whether it has ended; after that, its pid may belong to another process and is left alone."""
        if self.status is None:
            self.status = processes.has_ended(self.pid)
        return self.status is not None

    def end(self):
        """End the process, and wait until it is gone."""
        until = time.monotonic() + processes.KILLED_S
        while not self._has_ended() and time.monotonic() < until:
            processes.kill(self.pid)
            time.sleep(processes.POLL_S)
        if self.status is None:
            # The kernel does not end it, so it is a stray from now on.
            self.status = signal.SIGKILL

    def finish(self):
        """Write the output of the ended process to the worker's log, and return its tail."""
        os.close(self.orders)
        os.close(self.answers)
        printed = self.prints.close()
        print_to_log(printed)
        return printed[-LOG_TAIL_BYTES:].decode("utf-8", "replace")


def _pipe(made):
    """Return the ends of a pipe, which `made` closes if it is not emptied."""
    ends = os.pipe()
    for end in ends:
        made.callback(os.close, end)
    return ends


class Inline:
    """A replicate in the worker's own process, for users who distrust forks.

    Its output is in the log already, and the host watches its deadline.
    """

    pid = None
    descriptors = ()

    def __init__(self, replicate):
        self.replicate = replicate

    def end(self):
        pass

    def ask(self, order, timeout_s, longest=None):
        return self.replicate.begin() if order is None else self.replicate.obey(order)

    def finish(self):
        return ""


def _run_child(main, orders, answers, prints, begin):
    """Run the forked process from start to end; this never returns to the worker's code."""
    status = 1
    try:
        # The user's own tools may look into a workload, which may also leave a core file.
        processes.set_dumpable(True)
        begin()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(prints.fileno(), 1)
        os.dup2(prints.fileno(), 2)
        lines = os.fdopen(orders, "r")

        def receive():
            line = lines.readline()
            return json.loads(line) if line else None

        main(receive, lambda answer: write_line(answers, answer))
        status = 0
    finally:
        leave(status)


def leave(status):
    """End this process at once; TensorFlow's shutdown would take half a second, and all that counts is written."""
    for stream in (sys.stdout, sys.stderr):
        # A workload may have closed them.
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def print_to_log(data):
    """Write to the log; a full disk costs lines of the log, but does not end the worker."""
    with contextlib.suppress(OSError):
        _write_all(2, data)


def write_line(fd, message):
    _write_all(fd, contract.encode(message).encode("utf-8"))


def _write_all(fd, data):
    while data:
        data = data[os.write(fd, data) :]
