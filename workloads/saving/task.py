"""Saves or loads the models that the host names, one after another, and writes an answer for each.

The answers are files in the worker's results folder, because a line of the protocol has a limit, and because the
answers before a crash say which model crashed.
"""

import contextlib
import importlib.util
import json
import os
import re
import sys
import time
import traceback
import zipfile

from workloads import backends, compat, contract, values
from workloads.saving import formats
from workloads.saving.models import MODELS, Model
from workloads.sketches import sketch

# Both ends of a long message matter: the beginning has what failed, and the end often why.
MOST_LETTERS = 20000
# The weights of a model that is saved, and of one that takes saved weights, must differ.
SAVED, LOADED = 1, 2
STEPS = 3
# Keras says this of a class or function that it cannot find. It also says it of those of other releases of Keras, and
# these are no custom objects.
UNKNOWN = re.compile(
    r"(?:Unknown(?: \w+)+: |Could not locate \w+ |Could not deserialize \w+ (?=\S+ because its parent module))'?(\w+)'?"
)
INTERNAL = ("Functional",)
# Keras 2.13 says only this.
NAMELESS = "'str' object is not callable"
OF_KERAS = ("activations", "initializers", "layers", "losses", "metrics", "models", "optimizers", "regularizers")


class UserModel(Model):
    """The model of a user's file, whose functions take the place of those here."""

    def __init__(self, module):
        for name in ("build", "inputs", "custom_objects"):
            if hasattr(module, name):
                setattr(self, name, getattr(module, name))

    def build(self, tf):
        raise compat.Refused("These are weights alone: name the file that builds the model with --model.")

    def inputs(self, tf):
        return None


def work(tf, params, here):
    """Handle the models of one order; `here` is the folder that the host gives this version to read."""
    if isinstance(tf, backends.Backend):
        raise compat.Refused("Models are saved and loaded with TensorFlow below Keras.")
    into = os.path.join(os.environ[contract.RESULTS], params["into"])
    os.makedirs(into)
    defined = _read_code(here, params["code"]) if params["code"] != "builtin" else None
    do = _save if params["do"] == "save" else _load
    for name in params["models"].split("+"):
        tf.keras.backend.clear_session()
        answer = {"outcome": "done", "stage": "", "kind": "", "message": "", "custom": "", "seconds": 0.0}
        answer.update(output="", after="", path="")
        try:
            model = MODELS[name] if defined is None else defined
            do(tf, model, name, params, into if do is _save else os.path.join(here, params["from"]), answer)
        except compat.Refused as refused:
            answer.update(outcome="refused", message=_shorten(str(refused)))
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            answer.update(outcome="raised", kind=type(error).__name__, message=_shorten(str(error)))
            answer.update(custom=_find_custom(tf, str(error), answer["path"]))
        del answer["path"]
        with open(os.path.join(into, name + ".json"), "w") as file:
            json.dump(answer, file)


def build_load(tf, params, here):
    """Return a step that loads one model, to be timed."""
    kind, name = params["format"], params["model"]
    reason = formats.refuse_loading(tf, kind)
    if reason:
        raise compat.Refused(reason)
    defined = MODELS[name] if name in MODELS else _read_code(here, params["code"])
    path = formats.find_path(os.path.join(here, kind), name, kind)
    objects = defined.custom_objects(tf)

    def step():
        tf.keras.backend.clear_session()
        formats.load(tf, path, kind, objects, lambda: _build(tf, defined, LOADED)[0])

    step.no_result = "loading a model returns nothing that has a value"
    return step


def _read_code(here, code):
    if not code:
        return UserModel(None)
    path = os.path.join(here, code)
    # The file may import its neighbours.
    sys.path.append(os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("tfcompare_user_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return UserModel(module)


def _save(tf, defined, name, params, folder, answer):
    reason = formats.refuse_saving(tf, params["format"])
    if reason:
        raise compat.Refused(reason)
    model, inputs = _build(tf, defined, SAVED)
    targets = defined.targets(tf)
    for _ in range(STEPS if targets is not None else 0):
        model.train_on_batch(inputs, targets)
    begun = time.perf_counter()
    formats.save(model, formats.find_path(folder, name, params["format"]), params["format"])
    answer["seconds"] = time.perf_counter() - begun
    _describe(tf, model, inputs, targets, answer)


def _load(tf, defined, name, params, folder, answer):
    kind = params["format"]
    reason = formats.refuse_loading(tf, kind)
    if reason:
        raise compat.Refused(reason)
    path, objects = formats.find_path(folder, name, kind), defined.custom_objects(tf)
    answer["path"] = path
    begun = time.perf_counter()
    loaded = formats.load(tf, path, kind, objects, lambda: _build(tf, defined, LOADED)[0])
    answer["seconds"] = time.perf_counter() - begun
    targets = defined.targets(tf) if kind in ("keras", "h5", "savedmodel") else None
    try:
        inputs = _find_inputs(tf, defined, loaded)
    except compat.Refused as unknown:
        # It loads, and cannot be called.
        answer["message"] = str(unknown)
        return
    _describe(tf, loaded, inputs, targets, answer)


def _build(tf, defined, seed):
    """Return a model whose weights exist and depend on the seed, and its inputs."""
    compat.seed(tf, seed)
    model = defined.build(tf)
    inputs = _find_inputs(tf, defined, model)
    _predict(tf, model, inputs)
    if not isinstance(defined, UserModel):
        compat.fix_weights(model, seed)
    return model, inputs


def _find_inputs(tf, defined, model):
    inputs = defined.inputs(tf)
    return formats.derive_inputs(tf, model) if inputs is None else inputs


def _describe(tf, model, inputs, targets, answer):
    """Add sketches of what a model returns now and, if it is trained, after a further step."""
    answer["stage"] = "call"
    answer["output"] = sketch(_predict(tf, model, inputs))
    if targets is not None:
        answer["stage"] = "train"
        model.train_on_batch(inputs, targets)
        answer["after"] = sketch(_predict(tf, model, inputs))


def _predict(tf, model, inputs):
    if isinstance(model, formats.Served):
        return values.to_host(model(inputs))
    if compat.version(tf) < (2,):
        return model.predict(inputs)
    return values.to_host(model(_map(tf.constant, inputs), training=False))


def _map(function, nest):
    if isinstance(nest, dict):
        return {key: _map(function, each) for key, each in nest.items()}
    if isinstance(nest, (list, tuple)):
        return [_map(function, each) for each in nest]
    return function(nest)


def _find_custom(tf, message, path):
    """Return the name of the custom object that is missing, or ''."""
    names = UNKNOWN.findall(message)
    if message == NAMELESS:
        with contextlib.suppress(Exception), zipfile.ZipFile(path) as file:
            names = list(_list_registered(json.loads(file.read("config.json").decode("utf-8"))))
    places = [getattr(tf.keras, name, None) for name in OF_KERAS]
    known = {name for name in names if name in INTERNAL or any(hasattr(place, name) for place in places)}
    return next((name[:100] for name in names if name not in known), "")


def _list_registered(config):
    """Yield the names of classes that are not Keras' own, from the configuration of a .keras file."""
    if isinstance(config, dict):
        if config.get("registered_name") and isinstance(config.get("class_name"), str):
            yield config["class_name"]
        config = list(config.values())
    for inner in config if isinstance(config, list) else ():
        yield from _list_registered(inner)


def _shorten(text):
    with contextlib.suppress(UnicodeError):
        text = text.encode("utf-8", "replace").decode("utf-8")
    half = MOST_LETTERS // 2
    return text if len(text) <= MOST_LETTERS else text[:half] + " ... " + text[-half:]
