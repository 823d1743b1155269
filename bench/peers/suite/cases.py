"""The cases in the form that asv and pyperf expect.

Both time the steps that a workload file builds, which is the file that tfcompare measures. This module runs inside the
versions' environments, also on Python 3.7.

CASES holds the file and the parameters of each case, by name. REPOSITORY is where the files find what they share.
"""

import functools
import importlib.util
import json
import os
import sys

CASES = json.loads(os.environ["CASES"])
# At the end: nothing of an environment may be hidden by it.
sys.path.append(os.environ["REPOSITORY"])


# Once per process, at its first call, which both tools leave out: asv's `setup` would build again for every sample, and
# each would be timed while TensorFlow still traces it.
@functools.lru_cache(maxsize=None)  # noqa: UP033 (functools.cache came after Python 3.7)
def built(name):
    path, params = CASES[name]
    spec = importlib.util.spec_from_file_location("workload", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tf = None
    if params.get("body") != "matmul":
        import tensorflow as tf
    return module.build(tf, params)


def timed(name):
    def call():
        built(name)()

    # asv goes by the names that functions have themselves.
    call.__name__ = call.__qualname__ = "time_" + name
    return call


globals().update({"time_" + name: timed(name) for name in CASES})


def main():
    import pyperf

    runner = pyperf.Runner()
    name = os.environ["CASE"]
    case = timed(name)
    if runner.parse_args().worker:
        case()  # pyperf would take the building for a slow call, and calibrate by it
    runner.bench_func(name, case)


if __name__ == "__main__":
    main()
