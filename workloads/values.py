"""What a step returns, pulled to the host."""

import numpy

# Deeper nests of containers are cut off, because each level takes some of Python's stack.
MOST_DEPTH = 64


class DeepNest:
    """The replacement for a container that is inside itself, or in too many others."""


def to_host(value, above=()):
    """Return `value` with every tensor copied to the host as numpy; `above` has the ids of the containers around it."""
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
        # This is a RaggedTensor, which has no numpy() in TensorFlow 2.0.
        return to_host([value.flat_values] + list(value.nested_row_splits), inside)
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        # A tensor of PyTorch may be part of a graph of gradients, and numpy lacks some of its types.
        held = value.detach().cpu()
        return (held.float() if str(held.dtype) == "torch.bfloat16" else held).numpy()
    if hasattr(value, "block_until_ready"):
        # JAX computes in the background, and this waits for it.
        return numpy.asarray(value)
    if hasattr(value, "numpy"):
        return value.numpy()
    if hasattr(value, "indices") and hasattr(value, "dense_shape"):
        # This is a SparseTensor or IndexedSlices.
        return to_host([value.indices, value.values, value.dense_shape], inside)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        raise TypeError(f"{value!r} has no value: in graph mode a step must run its tensors itself")
    return value


def is_on_host(value, depth=0):
    """Return whether a result has no tensor, so that reading it waits for no accelerator."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return depth < MOST_DEPTH and all(is_on_host(inner, depth + 1) for inner in value)
    tensors = ("numpy", "detach", "block_until_ready", "flat_values", "dense_shape")
    return not any(hasattr(value, name) for name in tensors)


def describe(value, most=120):
    """Return the type and shape of a result on the host, in short: `float32[32,10]`, or `(int64[4], dict)`."""
    if isinstance(value, (list, tuple)):
        text = "({})".format(", ".join(describe(inner, most) for inner in value[:4]) + (", ..." if len(value) > 4 else ""))
    elif isinstance(value, (numpy.ndarray, numpy.generic)):
        text = "{}[{}]".format(value.dtype, ",".join(map(str, value.shape)))
    else:
        text = type(value).__name__
    return text if len(text) <= most else text[: most - 3] + "..."
