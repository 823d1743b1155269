"""The resident process inside a version's environment: imports TensorFlow once, forks a replicate per `open` or `profile`.

Run by path (`python .../workloads/worker.py`) and never through PYTHONPATH: the folder above may be the site-packages
of another Python. The protocol is in contract.py.
"""
import contextlib
import fcntl
import importlib.util
import json
import os
import platform
import select
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

from workloads import compat, contract  # noqa: E402
from workloads.profile import ProfiledReplicate  # noqa: E402
from workloads.replicate import Replicate  # noqa: E402

LOG_TAIL_BYTES = 4000
# Of what a replicate prints the end is kept; a file that has grown larger than the second is cut back to it.
KEPT_BYTES, MOST_PRINTED_BYTES = 2 ** 16, 2 ** 20
# How often the file is looked at while an answer is awaited.
LOOK_S = 1.0
# Of <sys/prctl.h>.
PR_SET_DUMPABLE = 4
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


class Child:
    """A forked process that answers JSON lines on a separate pipe; the end of its prints is kept for the log."""

    def __init__(self, main, inherited):
        down_read, self.orders = os.pipe()
        self.answers, up_write = os.pipe()
        self.prints = Prints()
        self.buffer = bytearray()
        self.status = None
        self.pid = os.fork()
        if self.pid == 0:
            # An inherited end of another replicate's pipe would hide that replicate's death.
            for fd in inherited + [self.orders, self.answers]:
                os.close(fd)
            _run_child(main, down_read, up_write, self.prints)
        os.close(down_read)
        os.close(up_write)

    def ask(self, order, timeout_s, longest=contract.LONGEST_LINE):
        """Sends an order, unless it is None, and returns the answer, of which at most `longest` bytes are read."""
        if order is not None:
            try:
                _write_line(self.orders, order)
            except OSError:
                raise self._end()
        deadline = time.monotonic() + timeout_s
        # A profile is a line of megabytes: what was searched is not searched again.
        searched = 0
        while self.buffer.find(b"\n", searched) < 0:
            searched = len(self.buffer)
            if searched > longest:
                self._reap()
                raise ChildDied("contract", "its answer has more than {} MiB; ended".format(longest >> 20))
            self.prints.cut()
            left = deadline - time.monotonic()
            if left <= 0:
                self._reap()
                raise ChildDied("timeout", "no answer within {:.0f} s; ended".format(timeout_s))
            if not select.select([self.answers], [], [], min(left, LOOK_S))[0]:
                continue
            chunk = os.read(self.answers, 1 << 16)
            if not chunk:
                raise self._end()
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        try:
            return json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            raise ChildDied("contract", "its answer is not JSON")

    def _end(self):
        status = self._reap(kill=False)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            hint = "; often the kernel, out of memory" if number == signal.SIGKILL else ""
            return ChildDied("signal", "killed by {}{}".format(signal.Signals(number).name, hint))
        return ChildDied("exit", "ended with exit code {}".format(os.WEXITSTATUS(status)))

    def _reap(self, kill=True):
        """Its exit status; a pid that was waited for is another process's by now and is left alone."""
        if self.status is None:
            if kill:
                os.kill(self.pid, signal.SIGKILL)
            self.status = os.waitpid(self.pid, 0)[1]
        return self.status

    def finish(self):
        """Reaps the process and hands its prints to the worker's log; returns their tail."""
        os.close(self.orders)
        os.close(self.answers)
        self._reap()
        printed = self.prints.close()
        # A log that is full must not cost the worker.
        with contextlib.suppress(OSError):
            _write_all(2, printed)
        return printed[-LOG_TAIL_BYTES:].decode("utf-8", "replace")


class Inline:
    """A replicate in the worker's own process, for those who distrust forks; its prints are in the log already, and its
    deadline is the host's to keep."""

    def __init__(self, replicate):
        self.replicate = replicate

    def ask(self, order, timeout_s, longest=None):
        return self.replicate.begin() if order is None else self.replicate.obey(order)

    def finish(self):
        return ""


def _run_child(main, orders, answers, prints):
    """The forked process from its first line to its last; it never returns to the worker's code."""
    status = 1
    try:
        # A workload may be looked into by its user's own tools, and leave a core file.
        _set_dumpable(True)
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


def _set_dumpable(dumpable):
    """Says whether other processes of this user may look into this one, e.g. open its pipes below /proc/PID/fd."""
    # Some Pythons are built without ctypes.
    with contextlib.suppress(Exception):
        import ctypes
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, int(dumpable), 0, 0, 0)


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
        self.hello = None

    def serve(self):
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
            facts = dict(compat.describe(tf), python=platform.python_version(), pyarrow=pa.__version__)
            stage = "results"
            self.file = open(command["results"], "wb")
            self.stream = pa.ipc.new_stream(self.file, contract.arrow_schema(pa))
            self.file.flush()
        except Exception as error:
            return {"kind": "failed", "stage": stage, "message": "{}: {}".format(type(error).__name__, error)}
        if command["fork"]:
            # A replicate has the user of its worker, whose pipe to the host is not for it.
            _set_dumpable(False)
        self.hello = command
        return {"kind": "ready", "facts": facts, "import_ns": self.import_ns, "pid": os.getpid()}

    def _fork(self, main):
        inherited = [fd for child in self.children.values() for fd in (child.orders, child.answers)]
        return Child(main, inherited + [self.answers])

    def _probe(self, command):
        def main(receive, send):
            compat.grow_memory(self.tf)
            send({"kind": "probed", "gpus": compat.gpus(self.tf)})

        child = self._fork(main)
        try:
            return child.ask(None, command["timeout_s"])
        except ChildDied as death:
            return _died(-1, death.how, str(death))
        finally:
            child.finish()

    def _order(self, command, number):
        begins = BEGINNINGS.get(command["kind"])
        if begins:
            replicate = begins(self.tf, command, self.hello["folders"], self.hello["threads"])
            self.children[number] = self._fork(replicate.live) if self.hello["fork"] else self._settle(replicate)
            self.orders[number] = command
        child = self.children[number]
        try:
            longest = LONGEST.get(command["kind"], contract.LONGEST_LINE)
            answer = child.ask(None if begins else command, command["timeout_s"], longest)
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
            traceback.print_exc()
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
            values[name] = [facts[name]] + [None] * (count - 1)
        schema = contract.arrow_schema(pa)
        arrays = [pa.array(values[field.name], schema.field(field.name).type) for field in contract.FIELDS]
        self.stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
        self.file.flush()
        return {"kind": "closed", "replicate": order["replicate"], "rows": count}

    def _forget(self, number):
        return self.children.pop(number).finish()

    def _shut(self):
        for number in list(self.children):
            self._forget(number)
        if self.hello is not None:
            self.stream.close()
            self.file.close()


def main():
    # TensorFlow, Keras and workloads print as they like: the protocol has a separate descriptor, and what they
    # write to stdout goes to the log.
    answers = os.dup(1)
    os.dup2(2, 1)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    Worker(sys.stdin.buffer, answers).serve()
    _leave(0)


if __name__ == "__main__":
    main()
