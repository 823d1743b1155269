"""A stand-in for TensorFlow: what the worker and compat ask of it, and nothing else.

A stub proves plumbing (forks, pipes, messages, files), not numerics: it computes nothing that TensorFlow computes.
"""

from pathlib import Path

VERSION = "2.13.0"

INIT = '''
import os
import time

import numpy
from types import SimpleNamespace as Namespace
from tensorflow.python.framework import func_graph

time.sleep(float(os.environ.get("STUB_IMPORT_S", "0")))
__version__ = "@VERSION@"
version = Namespace(GIT_VERSION="stub")
test = Namespace(is_built_with_cuda=lambda: False)
keras = Namespace(__version__="@VERSION@")
random = Namespace(set_seed=lambda seed: None)
# Of TensorFlow 1.
executing_eagerly = lambda: True
compat = Namespace(v1=Namespace(set_random_seed=lambda seed: None))


class Threading(object):
    """Pool sizes as set, 0 before that."""

    def __init__(self):
        self.inter = self.intra = 0

    def set_inter_op_parallelism_threads(self, count):
        self.inter = count

    def set_intra_op_parallelism_threads(self, count):
        self.intra = count

    def get_inter_op_parallelism_threads(self):
        return self.inter

    def get_intra_op_parallelism_threads(self):
        return self.intra


class Gpus(object):
    """As many as the environment says, asked anew each time."""

    def list_physical_devices(self, kind):
        return list(range(int(os.environ.get("STUB_GPUS", "0"))))

    def get_device_details(self, gpu):
        return {"device_name": "Tesla T4", "compute_capability": (7, 5)}

    def get_memory_info(self, device):
        return {"peak": int(os.environ.get("STUB_GPU_BYTES", 3 * 1024 * 1024))}


config = Namespace(experimental=Gpus(), threading=Threading())


class Tensor(object):
    def __init__(self, values):
        self.values = numpy.asarray(values)

    def numpy(self):
        return self.values


def constant(values):
    return Tensor(values)


def function(python_function):
    """Traces at its first call, as TensorFlow does, through the function that compat counts."""
    traced = []

    def call(*args):
        if not traced:
            traced.append(func_graph.func_graph_from_py_func("call", python_function, args, {}))
        return python_function(*args)

    return call
'''

FUNC_GRAPH = """
class FuncGraph(object):
    pass


def func_graph_from_py_func(name, python_function, args, kwargs, func_graph=None):
    return FuncGraph()
"""

# What a TensorFlow before 2.3 is asked for the names of its GPUs.
DEVICE_LIB = """
import os
from types import SimpleNamespace as Namespace

TEXT = "device: 0, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5"


def list_local_devices():
    count = int(os.environ.get("STUB_GPUS", "0"))
    return [Namespace(device_type="GPU", physical_device_desc=TEXT) for _ in range(count)]
"""


def write(folder: Path, version: str = VERSION) -> Path:
    """Writes the package `tensorflow` into `folder`, which is then what PYTHONPATH needs."""
    framework = folder / "tensorflow" / "python" / "framework"
    framework.mkdir(parents=True)
    (folder / "tensorflow" / "__init__.py").write_text(INIT.replace("@VERSION@", version))
    (folder / "tensorflow" / "python" / "__init__.py").touch()
    (framework / "__init__.py").touch()
    (framework / "func_graph.py").write_text(FUNC_GRAPH)
    client = folder / "tensorflow" / "python" / "client"
    client.mkdir()
    (client / "__init__.py").touch()
    (client / "device_lib.py").write_text(DEVICE_LIB)
    return folder
