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
from tensorflow.python import pywrap_tfe
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

    def list_logical_devices(self, kind):
        return [Namespace(name="/device:GPU:%d" % number) for number in self.list_physical_devices(kind)]

    def get_device_details(self, gpu):
        return {"device_name": "Tesla T4", "compute_capability": (7, 5)}

    def get_memory_info(self, device):
        return {"peak": int(os.environ.get("STUB_GPU_BYTES", 3 * 1024 * 1024))}


config = Namespace(experimental=Gpus(), threading=Threading())


class Queue(object):
    """What a GPU still has to do: it takes time, and only those who read a tensor wait for it."""

    done_at = 0.0

    def launch(self, seconds):
        self.done_at = max(self.done_at, time.perf_counter()) + seconds

    def wait(self):
        time.sleep(max(0.0, self.done_at - time.perf_counter()))


queue = Queue()


class device(object):
    def __init__(self, name):
        assert name.startswith("/device:GPU:"), name

    def __enter__(self):
        pass

    def __exit__(self, *raised):
        pass


class Tensor(object):
    def __init__(self, values):
        self.values = numpy.asarray(values)

    def __add__(self, other):
        return Tensor(self.values + other)

    def numpy(self):
        queue.wait()
        return self.values


def sin(values):
    return Tensor(pywrap_tfe.TFE_Py_FastPathExecute(None, "Sin", None, values))


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

# What runs operations. A function has its name in `FUNCTIONS`, and runs nothing here.
PYWRAP_TFE = """
def TFE_Py_FastPathExecute(context, operation, name, *inputs):
    return inputs


def TFE_Py_Execute(handle, device, operation, inputs, attributes, outputs):
    return inputs
"""
EXECUTE = "from tensorflow.python import pywrap_tfe"
CONTEXT = """
FUNCTIONS = {}


class Context(object):
    def has_function(self, name):
        return name in FUNCTIONS

    def get_function_def(self, name):
        return FUNCTIONS[name]


def context():
    return Context()
"""
OP_DEF_REGISTRY = """
from types import SimpleNamespace as Namespace


def get(operation):
    return Namespace(is_stateful=False) if operation == "Sin" else None
"""
# The name of an operation stands for the operation.
SESSION = """
from types import SimpleNamespace as Namespace

tf_session = Namespace(TF_OperationName=lambda operation: operation)


class BaseSession(object):
    def __init__(self, graph):
        self.graph = graph

    def _call_tf_sessionrun(self, options, feeds, fetches, targets, metadata):
        return targets

    def _call_tf_sessionprun(self, handle, feeds, fetches):
        return fetches

    def _make_callable_from_options(self, options):
        return BaseSession._Callable(self)

    class _Callable(object):
        def __init__(self, session):
            self._session = session

        def __call__(self, *arrays):
            return arrays
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

# An iterator gets what a dataset prepares. Versions before 2.5 have other names.
DATASET_OPS = """
import os
from types import SimpleNamespace as Namespace


class Options(object):
    def __init__(self):
        self.autotune = Namespace(enabled=None)


class DatasetV2(object):
    def __init__(self, options=None):
        self._options_attr = options or Options()

    def with_options(self, options):
        return DatasetV2(options)

    def _apply_debug_options(self):
        return self


class DatasetV1Adapter(DatasetV2):
    def __init__(self, dataset):
        DatasetV2.__init__(self)
        self._dataset = dataset


class OldOptions(object):
    def __init__(self):
        if os.environ["STUB_OLD_DATASETS"] == "1.13":
            self.experimental_autotune = None
        else:
            self.experimental_optimization = Namespace(autotune=None)


class OldDatasetV2(object):
    def __init__(self, options=None):
        self._options = options or OldOptions()

    def options(self):
        return self._options

    def with_options(self, options):
        return OldDatasetV2(options)

    def _apply_options(self):
        return self


if os.environ.get("STUB_OLD_DATASETS"):
    Options, DatasetV2 = OldOptions, OldDatasetV2
"""


MODULES = {
    "client/device_lib": DEVICE_LIB,
    "client/session": SESSION,
    "data/ops/dataset_ops": DATASET_OPS,
    "eager/context": CONTEXT,
    "eager/execute": EXECUTE,
    "framework/func_graph": FUNC_GRAPH,
    "framework/op_def_registry": OP_DEF_REGISTRY,
    "pywrap_tfe": PYWRAP_TFE,
}


def write(folder: Path, version: str = VERSION) -> Path:
    """Writes the package `tensorflow` into `folder`, which is then what PYTHONPATH needs."""
    inside = folder / "tensorflow" / "python"
    for name, source in MODULES.items():
        module = inside / f"{name}.py"
        module.parent.mkdir(parents=True, exist_ok=True)
        for package in module.relative_to(inside).parents:
            (inside / package / "__init__.py").touch()
        module.write_text(source)
    (inside.parent / "__init__.py").write_text(INIT.replace("@VERSION@", version))
    return folder
