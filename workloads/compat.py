"""What differs between TensorFlow versions: the only file that asks which TensorFlow this is.

Every function takes the imported `tensorflow` module. Unless it says so, a function touches no op, device or
session, so it may also run in a process that is going to fork.
"""

import contextlib
import inspect
import os
import random
import re

import numpy

from workloads import operations
from workloads.program_site import tfcompare_tuning

EAGER = "eager"
GRAPH = "graph"

KERAS_3_GRAPH = "Keras 3 has no graph mode: its loops iterate over datasets in Python, which only eager execution can."

# These series of standalone keras are a separate implementation.
STANDALONE = ("2.0.", "2.1.", "2.2.", "2.3.")

_seed = None


class Refused(Exception):
    """The workload cannot run here; the message is the reason. Raising it means the same as returning the reason."""


# ---------------------------------------------------------------------------------------------- which version


def version(tf):
    """(major, minor, patch); what follows the numbers (-rc1, .dev, +local) is left out."""
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", tf.__version__)
    if found is None:
        raise ValueError(f"not a TensorFlow version: {tf.__version__!r}")
    return tuple(int(part or 0) for part in found.groups())


def describe(tf, device="cpu"):
    """Return plain facts about this TensorFlow on a device, for the record."""
    return {
        "tensorflow": tf.__version__,
        "tensorflow_git": tf.version.GIT_VERSION,
        "tf_keras": _tf_keras_version(tf),
        "keras": _installed("keras"),
        "is_cuda_build": bool(tf.test.is_built_with_cuda()),
        "numpy": numpy.__version__,
        "onednn": _uses_onednn(),
        "tf32": _uses_tf32(tf),
        "xla": _keras_xla(tf) if device == "gpu" else None,
    }


def _uses_onednn():
    """Return whether oneDNN computes the operations that it has, or None if TensorFlow does not say."""
    try:
        try:
            from tensorflow.python.util import _pywrap_util_port as port
        except ImportError:  # before 2.2
            from tensorflow.python import pywrap_tensorflow as port
        return bool(port.IsMklEnabled())
    except (ImportError, AttributeError):
        return None


def _uses_tf32(tf):
    """Return whether a GPU may multiply float32 with fewer digits, or None if this version has no such switch."""
    try:
        return bool(tf.config.experimental.tensor_float_32_execution_enabled())
    except AttributeError:
        return None


def _keras_xla(tf):
    """Return what Keras compiles with XLA by default if TensorFlow has a GPU."""
    if keras_is_3(tf):
        return "fit and predict"
    return "optimizers" if version(tf) >= (2, 11) else "off"


def keras_is_3(tf):
    """True where `tf.keras` is Keras 3; TensorFlow itself reads the same environment variable."""
    legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("true", "1")
    return version(tf) >= (2, 16) and not legacy


def keras_version(tf):
    """(major, minor) of `tf.keras`."""
    return tuple(int(part) for part in _tf_keras_version(tf).split("-")[0].split(".")[:2])


def _tf_keras_version(tf):
    # tf.keras is a separate package from 2.6 on, and does not always export its version.
    package = "keras" if version(tf) < (2, 16) or keras_is_3(tf) else "tf_keras"
    return getattr(tf.keras, "__version__", None) or _installed(package)


def _installed(distribution):
    """Return the installed version, without importing the package: standalone keras makes files when imported."""
    try:
        from importlib.metadata import PackageNotFoundError, version as installed  # novm
    except ImportError:  # Python 3.6 and 3.7
        try:
            from pkg_resources import DistributionNotFound as PackageNotFoundError, get_distribution
        except ImportError:
            return None

        def installed(name):
            return get_distribution(name).version

    try:
        return installed(distribution)
    except PackageNotFoundError:
        return None


# ------------------------------------------------------------------------------------------------------ modes


def mode_refusal(tf, mode):
    """Why `mode` does not exist here, or None."""
    if mode not in (EAGER, GRAPH):
        raise ValueError(f"a mode is {EAGER} or {GRAPH}, not {mode!r}")
    if mode == GRAPH and keras_is_3(tf):
        return KERAS_3_GRAPH
    return None


def use_mode(tf, mode):
    """Switch this process to a mode; before the first op, because TensorFlow refuses it later."""
    reason = mode_refusal(tf, mode)
    if reason:
        raise Refused(reason)
    if version(tf) < (2,):
        if mode == EAGER:
            _forget_context(tf)
            tf.compat.v1.enable_eager_execution()
    elif mode == GRAPH:
        tf.compat.v1.disable_eager_execution()
    if _seed is not None:  # The seed of one mode is unknown to the other.
        seed(tf, _seed)


def _forget_context(tf):
    # TensorFlow 1.13 makes a context when anything, also TensorFlow itself, asks whether execution is eager. A context
    # prevents enabling eager execution, so this one, which nothing has used yet, is dropped.
    from tensorflow.python.eager import context

    if version(tf) < (1, 14) and not tf.executing_eagerly():
        context._context = None


def direct_call_refusal(tf):
    """Why `model(x)` computes nothing in the mode this TensorFlow starts in, or None."""
    if version(tf) < (2,):
        return "model(x) only adds nodes to the graph in TensorFlow 1's own graph mode: there is no result to time."
    return None


def seed(tf, n):
    """Seed Python, numpy and TensorFlow; before or after `use_mode`."""
    global _seed
    _seed = n
    random.seed(n)
    numpy.random.seed(n)
    if version(tf) >= (2,):
        tf.random.set_seed(n)
    elif tf.executing_eagerly():
        tf.compat.v1.set_random_seed(n)
    else:
        _seed_default_graph_when_made(n)


def _seed_default_graph_when_made(n):
    # TensorFlow 1 keeps the seed in the default graph, asking for that graph makes it, and once it exists
    # eager execution can no longer be enabled.
    from tensorflow.python.framework import ops

    stack = ops._default_graph_stack
    make = type(stack)._GetGlobalDefaultGraph

    def make_seeded():
        graph = make(stack)
        if graph.seed is None:
            graph.seed = n
        return graph

    stack._GetGlobalDefaultGraph = make_seeded
    if stack._global_default_graph is not None:
        stack._global_default_graph.seed = n


# ------------------------------------------------------------------------------------------------------ Keras


def keras_refusal(tf, api, mode):
    """Why Keras `api` (tf.keras or keras) cannot run in `mode` here, or None."""
    if api not in ("tf.keras", "keras"):
        raise ValueError(f"an api is tf.keras or keras, not {api!r}")
    if api == "keras":
        if (2, 6) <= version(tf) < (2, 16) or keras_is_3(tf):
            return "keras is the same package as tf.keras from TensorFlow 2.6 on: there is nothing to compare."
        installed = _installed("keras")
        if installed is None:
            return "Standalone keras is not installed next to this TensorFlow."
        if installed.startswith("3."):  # next to a legacy tf.keras
            return KERAS_3_GRAPH if mode == GRAPH else None
        if not installed.startswith(STANDALONE):
            return f"keras {installed} only forwards to tf.keras: there is nothing to compare."
        if mode == EAGER and version(tf) < (2,):
            return f"Standalone keras {installed} is made of placeholders, which do not exist in eager mode."
    return mode_refusal(tf, mode)


def dataset_refusal(tf, api):
    """Why `fit` of Keras `api` takes no tf.data dataset here, or None; ask `keras_refusal` first."""
    installed = _installed("keras") if api == "keras" else None
    if installed and installed.startswith(STANDALONE):
        return f"Standalone keras {installed} takes arrays and generators, no tf.data datasets."
    return None


def keras(tf, api):
    """The Keras module behind an api; ask `keras_refusal` first."""
    if api == "tf.keras":
        return tf.keras
    import keras as standalone

    return standalone


def keras_of(tf):
    """The Keras of a workload that has `build(keras, params)`: Keras 3 itself, or else `tf.keras`."""
    return keras(tf, "keras" if keras_is_3(tf) else "tf.keras")


def adam(keras, learning_rate, mode):
    """An Adam that works in `mode`: from 2.11 on only the legacy one can be used in graph mode."""
    adam_class = keras.optimizers.Adam
    legacy = getattr(keras.optimizers, "legacy", None)
    if mode == GRAPH and hasattr(legacy, "Adam"):
        adam_class = legacy.Adam
    if "learning_rate" in inspect.signature(adam_class.__init__).parameters:
        return adam_class(learning_rate=learning_rate)
    return adam_class(lr=learning_rate)  # standalone keras before 2.3


# Dropout at this rate costs as much as at any other, but drops next to nothing. Versions draw what to drop in different
# ways, so losses could not be compared otherwise. Keras leaves out a layer with the rate 0.
KEEP_ALL = 1e-9


def fix_weights(model, n):
    """Give a model the same weights in every version: initialisers draw different numbers from the same seed.

    Vectors (biases, scales) stay as the layers made them. Runs ops.
    """
    draw = numpy.random.RandomState(n)
    weights = []
    for weight in model.get_weights():
        if weight.ndim >= 2:
            receptive = int(numpy.prod(weight.shape[:-2]))
            limit = numpy.sqrt(6.0 / (receptive * (weight.shape[-2] + weight.shape[-1])))
            weight = draw.uniform(-limit, limit, weight.shape).astype(weight.dtype)
        weights.append(weight)
    model.set_weights(weights)


def model_input(tf, array):
    """`array` as a model takes it when it is called: those of TensorFlow 1 do not cast to their own dtype."""
    return array.astype(tf.keras.backend.floatx()) if version(tf) < (2,) else array


def legacy_optimizer_refusal(tf, name):
    """Why there is no `optimizers.legacy.NAME` here, or None."""
    if keras_is_3(tf):
        return "Keras 3 has no legacy optimizers."
    if not hasattr(getattr(tf.keras.optimizers, "legacy", None), name):
        return f"Keras has no legacy optimizers before TensorFlow 2.9: {name} has one implementation."
    return None


def set_precision(tf, policy):
    """Make a mixed precision policy, or float32, the global one of Keras; before layers are made."""
    precision = getattr(tf.keras, "mixed_precision", None)
    if hasattr(precision, "set_global_policy"):
        precision.set_global_policy(policy)
    elif version(tf) >= (2, 1):
        precision.experimental.set_policy(policy)
    elif policy != "float32":
        raise Refused(f"Keras cannot train with {policy} before TensorFlow 2.1.")


def compile_jit(model, jit):
    """The arguments that make `model.compile` use XLA, or not; Keras 3 would else decide by itself."""
    if "jit_compile" in inspect.signature(model.compile).parameters:
        return {"jit_compile": jit}
    if jit:
        raise Refused("model.compile of this Keras has no jit_compile.")
    return {}


# --------------------------------------------------------------------------------------------------- functions


def jit_refusal(tf):
    """Why tf.function cannot be compiled here, or None."""
    if version(tf) < (2, 1):
        return "tf.function has no jit switch before TensorFlow 2.1."
    return None


def integer_jit_refusal(tf):
    """Why a function that multiplies matrices of integers cannot be compiled here, or None."""
    if version(tf) < (2, 5):
        return jit_refusal(tf) or "XLA multiplies no matrices of integers before TensorFlow 2.5."
    return None


def function(tf, fn, jit=None):
    """tf.function(fn); jit None leaves the switch alone, True and False set it."""
    if not hasattr(tf, "function"):
        raise Refused("tf.function does not exist before TensorFlow 1.14.")
    if jit is None:
        return tf.function(fn)
    if version(tf) >= (2, 5):
        return tf.function(fn, jit_compile=jit)
    reason = jit_refusal(tf)
    if not reason:
        return tf.function(fn, experimental_compile=jit)
    if jit:
        raise Refused(reason)
    return tf.function(fn)


def run_functions_eagerly(tf, eagerly):
    """Make every tf.function run as Python, or as a graph again; the setting has had two names."""
    for name in ("run_functions_eagerly", "experimental_run_functions_eagerly"):
        if hasattr(tf.config, name):
            getattr(tf.config, name)(eagerly)
            return
    raise Refused("This TensorFlow has no tf.config.run_functions_eagerly.")


class Traces:
    """The number of Python functions that this process has traced into a graph; `count` grows with each of them."""

    def __init__(self):
        self.count = 0


def count_traces(tf):
    """Start counting traces.

    A trace inside another is part of the outer one. A branch or a loop body is part of the graph it is in, which in
    graph mode was not traced.
    """
    from tensorflow.python.framework import func_graph

    traces = Traces()
    trace = func_graph.func_graph_from_py_func
    depth = [0]

    def counting(*args, **kwargs):
        # Branches and loop bodies come with a graph of another class.
        traces.count += not depth[0] and type(kwargs.get("func_graph")) in (type(None), func_graph.FuncGraph)
        depth[0] += 1
        try:
            return trace(*args, **kwargs)
        finally:
            depth[0] -= 1

    # Every caller in TensorFlow looks the function up in its module.
    func_graph.func_graph_from_py_func = counting
    return traces


def find_operations(tf):
    """Return what counts the operations that this TensorFlow runs, or None if it does not have all that this takes."""
    try:
        return operations.Operations()
    except (ImportError, AttributeError, KeyError):
        return None


def leave_untuned(tf):
    """Switch off the tuning of datasets, except of those whose own options set it."""
    from tensorflow.python.data.ops import dataset_ops

    tfcompare_tuning.leave_untuned(dataset_ops)


# ----------------------------------------------------------------------------------------------------- devices


def gpus(tf):
    """Return the name and compute capability of each GPU that TensorFlow sees, each "" if it does not say.

    This touches the devices, so it is only for a process that will not fork.
    """
    if version(tf) >= (1, 14):
        found = tf.config.experimental.list_physical_devices("GPU")
        if not found or version(tf) >= (2, 3):
            return [_told(tf.config.experimental.get_device_details(gpu)) for gpu in found]
    from tensorflow.python.client import device_lib

    return [_described(d.physical_device_desc) for d in device_lib.list_local_devices() if d.device_type == "GPU"]


def count_gpus(tf):
    """How many GPUs TensorFlow uses in this process; what it finds at first, it keeps."""
    if version(tf) >= (1, 14):
        return len(tf.config.experimental.list_physical_devices("GPU"))
    return len(gpus(tf))


def wait_for_gpus(tf):
    """Wait until the GPUs have done all that they were given.

    A step that returns no tensor may end while its last operations are still queued. In graph mode, a session waits.
    """
    if version(tf) >= (1, 14) and tf.executing_eagerly():
        for gpu in tf.config.experimental.list_logical_devices("GPU"):
            with tf.device(gpu.name):
                # The sum is queued after everything else, and is read back.
                (tf.constant(0.0) + 1.0).numpy()


def gpu_memory_kb(tf):
    """The most memory of the first GPU that tensors have taken in this process, or None where TensorFlow does not tell."""
    try:
        return tf.config.experimental.get_memory_info("GPU:0")["peak"] // 1024
    except (AttributeError, ValueError, KeyError, RuntimeError):  # before 2.5, or without a GPU
        return None


def _told(details):
    capability = details.get("compute_capability") or ()
    return {"name": details.get("device_name", ""), "capability": ".".join(str(part) for part in capability)}


def _described(text):
    """Parse a sentence such as "device: 0, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5"."""
    parts = dict(part.split(": ", 1) for part in text.split(", ") if ": " in part)
    return {"name": parts.get("name", ""), "capability": parts.get("compute capability", "")}


def grow_memory(tf):
    """Let TensorFlow take GPU memory as it is needed; this is harmless without a GPU.

    TensorFlow reads these variables when it makes its devices, whatever the version and mode; a session config would
    have to be passed to every session.
    """
    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"


def set_threads(tf, inter, intra):
    """Size both thread pools, in the same way and for the same reason as `grow_memory`."""
    os.environ["TF_NUM_INTEROP_THREADS"] = str(inter)
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(intra)
    with contextlib.suppress(RuntimeError):
        # Eager contexts have their own setting; it is fixed once a workload has used TensorFlow at import.
        tf.config.threading.set_inter_op_parallelism_threads(inter)
        tf.config.threading.set_intra_op_parallelism_threads(intra)


def threads(tf):
    """Return the inter-op and intra-op threads as TensorFlow has them: 0 where it chooses, nothing before 1.14."""
    if version(tf) < (1, 14):
        return []
    threading = tf.config.threading
    return [threading.get_inter_op_parallelism_threads(), threading.get_intra_op_parallelism_threads()]
