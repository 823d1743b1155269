"""Keras without TensorFlow: what a worker asks of another backend, by the names that compat.py has for TensorFlow.

Every function takes the `Backend` that stands where the imported `tensorflow` would. Only builds for CPUs are known.
"""

import os
import random

import numpy

from workloads.compat import Refused

TENSORFLOW = "tensorflow"
# A workload that touches TensorFlow is refused in these words.
WITHOUT = "this target computes with {name}, without TensorFlow: a workload for it has build(keras, params)"


def chosen():
    """Return the name of the backend that this process has to compute with."""
    return os.environ.get("KERAS_BACKEND", TENSORFLOW)


class Backend:
    """What a workload gets instead of the module `tensorflow`: touching anything of it refuses the workload."""

    def __init__(self, name, keras):
        # A workload may look at any attribute, so these are not found by usual ways.
        object.__setattr__(self, "_known", (name, keras))

    def __getattribute__(self, name):
        if name in ("_known", "__class__"):
            return object.__getattribute__(self, name)
        if name.startswith("__") and name.endswith("__") and name != "__version__":
            return object.__getattribute__(self, name)
        raise Refused(WITHOUT.format(name=object.__getattribute__(self, "_known")[0]))


def load():
    """Import Keras with the chosen backend."""
    import keras

    name = keras.backend.backend()
    if name != chosen():
        raise ImportError(f"Keras computes with {name}, and not with {chosen()}")
    return Backend(name, keras)


def leave_untuned(backend):
    """Keras computes without TensorFlow, so no dataset of it is tuned; its `Backend` knows no datasets."""


def keras_of(backend):
    return backend._known[1]


def describe(backend, device="cpu"):
    """Return plain facts about this Keras, for the record."""
    name, keras = backend._known
    return {
        "backend": name,
        "tf_keras": keras.__version__,
        "keras": keras.__version__,
        "numpy": numpy.__version__,
    }


def seed(backend, n):
    random.seed(n)
    keras_of(backend).utils.set_random_seed(n)


def set_threads(backend, inter, intra):
    if backend._known[0] != "torch":
        raise Refused(f"{backend._known[0]} has no setting for its threads: leave --threads out")
    import torch

    torch.set_num_interop_threads(inter)
    torch.set_num_threads(intra)


def threads(backend):
    """Return the threads between and in operations, as far as the backend tells."""
    if backend._known[0] != "torch":
        return []
    import torch

    return [torch.get_num_interop_threads(), torch.get_num_threads()]


def count_traces(backend):
    """No other backend says what it traces."""


def find_operations(backend):
    """Only TensorFlow says which operations it runs."""


def grow_memory(backend):
    """A build for CPUs has no GPU memory."""


def gpus(backend):
    return []


def count_gpus(backend):
    return 0


def wait_for_gpus(backend):
    """A build for CPUs has no GPU to wait for."""


def gpu_memory_kb(backend):
    """A build for CPUs has no GPU memory."""
