"""Run every cheap case of the study for real, inside a TensorFlow environment.

    PYTHONPATH=. python -W ignore tests/workloads/real.py [substring of a case label]

Forks a child for each case, as the worker does, and prints one JSON line for it. Exit code 1 if a case raised.
A substring that names a case selects it even if it is an expensive one.
"""

import importlib
import itertools
import json
import os
import statistics
import sys
import time
import traceback

from workloads import compat, values

STUDY = ("forward", "import", "power", "predict", "semantics", "tracing", "train_loop")
FOLDER = os.path.join(os.path.dirname(compat.__file__), "suite")
SUITE = sorted(name[:-3] for name in os.listdir(FOLDER) if name.endswith(".py") and not name.startswith("_"))
CALLS = 12


def cases():
    for name in SUITE:
        module = importlib.import_module("workloads.suite." + name)
        for values in itertools.product(*module.PARAMS.values()):
            params = dict(zip(module.PARAMS, values))
            if not any(excluded.items() <= params.items() for excluded in getattr(module, "EXCLUDE", ())):
                label = "{}[{}]".format(name, ",".join("{}={}".format(*pair) for pair in params.items()))
                yield label, module, params


def is_cheap(name, params):
    if name not in STUDY or params.get("net") == "efficientnet_v2s":
        return False
    sizes = [params[name] for name in ("model", "data") if name in params]
    once = params.get("loop", "fit") == "fit" and params.get("input", "numpy") == "numpy"
    return all(size in ("tiny", "small") for size in sizes) or (once and sizes == ["medium", "small"])


def measure(tf, module, params):
    compat.set_threads(tf, 0, 0)
    compat.grow_memory(tf)
    compat.seed(tf, 1)
    traces = compat.count_traces(tf)
    reason = module.refuse(tf, params) if hasattr(module, "refuse") else None
    if reason:
        raise compat.Refused(reason)
    began = time.perf_counter()
    step = module.build(tf, params)
    build_s = time.perf_counter() - began
    times, counts, sums = [], [], []
    while len(times) < CALLS and sum(times) < 20:
        began = time.perf_counter()
        value = values.to_host(step())
        times.append(time.perf_counter() - began)
        counts.append(traces.count)
        sums.append(values.checksum(value))
    steady = statistics.median(times[len(times) // 4:]) / getattr(step, "steps", 1)
    return {
        "median_ms": round(1000 * steady, 3),
        "first_ms": round(1000 * times[0], 1),
        "build_s": round(build_s, 2),
        "traces_first": counts[0],
        "traces_third": counts[min(2, len(counts) - 1)],
        "traces_last": counts[-1],
        "checksum": sums[0],
        "checksum_last": sums[-1],
        "value": repr(value)[:60],
    }


def outcome(tf, module, params):
    try:
        return dict(measure(tf, module, params), outcome="measured")
    except compat.Refused as refused:
        return {"outcome": "refused", "reason": str(refused)}
    except Exception:
        return {"outcome": "raised", "reason": traceback.format_exc()[-2000:]}


def in_child(work):
    """What `work` returns in a forked child, or that the child died."""
    readable, writable = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.dup2(2, 1)  # what TensorFlow prints stays out of the JSON
        os.write(writable, json.dumps(work()).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(pid, 0)[1]
    return json.loads(answer.decode()) if answer else {"outcome": "raised", "reason": "died, status {}".format(status)}


def main(wanted):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    print(json.dumps(compat.describe(tf), sort_keys=True))
    raised = 0
    for label, module, params in cases():
        if wanted in label if wanted else is_cheap(label.split("[")[0], params):
            line = dict(in_child(lambda: outcome(tf, module, params)), case=label)
            raised += line["outcome"] == "raised"
            print(json.dumps(line, sort_keys=True))
    return 1 if raised else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ""))
