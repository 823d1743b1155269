"""Channels that carry lines to and from a worker."""

import os
import queue
import resource
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Protocol

from orchestrator import files

LEAVE_S = 2.0


class ChannelClosed(Exception):
    """The worker is gone; the message says how it ended, as far as the engine knows."""


class ChannelTimeout(Exception):
    """No line arrived in time."""


class Channel(Protocol):
    def send(self, line: str) -> None:
        """Send a line; raise ChannelClosed if the worker is gone."""

    def receive(self, timeout_s: float) -> str:
        """Return the next line; raise ChannelTimeout or ChannelClosed."""

    def close(self) -> None:
        """End the worker if it still runs, and free what it held; never raise, even when called twice."""


class Lines:
    """Lines that one thread cuts from chunks while another waits for them; None in the queue is the end."""

    def __init__(self) -> None:
        self._queue: queue.Queue[str | None] = queue.Queue()
        # The parts of the line that has not ended: joined once, for a profile is a line of megabytes.
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._queue.put(b"".join([*self._rest, end]).decode("utf-8", "replace"))
            self._rest = []
        self._rest.append(rest)

    def end(self) -> None:
        self._queue.put(None)

    def take(self, timeout_s: float) -> str | None:
        try:
            line = self._queue.get(timeout=timeout_s)
        except queue.Empty as error:
            raise ChannelTimeout from error
        if line is None:
            self._queue.put(None)
        return line


class ProcessChannel:
    """A worker that is a child process in a separate process group."""

    def __init__(
        self,
        argv: list[str],
        env: dict[str, str],
        log: Path,
        cpus: tuple[int, ...] | None = None,
        memory_mb: int | None = None,
    ) -> None:
        # Forked replicates leave without their clean-up, and AutoGraph a file for each function that it has read.
        self._scratch = TemporaryDirectory(prefix="tfcompare-", ignore_cleanup_errors=True)
        try:
            self._process = _start(argv, {**env, "TMPDIR": self._scratch.name}, log)
        except OSError:
            self._scratch.cleanup()
            raise
        # From outside and at once: a hook inside the child is unsafe with threads, and TensorFlow is only imported
        # when the first line comes.
        if cpus is not None:
            os.sched_setaffinity(self._process.pid, cpus)
        if memory_mb is not None:
            limit = memory_mb * 2**20
            resource.prlimit(self._process.pid, resource.RLIMIT_DATA, (limit, limit))
        self._lines = Lines()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self._stdout: BinaryIO = self._process.stdout  # type: ignore[assignment]
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        try:
            with self._stdout as pipe:
                while chunk := pipe.read1(1 << 16):  # type: ignore[attr-defined]
                    self._lines.feed(chunk)
        except (OSError, ValueError):
            pass
        self._lines.end()

    def send(self, line: str) -> None:
        try:
            self._stdin.write(line.encode())
            self._stdin.flush()
        except (OSError, ValueError) as error:
            raise ChannelClosed(self._ending()) from error

    def receive(self, timeout_s: float) -> str:
        line = self._lines.take(timeout_s)
        if line is None:
            raise ChannelClosed(self._ending())
        return line

    def _ending(self) -> str:
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "closed its output but still runs"
        return describe_exit(code)

    def close(self) -> None:
        with suppress(OSError):
            self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=LEAVE_S)
        # The group too: a replicate may outlive its worker.
        kill_group(self._process.pid)
        self._process.wait()
        # It closes the pipe itself. A daemon that a workload left behind may hold the other end for ever.
        self._reader.join(LEAVE_S)
        self._scratch.cleanup()


def _start(argv: list[str], env: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    with open(log, "ab", opener=files.append_opener) as stderr:
        return subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            # A Ctrl-C is for the host alone: it ends its workers itself, after saving what they hold.
            start_new_session=True,
        )


def kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def describe_exit(code: int) -> str:
    """Describe an exit code in words; the shell's 128 + n and Popen's -n both mean a signal."""
    number = -code if code < 0 else code - 128
    if number > 0:
        try:
            name = signal.Signals(number).name
        except ValueError:
            return f"exit code {code}"
        hint = " (often the kernel, out of memory)" if name == "SIGKILL" else ""
        return f"killed by {name}{hint}"
    return f"exit code {code}"
