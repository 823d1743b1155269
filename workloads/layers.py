"""What each Keras layer returns in a call, so that two versions can be compared layer by layer.

The call runs eagerly: in a graph a layer returns a symbol.
"""

import contextlib
import functools
import sys

from workloads import sketches, values

MOST_LAYERS, NAME_LIMIT = 200, 60


def record(tf, call):
    """Run `call`, and return the name and the result of every layer that it used, in the order in which they ended."""
    told = []
    with contextlib.ExitStack() as undone:
        _run_eagerly(tf, undone)
        for layer_class in _layer_classes(tf):
            original = layer_class.__call__
            layer_class.__call__ = _recorder(original, told)
            undone.callback(setattr, layer_class, "__call__", original)
        call()
    return told


def _run_eagerly(tf, undone):
    """Make every tf.function run as Python, if this TensorFlow can do that."""
    config = getattr(tf, "config", None)
    for name in ("run_functions_eagerly", "experimental_run_functions_eagerly"):
        switch = getattr(config, name, None)
        if switch:
            switch(True)
            undone.callback(switch, False)
            return


def _layer_classes(tf):
    """Return the base class of TensorFlow's layers and, if it differs, that of a Keras that was imported."""
    modules = [getattr(tf, "keras", None), sys.modules.get("keras")]
    found = [getattr(getattr(module, "layers", None), "Layer", None) for module in modules]
    return list({id(each): each for each in found if each is not None}.values())


def _recorder(original, told):
    @functools.wraps(original)
    def call(layer, *args, **kwargs):
        result = original(layer, *args, **kwargs)
        if len(told) < MOST_LAYERS:
            output = _sketch(lambda: result)
            if output is not None:
                told.append(
                    {
                        "name": str(layer.name)[:NAME_LIMIT],
                        "type": type(layer).__name__[:NAME_LIMIT],
                        "output": output,
                        "weights": _sketch(layer.get_weights),
                    }
                )
        return result

    return call


def _sketch(read):
    try:
        return sketches.sketch(values.to_host(read()))
    except Exception:
        # A symbol has no value, and nothing that a layer returns may end the call.
        return None
