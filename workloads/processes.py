"""The processes of a worker: one that watches over it, and the end of everything that workloads have started.

`guard` forks. The parent imports nothing else, and stays to end what the worker leaves behind, however the worker ends.
Parent, worker and each replicate adopt orphans below them, also those that have left their session, so a process that
a workload has started stays below the process that has to end it.
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
# How long a killed process may take to be gone, and a stopped one to stop; the kernel may still be writing for it.
KILLED_S, STOPPED_S, POLL_S = 5.0, 2.0, 0.001
# The states of a process that starts no other: stopped, traced, a zombie, dead.
QUIET = "TtZXx"
# How long replicates may take to die with their worker.
DYING_S = 0.2
# What the kernel did not let go in that time is not waited for again.
STUCK = set()
# How long a worker may take to leave in order after its host has ended.
LEAVE_S = 30.0
# As many descriptors as thousands of open replicates need; the hard limit may be a thousand million.
MOST_DESCRIPTORS = 65536
# The host looks for this line at the end of a worker's log.
LEFT = "tfcompare: workloads left processes running, which were ended: {}\n"


def _prctl(option, value):
    with contextlib.suppress(Exception):
        import ctypes
        ctypes.CDLL(None).prctl(option, *map(ctypes.c_ulong, (value, 0, 0, 0)))


def adopt_orphans():
    """Lets orphans below this process become its children, as far as the kernel allows."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent):
    """Ends this process, a child of `parent`, when its parent ends."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def set_dumpable(dumpable):
    """Says whether other processes of this user may look into this one, e.g. open its pipes below /proc/PID/fd."""
    _prctl(PR_SET_DUMPABLE, int(dumpable))


def children(pid="self"):
    """The processes whose parent is this one, or another; none where the kernel does not list them."""
    pids = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as listed:
                pids.update(map(int, listed.read().split()))
    return pids


def below(pids):
    """These processes and all that they have started."""
    found, waiting = set(), list(pids)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(children(pid))
    return found


def state(pid):
    """The letter that the kernel has for the state of a process; that of a dead one if it is gone."""
    try:
        # In bytes: a name is whatever its process likes.
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0].decode("ascii")
    except (OSError, IndexError):
        return "X"


def has_ended(pid):
    """The status of a child that has ended, which is then forgotten by the kernel, or None."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return status if ended else None


def kill(pid, number=signal.SIGKILL):
    # One that has taken another user is out of reach.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def stop(pids):
    """Stops these processes, which have not ended, and all below them; returns those that are to be killed.

    One that is stopped starts no other, and keeps its place where their number is limited.
    """
    seen, until = set(), 0.0
    while True:
        found = {pid: state(pid) for pid in below(pids)}
        running = [pid for pid, letter in found.items() if letter not in QUIET]
        if not seen.issuperset(running):
            seen.update(running)
            until = time.monotonic() + STOPPED_S
        if not running or time.monotonic() >= until:
            # The kernel calls a process a zombie whose other threads still run.
            return {pid for pid, letter in found.items() if letter not in "ZXx" or pid in pids}
        for pid in running:
            kill(pid, signal.SIGSTOP)
        time.sleep(POLL_S)


def end_children(kept=frozenset(), dying_s=0.0):
    """Ends all children but those kept, what is below them, and what becomes a child of this process by that.

    All are stopped before the first is killed: of processes that start others without end, each that is killed alone
    would be replaced at once. Returns how many of them still ran after `dying_s`.
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
    """A descriptor that can be read once one of these signals has come.

    Pythons before 3.9 cannot wait for a process and a pipe at once, and old kernels have no descriptors of processes.
    """

    def __init__(self, *numbers):
        self.fd, self._writing = os.pipe()
        for end in (self.fd, self._writing):
            os.set_blocking(end, False)
        self._before = {number: signal.signal(number, lambda number, frame: None) for number in numbers}
        for number in numbers:
            # A system call of TensorFlow's is not interrupted.
            signal.siginterrupt(number, False)
        signal.set_wakeup_fd(self._writing)

    def drain(self):
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass

    def close(self):
        """Undoes it, in a fork as well: a signal there is of no interest here."""
        signal.set_wakeup_fd(-1)
        for number, before in self._before.items():
            signal.signal(number, before)
        for end in (self.fd, self._writing):
            os.close(end)


def wait(reading, hanging, seconds):
    """Waits until one of `reading` can be read, or until `hanging`, an end of a pipe or None, has no writer.

    Returns those for which it is so.
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
    """Raises the limit of open descriptors as far as is allowed; returns the limit before."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = MOST_DESCRIPTORS if before[1] == resource.RLIM_INFINITY else min(before[1], MOST_DESCRIPTORS)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], hard), before[1]))
    return before


def guard():
    """Forks, and returns in the worker with the count of processes that were ended; the parent never returns."""
    adopt_orphans()
    # What the host sets for this process once it has been started, such as its CPUs, counts for the worker as well: it
    # is forked when the host speaks.
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
    # A replicate has the same user, and the pipe from the host is not for it.
    set_dumpable(False)
    os.close(1)
    status = _watch(worker, wakeup, terminated)
    left.add(end_children(dying_s=DYING_S))
    if left.value:
        with contextlib.suppress(OSError):
            os.write(2, LEFT.format(left.value).encode("ascii"))
    os._exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


def _watch(worker, wakeup, terminated):
    """Waits for the worker's end and returns its status; ends it if the host asks for that, or has ended itself."""
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
                leaves_until = time.monotonic() + LEAVE_S
        else:
            select.select([wakeup.fd], [], [], max(0.0, leaves_until - time.monotonic()) + POLL_S)
        wakeup.drain()
