"""The processes of a worker: one that watches over it, and the end of everything that workloads have started.

`guard` forks. The parent imports nothing else, and stays to end what the worker leaves behind, however the worker ends.
Parent, worker and each replicate adopt orphans below them, also those that have left their session, so that a
process of a workload always stays below the process that has to end it.
"""

import contextlib
import mmap
import os
import resource
import select
import signal
import struct
import time

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
# A killed process may take this long to be gone, and a stopped one to stop; the kernel may still be writing for it.
KILLED_S, STOPPED_S, POLL_S = 5.0, 2.0, 0.001
# A process in one of these states starts no other: stopped, traced, a zombie, dead.
QUIET = "TtZXx"
# Replicates may take this long to die with their worker.
DYING_S = 0.2
# Processes that the kernel did not end in time are not waited for again.
STUCK = set()
# A worker may take this long to end in order after its host has ended.
EXIT_S = 30.0
# Thousands of open replicates need this many descriptors; the hard limit may be a billion.
MOST_DESCRIPTORS = 65536
# The host looks for this line at the end of a worker's log.
LEFT = "tfcompare: workloads left processes running, which were ended: {}\n"


def _prctl(option, value):
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(option, *map(ctypes.c_ulong, (value, 0, 0, 0)))


def adopt_orphans():
    """Make orphans below this process its children, as far as the kernel allows."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent):
    """Make this process, a child of `parent`, end with its parent."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def set_dumpable(dumpable):
    """Set whether other processes of this user may look into this one, e.g. open its pipes below /proc/PID/fd."""
    _prctl(PR_SET_DUMPABLE, int(dumpable))


def children(pid="self"):
    """Return the children of this process, or of another; none if the kernel does not list them."""
    pids = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as listed:
                pids.update(map(int, listed.read().split()))
    return pids


def below(pids):
    """Return these processes and all that they have started."""
    found, waiting = set(), list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(children(pid))
    return found


def state(pid):
    """Return the kernel's letter for the state of a process; that of a dead one if it is gone."""
    try:
        # The file is read as bytes, because a process may have any name.
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0].decode("ascii")
    except (OSError, IndexError):
        return "X"


def has_ended(pid):
    """Return the status of a child that has ended, which the kernel then forgets, or None."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return status if ended else None


def kill(pid, number=signal.SIGKILL):
    # A process that has changed its user is out of reach.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def stop(pids):
    """Stop these processes, which have not ended, and all below them; return those that are to be killed.

    A stopped process starts no other, and still counts where the number of processes is limited.
    """
    seen, until = set(), 0.0
    while True:
        found = {pid: state(pid) for pid in below(pids)}
        running = [pid for pid, letter in found.items() if letter not in QUIET]
        if not seen.issuperset(running):
            seen.update(running)
            until = time.monotonic() + STOPPED_S
        if not running or time.monotonic() >= until:
            # The kernel also reports a process as a zombie while its other threads still run.
            return {pid for pid, letter in found.items() if letter not in "ZXx" or pid in pids}
        for pid in running:
            kill(pid, signal.SIGSTOP)
        time.sleep(POLL_S)


def end_children(kept=frozenset(), dying_s=0.0):
    """End all children but those kept, all processes below them, and those that become children of this one by that.

    All are stopped before the first is killed, because a process that is killed alone could be replaced at once by
    others that keep starting processes. Return how many of them still ran after `dying_s`.
    """
    killed = set()
    kills_at = time.monotonic() + dying_s
    until = kills_at + KILLED_S
    strays = children() - kept - STUCK
    while strays and time.monotonic() < until:
        if time.monotonic() >= kills_at:
            running = stop([pid for pid in strays if has_ended(pid) is None])
            for pid in running:
                kill(pid)
            if running - killed:
                killed |= running
                until = time.monotonic() + KILLED_S
        else:
            for pid in strays:
                has_ended(pid)
        time.sleep(POLL_S)
        strays = children() - kept - STUCK
    STUCK.update(strays)
    return len(killed)


class Wakeup:
    """A descriptor that can be read once one of these signals has arrived.

    Pythons before 3.9 cannot wait for a process and a pipe at once, and old kernels have no descriptors of processes.
    """

    def __init__(self, *numbers):
        self.fd, self._writing = os.pipe()
        for end in (self.fd, self._writing):
            os.set_blocking(end, False)
        self._before = {number: signal.signal(number, lambda number, frame: None) for number in numbers}
        for number in numbers:
            # The signals must not interrupt system calls of TensorFlow.
            signal.siginterrupt(number, False)
        signal.set_wakeup_fd(self._writing)

    def drain(self):
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass

    def close(self):
        """Undo everything; a fork does this as well, because its signals are of no interest here."""
        signal.set_wakeup_fd(-1)
        for number, before in self._before.items():
            signal.signal(number, before)
        for end in (self.fd, self._writing):
            os.close(end)


def wait(reading, hanging, seconds):
    """Wait until one of `reading` can be read, or until `hanging`, an end of a pipe or None, has no writer.

    Return those for which this is true.
    """
    poll = select.poll()
    for fd in reading:
        poll.register(fd, select.POLLIN)
    if hanging is not None:
        poll.register(hanging, 0)
    return {fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)}


class Count:
    """A number that forks share."""

    def __init__(self):
        self._memory = mmap.mmap(-1, 8)

    def add(self, number):
        self._memory[:] = struct.pack("q", self.value + number)

    @property
    def value(self):
        return struct.unpack("q", self._memory[:])[0]


def raise_descriptors():
    """Raise the limit of open descriptors as far as allowed, and return the limit before."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = MOST_DESCRIPTORS if before[1] == resource.RLIM_INFINITY else min(before[1], MOST_DESCRIPTORS)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], hard), before[1]))
    return before


def guard():
    """Fork, and return in the worker with the count of processes that were ended; the parent never returns."""
    adopt_orphans()
    # The worker is forked only when the host speaks, so that it inherits what the host sets for this process before,
    # such as its CPUs.
    select.select([0], [], [])
    left, parent = Count(), os.getpid()
    wakeup = Wakeup(signal.SIGCHLD, signal.SIGTERM)
    terminated = []
    signal.signal(signal.SIGTERM, lambda number, frame: terminated.append(number))
    worker = os.fork()
    if worker == 0:
        wakeup.close()
        die_with(parent)
        adopt_orphans()
        return left
    # A replicate has the same user, but must not reach the pipe from the host.
    set_dumpable(False)
    os.close(1)
    status = _watch(worker, wakeup, terminated)
    left.add(end_children(dying_s=DYING_S))
    if left.value:
        with contextlib.suppress(OSError):
            os.write(2, LEFT.format(left.value).encode("ascii"))
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _watch(worker, wakeup, terminated):
    """Wait for the worker's end and return its status; end it if the host asks for that, or has ended itself."""
    leaves_until = float("inf")
    while True:
        status = has_ended(worker)
        if status is not None:
            return status
        if terminated or time.monotonic() >= leaves_until:
            kill(worker)
            return os.waitpid(worker, 0)[1]
        if leaves_until == float("inf"):
            if 0 in wait([wakeup.fd], 0, 3600.0):
                leaves_until = time.monotonic() + EXIT_S
        else:
            select.select([wakeup.fd], [], [], max(0.0, leaves_until - time.monotonic()) + POLL_S)
        wakeup.drain()
