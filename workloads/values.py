"""What a step returns, pulled to the host."""

import numpy

# Containers in containers; each takes some of Python's stack.
MOST_DEPTH = 64


class DeepNest:
    """What is left of a container that is inside itself, or of one in too many others."""


def to_host(value, above=()):
    """`value` with every tensor in it pulled to the host as numpy; `above` are the identities of what it is in."""
    if value is None or isinstance(value, (float, int, str, bytes, numpy.ndarray, numpy.generic)):
        return value
    if id(value) in above or len(above) == MOST_DEPTH:
        return DeepNest()
    inside = above + (id(value),)
    if isinstance(value, (list, tuple)):
        pulled = [to_host(inner, inside) for inner in value]
        return pulled if type(value) is list else tuple(pulled)
    if isinstance(value, dict):
        return {key: to_host(inner, inside) for key, inner in value.items()}
    if hasattr(value, "flat_values") and hasattr(value, "nested_row_splits"):
        # A RaggedTensor, which has no numpy() in TensorFlow 2.0.
        return to_host([value.flat_values] + list(value.nested_row_splits), inside)
    if hasattr(value, "numpy"):
        return value.numpy()
    if hasattr(value, "indices") and hasattr(value, "dense_shape"):
        # A SparseTensor, or IndexedSlices.
        return to_host([value.indices, value.values, value.dense_shape], inside)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        raise TypeError(f"{value!r} has no value: in graph mode a step must run its tensors itself")
    return value


def describe(value, most=120):
    """Type and shape of a result that is on the host, in a few words: `float32[32,10]`, or `(int64[4], dict)`."""
    if isinstance(value, (list, tuple)):
        text = "({})".format(", ".join(describe(inner, most) for inner in value[:4]) + (", ..." if len(value) > 4 else ""))
    elif isinstance(value, (numpy.ndarray, numpy.generic)):
        text = "{}[{}]".format(value.dtype, ",".join(map(str, value.shape)))
    else:
        text = type(value).__name__
    return text if len(text) <= most else text[:most - 3] + "..."
