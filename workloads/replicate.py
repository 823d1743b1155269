"""The life of one replicate inside its process: refuse or build, first calls, warm-up, bursts, facts."""

import contextlib
import importlib.util
import inspect
import json
import os
import re
import resource
import sys
import time
import traceback
from functools import lru_cache

from workloads import backends, compat, contract, counting, cuda, energy, readings, values
from workloads.program_site.tfcompare_warnings import Collector
from workloads.sketches import sketch

MESSAGE_LIMIT, NAME_LIMIT = 500, 100
# A pause, in which other arms have the machine, slows down the calls after it, because caches are cold. A call of 0.4
# ms took 0.9 to 1.4 ms, and the next one 0.5 to 0.8 ms, until some five milliseconds had passed. The first call of 4 to
# 13 ms took 20 to 60 % longer, the second 5 to 14 %, the third 1 to 5 %; of calls of 45 ms, the second took 1 % longer.
# A kernel that takes idle pages back made the first call of 0.65 s take 0.97 s. Calls of `LONG_NS` show neither.
LEAD_IN_S, LEAD_IN_CALLS, MOST_LEAD_IN_S, LONG_NS = 0.005, 3, 0.03, 10**9
# A burst has at most this many calls. Only very short calls reach this number, so the burst is still short.
MOST_IN_BURST = 50
# The folder of a core has a folder of this name for its node. If a machine has several nodes, another core may be far
# from the memory of the replicate.
NODES = re.compile(r"node\d+")


def load(name, folders):
    """Return the workload module `name` from the first folder that has it, whose other modules it may import."""
    for folder in folders:
        path = os.path.join(folder, name + ".py")
        if os.path.exists(path):
            if folder not in sys.path:
                # The folder comes last, so that TensorFlow does not import a user's file called random.py.
                sys.path.append(folder)
            spec = importlib.util.spec_from_file_location("workload_" + name, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise LookupError("no file {}.py in {}".format(name, ", ".join(folders)))


def find_layer(name):
    """Return the folder of packages that the workload requires beyond those of this environment, or None."""
    layer = json.loads(os.environ.get(contract.LAYERS) or "{}").get(name, {})
    if layer.get("refused"):
        raise compat.Refused(layer["refused"])
    return layer.get("folder")


def as_declared(module, params):
    """Return the parameters with the values of PARAMS, because the host sends numbers as text."""
    declared = getattr(module, "PARAMS", {})
    return {
        name: next((value for value in declared.get(name, ()) if str(value) == text), text) for name, text in params.items()
    }


def place_data(module, name):
    """Set the workload's DATA to the paths of its files in this environment, which has a copy of their folder."""
    data = getattr(module, "DATA", None)
    here = os.path.join(os.path.dirname(os.path.abspath(module.__file__)), contract.DATA, name)
    if isinstance(data, dict) and os.path.isdir(here):
        module.DATA = {key: os.path.join(here, key) for key in data}


def take_core(number):
    """Move this thread to the core whose turn it is, without keeping it there.

    On a shared machine, other programs can slow one core for a second and spare the next. The scheduler tends to keep
    each process on one core, so one arm would be slowed and another would not. Bursts of the same turn run on the same
    core instead.
    """
    try:
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) > 1 and len(set(map(find_node, cores))) == 1:
            os.sched_setaffinity(0, {cores[number % len(cores)]})
            os.sched_setaffinity(0, cores)
    except (AttributeError, OSError):
        # This system is not Linux, or a sandbox forbids it.
        pass


@lru_cache(maxsize=None)
def find_node(core):
    """Return the name of the node that a core belongs to, or None if the system does not list it."""
    with contextlib.suppress(OSError):
        return next(filter(NODES.fullmatch, os.listdir(f"/sys/devices/system/cpu/cpu{core}")), None)


class Calls:
    """The timed calls, column by column, as the stream needs them."""

    COLUMNS = ("burst", "phase", "ordinal", "wall_ns", "cpu_ns")

    def __init__(self):
        self.columns = {name: [] for name in self.COLUMNS}
        self.ordinal = -1

    def time(self, function, burst, phase):
        # The readings are nested, so that none adds to those inside it.
        children_s, own_s = _children_s(), time.process_time()
        start = time.perf_counter()
        result = function()
        wall_ns = int((time.perf_counter() - start) * 1e9)
        own_s = time.process_time() - own_s
        cpu_ns = int((own_s + _children_s() - children_s) * 1e9)
        self.add(burst, phase, wall_ns, cpu_ns)
        return wall_ns, result

    def add(self, burst, phase, wall_ns, cpu_ns):
        self.ordinal += 1
        for name, value in zip(self.COLUMNS, (burst, phase, self.ordinal, wall_ns, cpu_ns)):
            self.columns[name].append(value)


class Usage:
    """Page faults, context switches and lost CPU time between `start` and `stop`, added up over the bursts."""

    KEYS = ("minor_faults", "major_faults", "involuntary_switches", "steal_ns", "psi_us")

    def __init__(self):
        self.totals = dict.fromkeys(self.KEYS)
        self.begun = None

    def start(self):
        self.begun = self._read()

    def stop(self):
        for key, before, now in zip(self.KEYS, self.begun, self._read()):
            if before is not None and now is not None:
                self.totals[key] = (self.totals[key] or 0) + now - before

    def _read(self):
        own = resource.getrusage(resource.RUSAGE_SELF)
        return own.ru_minflt, own.ru_majflt, own.ru_nivcsw, _steal_ns(), _psi_us()


def _steal_ns():
    try:
        with open("/proc/stat") as stat:
            fields = stat.readline().split()
        return int(fields[8]) * 10**9 // os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None


def _psi_us():
    # The file is absent before Linux 4.20, and if the kernel was booted without pressure information.
    try:
        with open("/proc/pressure/cpu") as pressure:
            return int(pressure.readline().rsplit("total=", 1)[1])
    except (OSError, IndexError, ValueError):
        return None


def _cpu_s():
    """Return the CPU time of this process and of those that it has started and waited for."""
    return time.process_time() + _children_s()


def _children_s():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def count_of(step, name):
    """Return a count of a step: its `steps`, by which a call's time is divided, or the `items` of one of them.

    A mistake in it must not reach the stream, which all rows share.
    """
    count = getattr(step, name, 1)
    if not isinstance(count, int) or not 1 <= count < 2**31:
        raise ValueError(f"the step's `{name}` must be a whole number above zero, not {count!r}")
    return count


def find_place(error, folders):
    """Return `, at FILE:LINE` for the innermost line of the workload's own files in an error's traceback, or ''."""
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        frames.append((error.filename, error.lineno))
    for path, line in reversed(frames):
        if any(path.startswith(os.path.join(folder, "")) for folder in folders):
            return f", at {os.path.basename(path)[:NAME_LIMIT]}:{line}"
    return ""


def framework_of(tf):
    """Return the module that knows how to ask this TensorFlow, or another backend of Keras."""
    return backends if isinstance(tf, backends.Backend) else compat


class GpuLost(Exception):
    """A process does not have the GPUs that its worker had."""


class Replicate:
    """Answers the orders of its worker, one message each."""

    def __init__(self, tf, order, folders, threads, gpus=0):
        """Prepare a replicate that must find at least `gpus` GPUs."""
        self.tf = tf
        self.framework = framework_of(tf)
        self.order = order
        self.folders = folders
        self.threads = threads
        self.gpus = gpus
        self.device = None
        self.calls = Calls()
        self.usage = Usage()
        self.meter = None
        self.energy_mj = self.metered_calls = 0
        self.memory = readings.Memory()
        self.bursts = 0
        self.untimed = 0
        self.untimed_s = 0.0
        self.step = None
        self.operations = None
        self.output = self.fifth_output = None
        self.stage = "import"

    def serve(self, receive, send):
        """Serve until the replicate is closed, refuses or fails."""
        answer = self.begin()
        send(answer)
        while answer["kind"] in ("opened", "measured"):
            order = receive()
            if order is None:
                return
            answer = self.obey(order)
            send(answer)

    def clear(self):
        """Remove what the replicate has left on the disk; the worker calls this once the process is gone."""

    def begin(self):
        return self._guarded(self._open)

    def obey(self, order):
        if order["kind"] == "burst":
            return self._guarded(lambda: self._burst(order["calls"], order["least_s"]))
        return self._guarded(self._close)

    def _guarded(self, act):
        """Return the answer of `act`; an exception of the workload also becomes an answer."""
        try:
            return act()
        except GpuLost as lost:
            return self._answer("died", how=contract.GPU_LOST, reason=str(lost), log="")
        except compat.Refused as refused:
            return self._answer("refused", reason=str(refused)[:MESSAGE_LIMIT])
        except (Exception, SystemExit) as error:
            # The disk that its log is on may be full, and the workload may have closed its stream.
            with contextlib.suppress(OSError, ValueError):
                traceback.print_exc()
            message = str(error)[:MESSAGE_LIMIT]
            place = find_place(error, self.folders)
            reason = f"{type(error).__name__}: {message} (raised in {self.stage}{place})"
            # An assertion means that a claim is false, and any other exception that it could not be tested.
            how = "asserted" if isinstance(error, AssertionError) else "raised"
            return self._answer("died", how=how, reason=reason, log="")

    def _answer(self, kind, **values):
        return dict(values, kind=kind, replicate=self.order["replicate"])

    def _prepare(self):
        """Prepare this process, and return the workload's `build` with its parameters."""
        layer = find_layer(self.order["workload"])
        if layer:
            # The folder comes last, because the environment's own packages are measured.
            sys.path.append(layer)
        module = load(self.order["workload"], self.folders)
        params = as_declared(module, self.order["params"])
        place_data(module, self.order["workload"])
        self.stage = "build"
        self.framework.grow_memory(self.tf)
        if self.threads:
            self.framework.set_threads(self.tf, *self.threads)
        reason = module.refuse(self._choose_argument(module.refuse), params) if hasattr(module, "refuse") else None
        if reason:
            raise compat.Refused(reason)
        self.framework.seed(self.tf, self.order["seed"])
        argument = self._choose_argument(module.build)
        return lambda: module.build(argument, params)

    def _choose_argument(self, function):
        """Return the first argument of a workload's function: Keras if it is named `keras`, otherwise TensorFlow."""
        names = list(inspect.signature(function).parameters)
        return self.framework.keras_of(self.tf) if names[:1] == ["keras"] else self.tf

    def _open(self):
        order = self.order
        build = self._prepare()
        if contract.OPERATIONS in order["count"] and not order["once"]:
            self.operations = self.framework.find_operations(self.tf)
        build_ns, self.step = self.calls.time(build, 0, "build")
        self.tracing = readings.Tracing(self.framework.count_traces(self.tf))
        self.memory.called(0)
        self._check_gpus()
        if not callable(self.step):
            raise TypeError(f"build() returned {type(self.step).__name__}; it must return the function to measure")
        self.steps = count_of(self.step, "steps")
        self.items = count_of(self.step, "items") if hasattr(self.step, "items") else None
        self.no_result = str(getattr(self.step, "no_result", ""))
        self.stage = "a call"
        first_ns, output = self._call(0, "first")
        self.output = sketch(output, self.no_result)
        second_ns = 0
        if not order["once"]:
            second_ns, _ = self._call(0, "second")
            self.usual_ns = second_ns
            for _ in range(order["warmup"]):
                self.usual_ns, _ = self._call(0, "warmup")
        return self._answer(
            "opened",
            build_ns=build_ns,
            first_ns=first_ns,
            second_ns=second_ns,
            steps=self.steps,
            items=self.items or 0,
            output=values.describe(output),
            threads=self.framework.threads(self.tf),
        )

    def _check_gpus(self):
        """End a replicate that would compute on the CPU; a container can lose its GPU while its worker continues."""
        if self.gpus:
            count = self.framework.count_gpus(self.tf)
            if count < self.gpus:
                raise GpuLost(f"TensorFlow found {count} of {self.gpus} GPUs in its process")
            devices = cuda.ask()["devices"]
            self.device = cuda.describe(devices)
            if contract.ENERGY in self.order["count"]:
                self.meter = energy.Meter([gpu["uuid"] for gpu in devices])

    def _call(self, burst, phase):
        wall_ns, result = self.calls.time(self._run_step, burst, phase)
        self._record_call(result)
        return wall_ns, result

    def _run_step(self):
        """Return the result of a step on the host, because an accelerator is not done before that."""
        result = self.step()
        if self.gpus and values.is_on_host(result):
            self.framework.wait_for_gpus(self.tf)
        return values.to_host(result)

    def _record_call(self, result):
        """Record a call that has ended. A step may return the same array each time, so its result is read now."""
        count = self._count()
        self.memory.called(count)
        self.tracing.called(count)
        if count == readings.EARLY_CALLS:
            self.fifth_output = sketch(result, self.no_result)

    def _read(self):
        self.memory.read(self._count())
        self.tracing.read(self._count())

    def _count(self):
        """Return the number of calls so far, including those that were not timed; the build is number 0."""
        return self.calls.ordinal + self.untimed

    def _burst(self, calls, least_s):
        self.bursts += 1
        self._read()
        cpu = _cpu_s()
        take_core(self.bursts)
        self._lead_in()
        before_mj = self.meter.read_mj() if self.meter else None
        self.usage.start()
        walls = [self._call(self.bursts, "burst")[0] for _ in range(calls)]
        while sum(walls) < least_s * 1e9 and len(walls) < MOST_IN_BURST:
            walls.append(self._call(self.bursts, "burst")[0])
        after_mj = self.meter.read_mj() if self.meter else None
        if before_mj is not None and after_mj is not None:
            self.energy_mj += after_mj - before_mj
            self.metered_calls += len(walls)
        cpu_ns = int((_cpu_s() - cpu) * 1e9)
        self.usage.stop()
        return self._answer("measured", walls_ns=walls, cpu_ns=cpu_ns)

    def _count_work(self):
        """Return what pairs of further calls run, outside of bursts: counting makes them several times as long."""
        facts = {}
        if self.order["once"]:
            return facts
        self.stage = "a counted call"
        # Operations come first, so that nothing of their counter is left when the functions of Python are counted.
        if self.operations:
            with self.operations:
                facts.update(self._count_twice("operations", self.operations.counter))
        if contract.CALLS in self.order["count"]:
            facts.update(self._count_twice("python_calls", counting.PythonCalls))
        return facts

    def _count_twice(self, name, counter):
        counts, result = counting.count_twice(self.step, counter)
        values.to_host(result)
        return {name: counts[0], "next_" + name: counts[1]}

    def _lead_in(self):
        """Make calls that are not timed, until caches are warm."""
        begun, before, passed = time.perf_counter(), self.untimed, 0.0
        while self.usual_ns < LONG_NS and passed <= MOST_LEAD_IN_S:
            result = self._run_step()
            self.untimed += 1
            self._record_call(result)
            passed = time.perf_counter() - begun
            if passed > LEAD_IN_S and self.untimed - before >= LEAD_IN_CALLS:
                break
        self.untimed_s += time.perf_counter() - begun

    def _close(self):
        self._read()
        counts = self._count_work()
        growth_bytes, growth_calls = self.memory.growth()
        facts = dict(
            self.usage.totals,
            **counts,
            resident_kb=readings.peak_kb(),
            memory_kb=self.memory.peak_kb,
            growth_bytes=growth_bytes,
            growth_calls=growth_calls,
            traces=self.tracing.early,
            later_traces=self.tracing.later(),
            calls=self._count(),
            untimed_ns=int(self.untimed_s * 1e9),
            output=self.output,
            fifth_output=self.fifth_output,
            items=self.items,
            device=self.device,
            gpu_memory_kb=self.framework.gpu_memory_kb(self.tf) if self.gpus else None,
            energy_uj=self._energy_per_step_uj(),
        )
        return self._answer("closed", columns=self.calls.columns, steps=self.steps, facts=facts)

    def _energy_per_step_uj(self):
        """Return None if no GPU has counted its energy, or if the count has not moved."""
        steps = self.metered_calls * self.steps
        return int(self.energy_mj * 1000 / steps) or None if steps else None


class WarnedReplicate(Replicate):
    """A replicate with one answer: it builds, makes one call, and reports what its code was warned of."""

    def begin(self):
        return self._guarded(self._collect)

    def _collect(self):
        collector = Collector(self.folders)
        collector.watch()
        step = self._prepare()()
        self.stage = "a call"
        values.to_host(step())
        return self._answer("warned", warnings=collector.list())
