"""Time the steps of Keras' `fit`, by a callback that is added to each call of it; stdlib only, Python 3.6 syntax.

Every Keras has `fit` in a module with one of a few names, and its callbacks next to it. The first step is timed from
the call of `fit`, and so includes tracing. Later steps of an epoch are timed from the end of one to the end of another,
and so leave out what happens between epochs.

A step may end when a GPU has only been given its operations. So the first step of an epoch, and the last, are timed until
the GPU has done them. The steps between are not: they are queued, as without the callback.
"""

import contextlib
import functools
import importlib
import inspect
import json
import os
import sys
import time

import tfcompare_imports

# Modules whose names end like this define `fit`. Their names without the last parts, as many as given, are those of the
# packages with the callbacks.
HOMES = {
    "keras.engine.training": 2,
    "keras.engine.training_v1": 2,
    "keras.src.engine.training": 2,
    "keras.src.engine.training_v1": 2,
    "keras.src.backend.tensorflow.trainer": 3,
    "keras.src.backend.jax.trainer": 3,
    "keras.src.backend.torch.trainer": 3,
}
MOST_LOSSES = 1000


class Record:
    """The steps of one process, over all its calls of `fit`."""

    def __init__(self, path):
        self.path, self.pid = path, os.getpid()
        self.first_step_ns = None
        self.later_s, self.later_steps = 0.0, 0
        self.losses = []
        # The end of the last step of this epoch, as a time and the number of its batch.
        self.begun_s = self.seen = None

    def begin_fit(self):
        self.begun_s = time.perf_counter()

    def begin_epoch(self):
        self.seen = None

    def end_step(self, batch):
        if self.seen is None:
            wait_for_gpus()
        now_s = time.perf_counter()
        if self.first_step_ns is None and self.begun_s is not None:
            self.first_step_ns = int((now_s - self.begun_s) * 1e9)
        elif self.seen is not None:
            # Some versions end several steps at once.
            self.later_s += now_s - self.seen[0]
            self.later_steps += max(batch - self.seen[1], 1)
        self.seen = now_s, batch

    def end_steps(self):
        """End the steps of an epoch, of which the GPU may still have some to do; validation may follow."""
        if self.seen is not None and wait_for_gpus() and self.later_steps:
            self.later_s += time.perf_counter() - self.seen[0]
        self.seen = None

    def end_epoch(self, loss):
        self.end_steps()
        with contextlib.suppress(TypeError, ValueError):
            self.losses.append(round(float(loss), 6))
        self.write()

    def write(self):
        # A fork of the program has a copy of this record, and must not write it.
        if os.getpid() != self.pid:
            return
        told = {"first_step_ns": self.first_step_ns or 0, "losses": self.losses[-MOST_LOSSES:]}
        if self.later_steps:
            told["step_ns"] = int(self.later_s / self.later_steps * 1e9)
        try:
            with open(self.path, "w") as file:
                json.dump(told, file)
        except OSError:
            pass


def wait_for_gpus():
    """Wait until the GPUs have done all that they were given; return whether there are any."""
    tf, gpus = sys.modules.get("tensorflow"), []
    with contextlib.suppress(Exception):
        # A session waits by itself.
        gpus = tf.config.experimental.list_logical_devices("GPU") if tf.executing_eagerly() else []
        for gpu in gpus:
            with tf.device(gpu.name):
                # The sum is queued after everything else, and is read back.
                (tf.constant(0.0) + 1.0).numpy()
    return bool(gpus)


def make_callback(base, record):
    class StepTimes(base):
        # The results of a step need not be copied to the host for this callback.
        _supports_tf_logs = async_safe = True

        def on_epoch_begin(self, epoch, logs=None):
            record.begin_epoch()

        def on_test_begin(self, logs=None):
            record.end_steps()

        # Every Keras calls this for a step of training.
        def on_batch_end(self, batch, logs=None):
            record.end_step(batch)
            # What follows the last step, such as the start of validation, is not part of it.
            if batch + 1 == (getattr(self, "params", None) or {}).get("steps"):
                record.end_steps()

        def on_epoch_end(self, epoch, logs=None):
            record.end_epoch((logs or {}).get("loss"))

    return StepTimes()


def wrap(fit, package, record):
    place = list(inspect.signature(fit).parameters).index("callbacks")

    @functools.wraps(fit)
    def timed(*args, **kwargs):
        given = args[place] if len(args) > place else kwargs.get("callbacks")
        # Keras takes a list, one callback, nothing, or its own container of callbacks.
        present = getattr(given, "callbacks", None)
        if present is None:
            present = list(given) if isinstance(given, (list, tuple)) else [given] if given else []
        if any(type(each).__name__ == "StepTimes" for each in present):
            # This `fit` was called by another one, which has added the callback.
            return fit(*args, **kwargs)
        own = make_callback(importlib.import_module(package + ".callbacks").Callback, record)
        if hasattr(given, "callbacks"):
            given.append(own)
        elif len(args) > place:
            args = args[:place] + ([own] + present,) + args[place + 1 :]
        else:
            # It comes first, since others may save a model at the end of an epoch.
            kwargs["callbacks"] = [own] + present
        record.begin_fit()
        return fit(*args, **kwargs)

    return timed


def find_home(name):
    return next((home for home in HOMES if name == home or name.endswith(("." + home, "_" + home))), None)


def wrap_all(module, record):
    package = module.__name__.rsplit(".", HOMES[find_home(module.__name__)])[0]
    for kind in list(vars(module).values()):
        if not inspect.isclass(kind) or kind.__module__ != module.__name__:
            continue
        for name in ("fit", "fit_generator"):
            fit = vars(kind).get(name)
            if inspect.isfunction(fit) and "callbacks" in inspect.signature(fit).parameters:
                setattr(kind, name, wrap(fit, package, record))


def watch(path):
    record = Record(path)
    tfcompare_imports.act_after_import(find_home, lambda module: wrap_all(module, record))
