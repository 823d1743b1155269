"""The resident process inside a version's environment: imports TensorFlow once, forks a replicate per `open` or `profile`.

Run by path (`python .../workloads/worker.py`) and never through PYTHONPATH: the folder above may be the site-packages
of another Python. The protocol is in contract.py.
"""
import contextlib
import fcntl
import importlib.util
import io
import json
import os
import platform
import resource
import signal
import sys
import tempfile
import time
import traceback


def _adopt_package():
    """Makes `workloads` importable without putting its parent folder, or its own, on the path."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    if "workloads" not in sys.modules:
        init = os.path.join(here, "__init__.py")
        spec = importlib.util.spec_from_file_location("workloads", init, submodule_search_locations=[here])
        sys.modules["workloads"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["workloads"])


_adopt_package()

from workloads import processes  # noqa: E402

# Before anything that starts threads or takes memory; from here on, this is the fork.
ENDED = processes.guard() if __name__ == "__main__" else processes.Count()

from workloads import compat, contract, cuda  # noqa: E402
from workloads.profile import ProfiledReplicate  # noqa: E402
from workloads.program import ProgramReplicate  # noqa: E402
from workloads.replicate import Replicate  # noqa: E402

LOG_TAIL_BYTES = 4000
# Of what a replicate prints the end is kept; a file that has grown larger than the second is cut back to it.
KEPT_BYTES, MOST_PRINTED_BYTES = 2 ** 16, 2 ** 20
# How often the file is looked at while an answer is awaited.
LOOK_S = 1.0
# The descriptor of the commands; its other end is the host.
HOST = 0
# How long a replicate may take to end after it has closed its pipe.
CLOSED_S = 2.0
# The commands that begin a replicate; the others go to one that is open.
BEGINNINGS = {"open": Replicate, "profile": ProfiledReplicate}
# What a replicate may answer; it runs a workload, which can write anything into the pipe.
ANSWERS = {
    "open": ("opened", "refused", "died"),
    "burst": ("measured", "died"),
    "close": ("closed", "died"),
    "profile": ("profiled", "refused", "died"),
}
# A profile is one long line, and `closed` brings the rows of its replicate along.
LONGEST = {"close": contract.LONGEST_LARGE_LINE, "profile": contract.LONGEST_LARGE_LINE}


class ChildDied(Exception):
    """A forked process ended, or was ended, without an answer."""

    def __init__(self, how, reason):
        Exception.__init__(self, reason)
        self.how = how


class Unwritten(io.RawIOBase):
    """What of a stream is not in its file yet.

    A disk that is full takes a part of a batch, after which nothing in the file could be read. So the file gets whole
    batches or nothing, and what it did not get goes there before the next batch: other batches may refer to it.
    """

    def __init__(self, path):
        io.RawIOBase.__init__(self)
        self.handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self.pending = bytearray()
        self.whole = self.position = 0

    def writable(self):
        return True

    def write(self, data):
        data = memoryview(data).tobytes()
        self.pending += data
        self.position += len(data)
        return len(data)

    def tell(self):
        return self.position

    def store(self):
        """Writes what is pending to the file, or nothing of it."""
        done = 0
        try:
            while done < len(self.pending):
                done += os.write(self.handle, self.pending[done:])
        except OSError:
            os.ftruncate(self.handle, self.whole)
            os.lseek(self.handle, self.whole, os.SEEK_SET)
            raise
        self.whole += done
        del self.pending[:]


class Prints:
    """What a replicate prints: a file without a name, of which the end is kept however much is written."""

    def __init__(self):
        self.file = tempfile.TemporaryFile()
        # The replicate shares the position in it, and must continue at the start once the file was cut.
        fcntl.fcntl(self.file, fcntl.F_SETFL, fcntl.fcntl(self.file, fcntl.F_GETFL) | os.O_APPEND)
        self.end = b""
        self.left_out = 0

    def fileno(self):
        return self.file.fileno()

    def cut(self, most=MOST_PRINTED_BYTES):
        """Empties the file if it has more than `most` bytes, and keeps its end."""
        size = os.fstat(self.fileno()).st_size
        if size > most:
            kept = os.pread(self.fileno(), KEPT_BYTES, max(0, size - KEPT_BYTES))
            os.ftruncate(self.fileno(), 0)
            whole = len(self.end) + size
            self.end = (self.end + kept)[-KEPT_BYTES:] if size < KEPT_BYTES else kept
            self.left_out += whole - len(self.end)

    def close(self):
        """Returns the end of what was printed, after a line that says how much is missing."""
        self.cut(most=0)
        self.file.close()
        note = "[tfcompare left out {} bytes that were printed before this]\n".format(self.left_out)
        return note.encode("ascii") + self.end if self.left_out else self.end


class HostGone(Exception):
    """The host has ended: no answer is of use any more."""


class Child:
    """A forked process that answers JSON lines on a separate pipe; the end of its prints is kept for the log.

    Its end is noticed by a signal as well as by the pipe, whose other end a process of the workload's may hold open.
    """

    def __init__(self, main, others, deaths):
        """`others` are descriptors that the fork may not keep; `deaths` wakes up when a process has ended."""
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
        """What the fork does first."""
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
        """Sends an order, unless it is None, and returns the answer, of which at most `longest` bytes are read."""
        deadline = time.monotonic() + timeout_s
        if order is not None:
            try:
                _write_line(self.orders, order)
            except OSError:
                raise self._explain_end()
        # A profile is a line of megabytes: what was searched is not searched again.
        searched = 0
        while self.buffer.find(b"\n", searched) < 0:
            searched = len(self.buffer)
            if searched > longest:
                self.end()
                raise ChildDied("contract", "its answer has more than {} MiB; ended".format(longest >> 20))
            chunk = self._read(deadline)
            if chunk is None:
                self.end()
                raise ChildDied("timeout", "no answer within {:g} s; ended".format(timeout_s))
            if not chunk:
                raise self._explain_end()
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        try:
            return json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            raise ChildDied("contract", "its answer is not JSON")

    def _read(self, deadline):
        """What it has written: nothing if it has ended or has closed its pipe, and None if the deadline has passed."""
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
        """How it ended; a process that lives on after it has closed its pipe is ended."""
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
            return ChildDied("signal", "killed by {}{}".format(signal.Signals(number).name, hint))
        return ChildDied("exit", "ended with exit code {}".format(os.WEXITSTATUS(self.status)))

    def _has_ended(self):
        """Whether it has ended; a pid that was waited for is another process's by now and is left alone."""
        if self.status is None:
            self.status = processes.has_ended(self.pid)
        return self.status is not None

    def end(self):
        """Ends the process, and waits until it is gone."""
        until = time.monotonic() + processes.KILLED_S
        while not self._has_ended() and time.monotonic() < until:
            processes.kill(self.pid)
            time.sleep(processes.POLL_S)
        if self.status is None:
            # The kernel does not let it go; it is a stray from now on.
            self.status = signal.SIGKILL

    def finish(self):
        """Hands the prints of the ended process to the worker's log; returns their tail."""
        os.close(self.orders)
        os.close(self.answers)
        printed = self.prints.close()
        _print(printed)
        return printed[-LOG_TAIL_BYTES:].decode("utf-8", "replace")


def _pipe(made):
    """The ends of a pipe, which `made` closes if it is not emptied."""
    ends = os.pipe()
    for end in ends:
        made.callback(os.close, end)
    return ends


class Inline:
    """A replicate in the worker's own process, for those who distrust forks; its prints are in the log already, and its
    deadline is the host's to keep."""

    pid = None
    descriptors = []

    def __init__(self, replicate):
        self.replicate = replicate

    def end(self):
        pass

    def ask(self, order, timeout_s, longest=None):
        return self.replicate.begin() if order is None else self.replicate.obey(order)

    def finish(self):
        return ""


def _run_child(main, orders, answers, prints, begin):
    """The forked process from its first line to its last; it never returns to the worker's code."""
    status = 1
    try:
        # A workload may be looked into by its user's own tools, and leave a core file.
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

        main(receive, lambda answer: _write_line(answers, answer))
        status = 0
    finally:
        _leave(status)


def _leave(status):
    """Ends this process at once: to take TensorFlow apart would take half a second, and all that counts is written."""
    for stream in (sys.stdout, sys.stderr):
        # A workload may have closed them.
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)


def _is_answer(answer, kind, number):
    if not isinstance(answer, dict) or answer.get("kind") not in ANSWERS[kind] or answer.get("replicate") != number:
        return False
    if answer["kind"] == "closed":
        # It brings its rows along, which are checked as they are written.
        return True
    try:
        contract.check(answer, contract.EVENTS)
    except (contract.ContractError, RecursionError):
        return False
    return True


def _died(number, how, reason):
    return {"kind": "died", "replicate": number, "how": how, "reason": reason, "log": ""}


def _print(data):
    """Writes to the log; a disk that is full costs lines of it and not the worker."""
    with contextlib.suppress(OSError):
        _write_all(2, data)


def _write_line(fd, message):
    _write_all(fd, contract.encode(message).encode("utf-8"))


def _write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


class Worker:
    def __init__(self, commands, answers):
        self.commands = commands
        self.answers = answers
        self.children = {}
        self.orders = {}
        self.replicates = {}
        self.hello = None
        self.limits = processes.raise_descriptors()
        self.deaths = None
        # What belongs to no replicate.
        self.own = frozenset()

    def serve(self):
        with contextlib.suppress(HostGone):
            for line in iter(self.commands.readline, b""):
                try:
                    command = contract.decode(line.decode("utf-8", "replace"), contract.COMMANDS)
                    event = self._answer(command)
                except contract.ContractError as error:
                    event = {"kind": "error", "message": str(error)}
                _write_line(self.answers, event)
                if event["kind"] in ("bye", "failed"):
                    break
        self._shut()

    def _answer(self, command):
        kind = command["kind"]
        if kind == "quit":
            return {"kind": "bye"}
        if kind == "hello":
            return self._hello(command)
        if self.hello is None:
            raise contract.ContractError("{} before hello".format(kind))
        if kind == "probe":
            return self._probe(command)
        number = command["replicate"]
        if kind in BEGINNINGS and number in self.children:
            raise contract.ContractError("replicate {} is open already".format(number))
        if kind not in BEGINNINGS and number not in self.children:
            raise contract.ContractError("no replicate {} is open".format(number))
        return self._order(command, number)

    def _hello(self, command):
        if self.hello is not None:
            raise contract.ContractError("hello was sent already")
        if (command["protocol"], command["fingerprint"]) != (contract.PROTOCOL, contract.FINGERPRINT):
            raise contract.ContractError(
                "the host speaks contract {} {}, this worker {} {}".format(
                    command["protocol"], command["fingerprint"], contract.PROTOCOL, contract.FINGERPRINT
                )
            )
        if command["device"] == "cpu":
            os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        stage = "import"
        try:
            start = time.perf_counter()
            import tensorflow as tf
            self.import_ns = int((time.perf_counter() - start) * 1e9)
            # After TensorFlow: both bring their own copies of shared libraries, and TensorFlow's must win in its own house.
            import pyarrow as pa
            self.tf, self.pa = tf, pa
            facts = dict(compat.describe(tf, command["device"]), python=platform.python_version(), pyarrow=pa.__version__)
            stage = "results"
            self.file = Unwritten(command["results"])
            self.stream = pa.ipc.new_stream(self.file, contract.arrow_schema(pa))
            self.file.store()
        except Exception as error:
            return {"kind": "failed", "stage": stage, "message": "{}: {}".format(type(error).__name__, error)}
        if command["fork"]:
            # A replicate has the user of its worker, whose pipe to the host is not for it.
            processes.set_dumpable(False)
        self.hello = command
        self.own = frozenset(processes.children())
        return {"kind": "ready", "facts": facts, "import_ns": self.import_ns, "pid": os.getpid()}

    def _fork(self, main):
        def live(receive, send):
            # A replicate is measured under the limit that its user set.
            resource.setrlimit(resource.RLIMIT_NOFILE, self.limits)
            main(receive, send)

        if self.deaths is None:
            self.deaths = processes.Wakeup(signal.SIGCHLD)
        others = [fd for child in self.children.values() for fd in child.descriptors]
        try:
            return Child(live, others + [self.answers], self.deaths)
        except OSError as error:
            where = ": {}".format(error.filename) if error.filename else ""
            raise ChildDied("fork", "no process could be started for it: {}{}".format(error.strerror, where))

    def _probe(self, command):
        def main(receive, send):
            compat.grow_memory(self.tf)
            send({"kind": "probed", "gpus": compat.gpus(self.tf), "driver": {}})

        child = None
        try:
            child = self._fork(main)
            answer = child.ask(None, command["timeout_s"])
            return answer if answer.get("gpus") else dict(answer, driver=cuda.explain(command["timeout_s"]))
        except ChildDied as death:
            return _died(-1, death.how, str(death))
        finally:
            if child:
                self._finish(child)

    def _order(self, command, number):
        begins = BEGINNINGS.get(command["kind"])
        try:
            longest = LONGEST.get(command["kind"], contract.LONGEST_LINE)
            if begins:
                begins = ProgramReplicate if command.get("program", {}).get("words") else begins
                replicate = begins(self.tf, command, self.hello["folders"], self.hello["threads"], self.hello["gpus"])
                self.replicates[number] = replicate
                self.children[number] = self._fork(replicate.live) if self.hello["fork"] else self._settle(replicate)
                self.orders[number] = command
            answer = self.children[number].ask(None if begins else command, command["timeout_s"], longest)
            if not _is_answer(answer, command["kind"], number):
                raise ChildDied("contract", "its answer is none that a replicate gives")
        except ChildDied as death:
            answer = _died(number, death.how, str(death))
        if answer["kind"] not in ("opened", "measured"):
            tail = self._forget(number)
            if answer["kind"] == "closed":
                answer = self._written(self.orders[number], answer)
            if answer["kind"] == "died":
                answer["log"] = tail
        return answer

    def _settle(self, replicate):
        if self.orders:
            raise contract.ContractError("this worker forks nothing and has had its one replicate")
        return Inline(replicate)

    def _written(self, order, answer):
        try:
            return self._write(order, answer)
        except Exception as error:
            _print(traceback.format_exc().encode("utf-8", "replace"))
            reason = "its rows could not be written: {}: {}".format(type(error).__name__, str(error)[:500])
            return _died(order["replicate"], "results", reason)

    def _write(self, order, answer):
        pa, columns = self.pa, answer["columns"]
        count = len(columns["ordinal"])
        values = dict(columns)
        for name in ("case", "round", "position", "replicate"):
            values[name] = [order[name]] * count
        values["run"] = [self.hello["run"]] * count
        values["version"] = [self.hello["version"]] * count
        values["steps"] = [answer["steps"]] * count
        facts = dict(answer["facts"], import_ns=self.import_ns)
        for name in contract.REPLICATE_FIELDS:
            values[name] = [facts.get(name)] + [None] * (count - 1)
        schema = contract.arrow_schema(pa)
        arrays = [pa.array(values[field.name], schema.field(field.name).type) for field in contract.FIELDS]
        self.stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
        self.file.store()
        return {"kind": "closed", "replicate": order["replicate"], "rows": count}

    def _forget(self, number):
        tail = self._finish(self.children.pop(number)) if number in self.children else ""
        if number in self.replicates:
            self.replicates.pop(number).clear()
        return tail

    def _finish(self, child):
        """Ends a replicate and whatever it has left running; returns the tail of what it printed."""
        child.end()
        ENDED.add(processes.end_children(self.own.union(other.pid for other in self.children.values())))
        return child.finish()

    def _shut(self):
        for number in list(self.children):
            self._forget(number)
        if self.hello is not None:
            # What a full disk does not take was reported when it came; the file has whole batches without it.
            with contextlib.suppress(OSError):
                self.stream.close()
                self.file.store()
                os.close(self.file.handle)


def main():
    # TensorFlow, Keras and workloads print as they like: the protocol has a separate descriptor, and what they
    # write to stdout goes to the log.
    answers = os.dup(1)
    os.dup2(2, 1)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Packages that an image of the user's own lacks. Last: its own are what is measured.
    sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), contract.LIBRARY))
    Worker(sys.stdin.buffer, answers).serve()
    _leave(0)


if __name__ == "__main__":
    main()
