"""Channels that carry lines to and from a worker."""

import os
import queue
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from orchestrator import contract, files
from orchestrator.child_process import has_ended, kill_group
from orchestrator.engines import WORKER_TASKS
from orchestrator.engines.scratch import Scratch
from orchestrator.engines.worker.cgroup import Cgroup
from orchestrator.engines.worker.limits import WorkerFiles
from orchestrator.engines.worker.marked import end_escaped

# A worker has this long to exit cleanly, and then to end what its workloads have started.
EXIT_S, END_S = 2.0, 8.0
# A worker's files are checked this often while an answer is awaited.
LOOK_S = 1.0
# A worker gives one answer at a time, so a program that sends more than this many in advance is no worker.
LONGEST_QUEUE = 16


class ChannelClosed(Exception):
    """The worker is gone; the message says how it ended, as far as the engine knows."""


class ChannelTimeout(Exception):
    """No line arrived in time."""


class Channel(Protocol):
    def send(self, line: str, longest: int = contract.LONGEST_LINE) -> None:
        """Send a line, and accept an answer of at most `longest` bytes to it.

        Raises ChannelClosed if the worker is gone.
        """

    def receive(self, timeout_s: float) -> str:
        """Return the next line.

        Raises ChannelTimeout, ChannelClosed or, if the worker sends or writes more than it may, ContractError.
        """

    def close(self) -> None:
        """End the worker if it still runs, and free what it held; never raise, even when called twice."""


class Lines:
    """Lines that one thread cuts from chunks while another waits for them.

    The queue ends with None, or with an error if the worker sends more than it may.
    """

    def __init__(self) -> None:
        self.longest = contract.LONGEST_LINE
        self._queue: queue.Queue[str | contract.ContractError | None] = queue.Queue()
        # The parts of an unfinished line are joined only once, because a profile is a line of megabytes.
        self._rest: list[bytes] = []
        self._rest_bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Take in the next bytes; raise ContractError, here and in `take`, if they are more than allowed."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            self._queue.put(b"".join(self._rest).decode("utf-8", "replace"))
            self._rest, self._rest_bytes = [], 0
            if self._queue.qsize() > LONGEST_QUEUE:
                self._refuse(f"more than {LONGEST_QUEUE} lines that nothing asked for")
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._rest.append(part)
        self._rest_bytes += len(part)
        if self._rest_bytes > self.longest:
            self._refuse(f"a line of more than {self.longest / 2**20:.0f} MiB")

    def _refuse(self, what: str) -> None:
        self._rest = []
        error = contract.ContractError(what)
        self._queue.put(error)
        raise error

    def end(self) -> None:
        self._queue.put(None)

    def take(self, timeout_s: float, look: Callable[[], None] = lambda: None) -> str | None:
        """Return the next line, or None after the last one; call `look` regularly until it comes."""
        until = time.monotonic() + timeout_s
        while True:
            left = until - time.monotonic()
            try:
                line = self._queue.get(timeout=max(0.0, min(left, LOOK_S)))
                break
            except queue.Empty as error:
                look()
                if left <= LOOK_S:
                    raise ChannelTimeout from error
        if not isinstance(line, str):
            self._queue.put(line)
        if isinstance(line, contract.ContractError):
            raise line
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
        results: Path | None = None,
        tasks: int = WORKER_TASKS,
        xla_code: Path | None = None,
    ) -> None:
        self._files = WorkerFiles(log, results, xla_code)
        # Forked replicates end without cleaning up, and AutoGraph leaves a file for each function that it has read.
        self._scratch = Scratch()
        try:
            self._process = _start(argv, {**env, "TMPDIR": str(self._scratch.path)}, log)
        except OSError:
            self._scratch.cleanup()
            raise
        # The limits are set from outside, because a hook inside the child is unsafe with threads. That is early enough,
        # because a worker forks and imports TensorFlow only when the first line comes.
        self._cgroup = Cgroup.around(self._process.pid, tasks)
        if not (self._cgroup and self._cgroup.limits_tasks):
            _limit_tasks(self._process.pid, tasks)
        if cpus is not None:
            os.sched_setaffinity(self._process.pid, cpus)
        if memory_mb is not None:
            limit = memory_mb * 2**20
            resource.prlimit(self._process.pid, resource.RLIMIT_DATA, (limit, limit))
        # The process may have ended already, or may be limited more strictly.
        with suppress(OSError, ValueError):
            resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (contract.LARGEST_FILE, contract.LARGEST_FILE))
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
        except (OSError, ValueError, contract.ContractError):
            pass
        self._lines.end()

    def send(self, line: str, longest: int = contract.LONGEST_LINE) -> None:
        self._lines.longest = longest
        try:
            self._stdin.write(line.encode())
            self._stdin.flush()
        except (OSError, ValueError) as error:
            raise ChannelClosed(self._ending()) from error

    def receive(self, timeout_s: float) -> str:
        self._files.check_if_due()
        line = self._lines.take(timeout_s, self._files.check)
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
        if not has_ended(self._process, EXIT_S):
            # The worker's first process also ends what has left the group, so it is asked before the group is killed.
            self._process.terminate()
            has_ended(self._process, END_S)
        kill_group(self._process.pid)
        if self._cgroup:
            self._cgroup.end()
        if self._process.wait() != 0:
            # The first process did not exit cleanly, so it may not have ended what left the group.
            end_escaped(self._scratch.path)
        # The reader closes the pipe itself. A daemon that a workload left behind may hold the other end forever.
        self._reader.join(EXIT_S)
        self._scratch.cleanup()
        self._files.settle_log()


def _limit_tasks(pid: int, tasks: int, root: Path = Path("/")) -> None:
    """Limit this user's tasks, for a process and what it starts, to this many more than run on the machine now.

    The kernel counts all tasks of the user, whatever started them, and does not limit root's processes.
    """
    if os.getuid() == 0:
        return
    with suppress(OSError, ValueError):
        running = int((root / "proc/loadavg").read_text().split()[3].partition("/")[2])
        limits = resource.prlimit(pid, resource.RLIMIT_NPROC)
        most = min(running + tasks, *(limit for limit in limits if limit != resource.RLIM_INFINITY), 2**31)
        resource.prlimit(pid, resource.RLIMIT_NPROC, (most, most))


def _start(argv: list[str], env: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    with open(log, "ab", opener=files.append_opener) as stderr:
        return subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            # Only this process gets a Ctrl-C: it ends its workers itself, after saving what they hold.
            start_new_session=True,
        )


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
