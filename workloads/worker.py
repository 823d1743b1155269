"""The resident process inside a version's environment, which imports TensorFlow once and forks a process per replicate.

It is run by path (`python .../workloads/worker.py`) and never through PYTHONPATH, because the folder above may be the
site-packages of another Python. The protocol is in contract.py.
"""

import contextlib
import importlib.util
import io
import os
import platform
import resource
import signal
import sys
import time
import traceback


def _adopt_package():
    """Make `workloads` importable without putting its parent folder, or its own, on the path."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    if "workloads" not in sys.modules:
        init = os.path.join(here, "__init__.py")
        spec = importlib.util.spec_from_file_location("workloads", init, submodule_search_locations=[here])
        sys.modules["workloads"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["workloads"])


_adopt_package()

from workloads import processes  # noqa: E402

# This comes before everything that starts threads or takes memory; from here on, this is the fork.
ENDED = processes.guard() if __name__ == "__main__" else processes.Count()

from workloads import backends, contract, cuda  # noqa: E402
from workloads.child import Child, ChildDied, HostGone, Inline, leave, print_to_log, write_line  # noqa: E402
from workloads.profile import ProfiledReplicate  # noqa: E402
from workloads.program import ProgramReplicate, WarnedProgram  # noqa: E402
from workloads.replicate import Replicate, WarnedReplicate, framework_of  # noqa: E402

# These commands begin a replicate; the others go to one that is open. The second of a pair runs a program.
BEGINNINGS = {
    "open": (Replicate, ProgramReplicate),
    "profile": (ProfiledReplicate, ProfiledReplicate),
    "warn": (WarnedReplicate, WarnedProgram),
}
# Only these answers count, because a replicate runs a workload, which can write anything into the pipe.
ANSWERS = {
    "open": ("opened", "refused", "died"),
    "burst": ("measured", "died"),
    "close": ("closed", "died"),
    "profile": ("profiled", "refused", "died"),
    "warn": ("warned", "refused", "died"),
}
# A profile is one long line, and `closed` brings the rows of its replicate along.
LONGEST = {"close": contract.LONGEST_LARGE_LINE, "profile": contract.LONGEST_LARGE_LINE}


class Unwritten(io.RawIOBase):
    """The part of a stream that is not in its file yet.

    A full disk may take only a part of a batch, after which nothing in the file could be read. So the file gets whole
    batches or nothing. What it did not get is written before the next batch, because later batches may refer to it.
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
        """Write everything that is pending to the file, or nothing."""
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


def _is_answer(answer, kind, number):
    if not isinstance(answer, dict) or answer.get("kind") not in ANSWERS[kind] or answer.get("replicate") != number:
        return False
    if answer["kind"] == "closed":
        # Its rows are checked when they are written.
        return True
    try:
        contract.check(answer, contract.EVENTS)
    except (contract.ContractError, RecursionError):
        return False
    return True


def _died(number, how, reason):
    return {"kind": "died", "replicate": number, "how": how, "reason": reason, "log": ""}


def import_framework():
    """Import TensorFlow or, in a target of another backend, Keras with that."""
    if backends.chosen() != backends.TENSORFLOW:
        return backends.load()
    import tensorflow as tf

    return tf


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
        # These processes belong to no replicate.
        self.own = frozenset()

    def serve(self):
        with contextlib.suppress(HostGone):
            for line in iter(self.commands.readline, b""):
                try:
                    command = contract.decode(line.decode("utf-8", "replace"), contract.COMMANDS)
                    event = self._answer(command)
                except contract.ContractError as error:
                    event = {"kind": "error", "message": str(error)}
                write_line(self.answers, event)
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
            raise contract.ContractError(f"{kind} before hello")
        if kind == "probe":
            return self._probe(command)
        number = command["replicate"]
        if kind in BEGINNINGS and number in self.children:
            raise contract.ContractError(f"replicate {number} is open already")
        if kind not in BEGINNINGS and number not in self.children:
            raise contract.ContractError(f"no replicate {number} is open")
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
            tf = import_framework()
            self.import_ns = int((time.perf_counter() - start) * 1e9)
            # TensorFlow comes first, because both have copies of the same libraries, and TensorFlow has to use its own.
            import pyarrow as pa

            self.tf, self.pa = tf, pa
            if command["untuned"]:
                framework_of(tf).leave_untuned(tf)
                os.environ[contract.UNTUNED] = "1"
            facts = framework_of(tf).describe(tf, command["device"])
            facts.update(python=platform.python_version(), pyarrow=pa.__version__)
            stage = "results"
            self.file = Unwritten(command["results"])
            os.environ[contract.RESULTS] = os.path.dirname(command["results"])
            schema = contract.arrow_schema(pa)
            # The first rows make pyarrow import pandas, if it is installed. They are written here, to nowhere, so that
            # the memory of the first fork has as much of that as the memory of later ones.
            row = [pa.array([None], field.type) for field in schema]
            pa.ipc.new_stream(io.BytesIO(), schema).write_batch(pa.RecordBatch.from_arrays(row, schema=schema))
            self.stream = pa.ipc.new_stream(self.file, schema)
            self.file.store()
        except Exception as error:
            return {"kind": "failed", "stage": stage, "message": f"{type(error).__name__}: {error}"}
        if command["fork"]:
            # A replicate has the same user as its worker, but must not reach the worker's pipe to the host.
            processes.set_dumpable(False)
        self.hello = command
        self.own = frozenset(processes.children())
        return {"kind": "ready", "facts": facts, "import_ns": self.import_ns, "pid": os.getpid()}

    def _fork(self, main):
        def serve(receive, send):
            # A replicate is measured under the limit that its user set.
            resource.setrlimit(resource.RLIMIT_NOFILE, self.limits)
            main(receive, send)

        if self.deaths is None:
            self.deaths = processes.Wakeup(signal.SIGCHLD)
        others = [fd for child in self.children.values() for fd in child.descriptors]
        try:
            return Child(serve, others + [self.answers], self.deaths)
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            raise ChildDied("fork", f"no process could be started for it: {error.strerror}{where}")

    def _probe(self, command):
        def main(receive, send):
            framework = framework_of(self.tf)
            framework.grow_memory(self.tf)
            send({"kind": "probed", "gpus": framework.gpus(self.tf), "driver": {}})

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
                kind = begins[1 if command.get("program", {}).get("words") else 0]
                replicate = kind(self.tf, command, self.hello["folders"], self.hello["threads"], self.hello["gpus"])
                self.replicates[number] = replicate
                self.children[number] = self._fork(replicate.serve) if self.hello["fork"] else self._settle(replicate)
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
            print_to_log(traceback.format_exc().encode("utf-8", "replace"))
            reason = f"its rows could not be written: {type(error).__name__}: {str(error)[:500]}"
            return _died(order["replicate"], "results", reason)

    def _write(self, order, answer):
        pa, columns = self.pa, answer["columns"]
        count = len(columns["ordinal"])
        values = dict(columns)
        for name in ("case", "round", "position", "replicate"):
            values[name] = [order[name]] * count
        values["run"] = [self.hello["run"]] * count
        values["target"] = [self.hello["target"]] * count
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
        """End a replicate and everything that it has left running; return the tail of its output."""
        child.end()
        ENDED.add(processes.end_children(self.own.union(other.pid for other in self.children.values())))
        return child.finish()

    def _shut(self):
        for number in list(self.children):
            self._forget(number)
        if self.hello is not None:
            # A batch that did not fit on a full disk was reported before; the file has only whole batches.
            with contextlib.suppress(OSError):
                self.stream.close()
                self.file.store()
                os.close(self.file.handle)


def main():
    # TensorFlow, Keras and workloads may print anything, so the protocol has a separate descriptor, and stdout goes to
    # the log.
    answers = os.dup(1)
    os.dup2(2, 1)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # A user's own image may lack these packages. They come last, because the image's own packages are measured.
    sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), contract.LIBRARY))
    Worker(sys.stdin.buffer, answers).serve()
    leave(0)


if __name__ == "__main__":
    main()
