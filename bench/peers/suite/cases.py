"""The cases as asv and pyperf want them: both time the steps that the workload file named by WORKLOAD builds, which is
the file that tfcompare measures. It runs inside the versions' environments, on Python 3.7 too.
"""

import functools
import importlib.util
import os


# Once a process, at its first call, which both tools leave out: asv's `setup` would build anew for every sample, and
# each would be timed while TensorFlow still traces it.
@functools.lru_cache(maxsize=None)  # noqa: UP033 (functools.cache came after Python 3.7)
def built(body):
    spec = importlib.util.spec_from_file_location("workload", os.environ["WORKLOAD"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tf = None
    if body != "matmul":
        import tensorflow as tf
    return module.build(tf, {"body": body})


def time_matmul():
    built("matmul")()


def time_train():
    built("train")()


def main():
    import pyperf

    runner = pyperf.Runner()
    name = os.environ["CASE"]
    case = {"matmul": time_matmul, "train": time_train}[name]
    if runner.parse_args().worker:
        case()  # pyperf would take the building for a slow call, and calibrate by it
    runner.bench_func(name, case)


if __name__ == "__main__":
    main()
