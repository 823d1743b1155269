"""The formats of saved models: how each is written and read, and in which versions it does not exist."""

import os
import tempfile

import numpy

from workloads import compat
from workloads.saving.models import draw

# What a format adds to the name of a model; folders have no ending.
SUFFIXES = {"keras": ".keras", "h5": ".h5", "savedmodel": "", "weights": ".weights.h5", "export": ""}
SERVED = "served"
# A derived input has this many rows, and this many entries where a model leaves a size open.
ROWS, OPEN = 3, 5


def refuse_saving(tf, kind):
    """Return why this version does not write the format, or None."""
    keras = compat.keras_version(tf)
    if kind == "keras" and keras < (2, 12):
        return "Keras writes .keras files from 2.12 on; before, a file of that name was HDF5."
    if kind == "savedmodel" and keras >= (3,):
        return "Keras 3 writes no SavedModel with save; the format export writes one."
    if kind == "export" and keras < (2, 13):
        return "Keras has model.export from 2.13 on; the format savedmodel can be served as well."
    return None


def refuse_loading(tf, kind):
    """Return why this version does not read the format, or None."""
    keras = compat.keras_version(tf)
    if kind == "keras" and keras < (2, 12):
        return "Keras reads .keras files from 2.12 on."
    if kind == "savedmodel" and keras >= (3,):
        return "Keras 3 reads no SavedModel with load_model; tf.saved_model.load and keras.layers.TFSMLayer do."
    if kind in (SERVED, "export") and compat.version(tf) < (2,):
        return "TensorFlow 1 has no tf.saved_model.load."
    return None


def save(model, path, kind):
    if kind == "weights":
        model.save_weights(path)
    elif kind == "export":
        model.export(path)
    elif kind == "savedmodel":
        model.save(path, save_format="tf")
    else:
        model.save(path)


def load(tf, path, kind, custom_objects, build):
    """Return what is loaded: a model or, of a format that is served, a function; `build` makes what takes weights."""
    if kind in (SERVED, "export"):
        return Served(tf, path)
    with tempfile.TemporaryDirectory() as private:
        if os.path.isfile(path):
            # Keras unpacks it into the same folder and then cleans up, which breaks other processes that load the file.
            link = os.path.join(private, os.path.basename(path))
            os.symlink(os.path.abspath(path), link)
            path = link
        if kind == "weights":
            model = build()
            model.load_weights(path)
            return model
        return tf.keras.models.load_model(path, custom_objects=custom_objects)


class Served:
    """A SavedModel as a server calls it, without Keras."""

    def __init__(self, tf, path):
        self.tf = tf
        # The functions need what was loaded.
        self.loaded = tf.saved_model.load(path)
        signatures = self.loaded.signatures
        if "serving_default" not in signatures:
            raise LookupError("the SavedModel has no signature serving_default")
        self.function = signatures["serving_default"]
        self.specs = self.function.structured_input_signature[1]

    def __call__(self, inputs):
        outputs = self.function(**self._bind(inputs))
        values = [outputs[name] for name in sorted(outputs)]
        return values[0] if len(values) == 1 else values

    def _bind(self, inputs):
        """Return the arguments: by name or else, since names change when a model is saved, the next that fits."""
        if isinstance(inputs, dict) and set(inputs) == set(self.specs):
            return {name: self._cast(inputs[name], spec) for name, spec in self.specs.items()}
        waiting, bound = flatten(inputs), {}
        for name in sorted(self.specs):
            spec = self.specs[name]
            place = next((i for i, each in enumerate(waiting) if _fits(each, spec)), None)
            if place is None:
                raise LookupError(f"no input fits the argument {name}: {spec.dtype.name}{spec.shape}")
            bound[name] = self._cast(waiting.pop(place), spec)
        return bound

    def _cast(self, array, spec):
        return self.tf.constant(array, dtype=spec.dtype)


def _fits(array, spec):
    kinds = "SUO" if spec.dtype.name == "string" else "iu" if spec.dtype.is_integer else "f"
    return array.dtype.kind in kinds and spec.shape.is_compatible_with(array.shape)


def flatten(nest):
    """Return the arrays of a nest; those of a dict in the order of its keys."""
    if isinstance(nest, dict):
        return [each for key in sorted(nest) for each in flatten(nest[key])]
    if isinstance(nest, (list, tuple)):
        return [each for inner in nest for each in flatten(inner)]
    return [numpy.asarray(nest)]


def derive_inputs(tf, model):
    """Return inputs that fit what a model or a signature declares; equal shapes get equal values in every version."""
    if isinstance(model, Served):
        return {name: _derive(spec) for name, spec in model.specs.items()}
    declared = getattr(model, "inputs", None)
    if not declared:
        raise compat.Refused("The model does not say what its inputs are: define inputs(tf) in the file of --model.")
    derived = [_derive(each) for each in declared]
    # This has had two names, and a tensor is neither true nor false.
    given = getattr(model, "_nested_inputs", getattr(model, "_inputs_struct", None))
    if isinstance(given, dict):
        keys = sorted(given, key=lambda key: _find_place(declared, given[key]))
        return dict(zip(keys, derived))
    return derived[0] if len(derived) == 1 else derived


def _find_place(declared, tensor):
    return next((i for i, each in enumerate(declared) if each is tensor), len(declared))


def _derive(spec):
    sizes = [size if isinstance(size, int) else getattr(size, "value", None) for size in spec.shape]
    shape = tuple(ROWS if place == 0 else size or OPEN for place, size in enumerate(sizes))
    dtype = getattr(spec.dtype, "name", None) or str(spec.dtype)
    if dtype == "string":
        return numpy.full(shape, "a")
    if "int" in dtype or dtype == "bool":
        return (numpy.arange(int(numpy.prod(shape))) % 2).reshape(shape).astype(dtype)
    values = draw(shape, 1)
    return values if dtype in ("bfloat16", "float8") else values.astype(dtype)


def find_path(folder, name, kind):
    """Return the path of a model; what is served was saved as a SavedModel."""
    return os.path.join(folder, name + SUFFIXES["savedmodel" if kind == SERVED else kind])
