"""The contract between the host and the worker inside a version's environment; stdlib only, Python 3.6 syntax.

Each line is one JSON object. The host sends commands, and waits for one event after each:

    hello -> ready | failed      the worker imports TensorFlow and opens its Arrow stream
    probe -> probed | died       the GPUs that TensorFlow sees, asked in a fork to keep the worker clean; if there are
                                         none, also what the driver says and which libraries are absent
    open  -> opened | refused | died     a fork of the worker or, if `hello` forbade forks, the worker itself, once;
                                         with the `words` of a program, each call runs that program and no workload;
                                         with `once`, only the first call is made, and it is closed without a burst;
                                         for each name in `count`, two calls more are made at the end, and counted
    burst -> measured | died     `calls` timed calls of the replicate's step, and more until `least_s` have passed
    close -> closed | died       the replicate's rows go to the stream as one flushed record batch
    profile -> profiled | refused | died     a fork that runs its calls under a profiler and ends, without rows. For 0
                                         calls it makes one, and reports what each layer of Keras returned
    warn  -> warned | refused | died     a fork that builds its case and makes one call, or runs its program once,
                                         reports what the code was warned of, and ends, without rows
    quit  -> bye

The worker answers a line that is not a known command by `error`, and continues. `refused`, `died`, `profiled` and
`warned` end the replicate.
"""

import hashlib
import json
from typing import Any, Dict, NamedTuple

PROTOCOL = 1

# Neither side reads a longer line, in bytes; the second limit is for profiles and for the rows of a replicate.
LONGEST_LINE, LONGEST_LARGE_LINE = 2**20, 2**26
# A worker's file may hold some twenty million calls and no more, because it has to fit into the host's memory.
LARGEST_FILE = 2 * 2**30

# The first is a variable that holds, as JSON, the folder of additional packages of each workload. The second is the
# folder of data in the copy of a workload folder, and the third the folder of the worker's packages, next to its own.
LAYERS, DATA, LIBRARY = "WORKLOAD_LAYERS", "tfcompare_data", "library"
# A worker sets this variable to the folder that it may write to, for models that are saved there.
RESULTS = "TFCOMPARE_RESULTS"
# A program gets these variables: the file for the times of its steps, that for what it is warned of, and the folder of
# its packages.
STEPS, WARNINGS, PACKAGES = "TFCOMPARE_STEPS", "TFCOMPARE_WARNINGS", "TFCOMPARE_PACKAGES"
UNTUNED = "TFCOMPARE_UNTUNED"

# Round 0 is the pilot: it calibrates the run and takes no part in any verdict.
PILOT_ROUND = 0
PHASES = ("build", "first", "second", "warmup", "burst")
# A replicate dies in this way if it lacks the GPUs that it must have.
GPU_LOST = "gpu lost"
# What a replicate counts if it is asked to: functions of Python, operations of TensorFlow, and the energy of its GPUs.
COUNTED = CALLS, OPERATIONS, ENERGY = "calls", "ops", "energy"


class ContractError(Exception):
    """The other side sent something that the contract does not allow."""


class Field(NamedTuple):
    name: str
    type: str
    nullable: bool
    meaning: str


FIELDS = (
    Field("run", "label", False, "id of the run"),
    Field("target", "label", False, "name of the target: a full TensorFlow version, perhaps with changes"),
    Field("case", "label", False, "label of the case"),
    Field("round", "int32", False, "round of the run, 0 for the pilot"),
    Field("position", "int32", False, "place of the arm in the round's order"),
    Field("replicate", "int32", False, "number of the replicate in the run"),
    Field("burst", "int32", False, "burst inside the replicate, 0 before the first"),
    Field("phase", "label", False, "build, first, second, warmup or burst"),
    Field("ordinal", "int32", False, "call inside the replicate, 0 for the build"),
    Field("wall_ns", "int64", False, "wall time of the call, result on the host"),
    Field("cpu_ns", "int64", False, "CPU time of the call: of all threads, and of processes that it waited for"),
    Field("steps", "int32", False, "training or inference steps inside the call"),
    # Facts about the whole replicate are stored once, in its build row.
    Field("import_ns", "int64", True, "import of TensorFlow in the worker"),
    Field("resident_kb", "int64", True, "largest resident set of the replicate"),
    Field("minor_faults", "int64", True, "page faults without I/O over the bursts"),
    Field("major_faults", "int64", True, "page faults with I/O over the bursts"),
    Field("involuntary_switches", "int64", True, "times the kernel took the CPU away over the bursts"),
    Field("steal_ns", "int64", True, "time stolen by the hypervisor over the bursts, all CPUs"),
    Field("psi_us", "int64", True, "time in which some task waited for a CPU over the bursts"),
    Field("traces", "int32", True, "Python functions traced into graphs up to the end of the fifth call"),
    Field("later_traces", "int32", True, "Python functions that 1,000 later calls trace, by a median of slopes"),
    Field("calls", "int32", True, "calls of the step, also those that were not timed"),
    Field("untimed_ns", "int64", True, "time of the calls before bursts, which are not timed one by one"),
    Field("items", "int32", True, "examples that a step handles, if the workload says so"),
    # Only a program that calls Keras' fit has these.
    Field("first_step_ns", "int64", True, "from the call of fit to the end of its first step"),
    Field("step_ns", "int64", True, "mean of the later steps of its epochs"),
    Field("losses", "label", True, "loss of each epoch, as JSON"),
    Field("device", "label", True, "names and UUIDs of the GPUs it had, none on a CPU"),
    Field("gpu_memory_kb", "int64", True, "most memory of the GPU that TensorFlow had in use"),
    # Only a run on a GPU that asks for it has this.
    Field("energy_uj", "int64", True, "energy of its GPUs over the bursts, per step"),
    # These are read after the same number of calls in every arm, however many follow.
    Field("memory_kb", "int64", True, "most memory without pages of files, up to the end of the fifth call"),
    Field("growth_bytes", "int64", True, "by how much a call lets the resident set grow, a median of slopes"),
    Field("growth_calls", "int32", True, "calls between the first and the last reading of that"),
    # Only a run that asks for them has these.
    Field("python_calls", "int64", True, "functions of Python that a further call of the step runs"),
    Field("next_python_calls", "int64", True, "those that the call after it runs"),
    Field("operations", "int64", True, "operations of TensorFlow that a further call of the step runs"),
    Field("next_operations", "int64", True, "those that the call after it runs"),
    Field("output", "label", True, "sketch of what the first call returned, as JSON"),
    Field("fifth_output", "label", True, "sketch of what the fifth call returned, as JSON"),
)

REPLICATE_FIELDS = tuple(field.name for field in FIELDS if field.nullable)

COMMANDS = {
    "hello": {
        "protocol": int,
        "fingerprint": str,
        "run": str,
        "target": str,
        "device": str,
        "gpus": int,
        "threads": list,
        "fork": bool,
        "untuned": bool,
        "folders": list,
        "results": str,
    },
    "probe": {"timeout_s": float},
    "open": {
        "replicate": int,
        "case": str,
        "workload": str,
        "params": dict,
        "program": dict,
        "round": int,
        "position": int,
        "seed": int,
        "warmup": int,
        "once": bool,
        "count": list,
        "timeout_s": float,
    },
    "burst": {"replicate": int, "calls": int, "timeout_s": float, "least_s": float},
    "close": {"replicate": int, "timeout_s": float},
    "profile": {
        "replicate": int,
        "case": str,
        "workload": str,
        "params": dict,
        "seed": int,
        "calls": int,
        "timeout_s": float,
    },
    "warn": {
        "replicate": int,
        "case": str,
        "workload": str,
        "params": dict,
        "program": dict,
        "seed": int,
        "timeout_s": float,
    },
    "quit": {},
}  # type: Dict[str, Dict[str, type]]

EVENTS = {
    "ready": {"facts": dict, "import_ns": int, "pid": int},
    "failed": {"stage": str, "message": str},
    "probed": {"gpus": list, "driver": dict},
    "opened": {
        "replicate": int,
        "build_ns": int,
        "first_ns": int,
        "second_ns": int,
        "steps": int,
        "items": int,
        "output": str,
        "threads": list,
    },
    "measured": {"replicate": int, "walls_ns": list, "cpu_ns": int},
    "closed": {"replicate": int, "rows": int},
    "profiled": {"replicate": int, "profile": dict},
    "warned": {"replicate": int, "warnings": list},
    "refused": {"replicate": int, "reason": str},
    "died": {"replicate": int, "how": str, "reason": str, "log": str},
    "error": {"message": str},
    "bye": {},
}  # type: Dict[str, Dict[str, type]]


def _fingerprint() -> str:
    tables = [
        [PROTOCOL, list(PHASES)],
        [list(field[:3]) for field in FIELDS],
        [[name, sorted((key, kind.__name__) for key, kind in keys.items())] for name, keys in sorted(COMMANDS.items())],
        [[name, sorted((key, kind.__name__) for key, kind in keys.items())] for name, keys in sorted(EVENTS.items())],
    ]
    return hashlib.sha256(json.dumps(tables).encode("utf-8")).hexdigest()[:16]


FINGERPRINT = _fingerprint()
FINGERPRINT_KEY = b"tfcompare.contract"


def arrow_schema(pa: Any) -> Any:
    """Return the schema of a result stream, built with the pyarrow of the side that asks."""
    types = {"label": pa.dictionary(pa.int32(), pa.utf8()), "int32": pa.int32(), "int64": pa.int64()}
    fields = [pa.field(field.name, types[field.type], nullable=field.nullable) for field in FIELDS]
    return pa.schema(fields, metadata={FINGERPRINT_KEY: FINGERPRINT.encode("ascii")})


def encode(message: Dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":")) + "\n"


def decode(line: str, kinds: Dict[str, Dict[str, type]]) -> Dict[str, Any]:
    """Return the message in `line`, checked against COMMANDS or EVENTS; its kind is under "kind"."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError, MemoryError):
        raise ContractError(f"not JSON: {line[:200]!r}")
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise ContractError(f"not an object with a kind: {line[:200]!r}")
    check(message, kinds)
    return message


def check(message: Dict[str, Any], kinds: Dict[str, Dict[str, type]]) -> None:
    """Raise ContractError unless the message has the keys of its kind, each of its type."""
    keys = kinds.get(message["kind"])
    if keys is None:
        raise ContractError("unknown kind {!r}; known are {}".format(message["kind"][:200], ", ".join(sorted(kinds))))
    for key, kind in keys.items():
        if key not in message:
            raise ContractError("{} lacks {!r}".format(message["kind"], key))
        if not _is(message[key], kind):
            shown = repr(message[key])[:200]
            raise ContractError("{}.{} is not {}: {}".format(message["kind"], key, kind.__name__, shown))
    unknown = sorted(set(message) - set(keys) - {"kind"})
    if unknown:
        raise ContractError("{} knows no {}".format(message["kind"], ", ".join(unknown)[:200]))


def _is(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float)) if kind is float else isinstance(value, kind)
