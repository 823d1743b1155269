"""What a step returns: pulled to the host, and told apart from another result by a short digest."""

import hashlib

import numpy


def to_host(value):
    """`value` with every tensor in it pulled to the host as numpy."""
    if value is None or isinstance(value, (float, int, str, bytes, numpy.ndarray, numpy.generic)):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(map(to_host, value)) if type(value) in (list, tuple) else tuple(map(to_host, value))
    if isinstance(value, dict):
        return {key: to_host(inner) for key, inner in value.items()}
    if hasattr(value, "flat_values") and hasattr(value, "nested_row_splits"):
        # A RaggedTensor, which has no numpy() in TensorFlow 2.0.
        return to_host([value.flat_values] + list(value.nested_row_splits))
    if hasattr(value, "numpy"):
        return value.numpy()
    if hasattr(value, "indices") and hasattr(value, "dense_shape"):
        # A SparseTensor, or IndexedSlices.
        return to_host([value.indices, value.values, value.dense_shape])
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        raise TypeError("{!r} has no value: in graph mode a step must run its tensors itself".format(value))
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


def checksum(value):
    """Short hex of the numbers in a step's output, or None if there are none.

    Floating-point arrays count by shape, size and pattern to about four digits, so that another order of
    additions does not show; integers count exactly.
    """
    parts = list(_parts(value))
    if not parts:
        return None
    return hashlib.sha256("\n".join(parts).encode("ascii")).hexdigest()[:12]


def _parts(value):
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            for part in _parts(value[key]):
                yield part
    elif isinstance(value, (list, tuple)):
        for inner in value:
            for part in _parts(inner):
                yield part
    elif isinstance(value, (bool, int, float, complex, numpy.ndarray, numpy.generic)):
        array = numpy.asarray(value)
        if array.dtype.kind in "biu":
            digits = hashlib.sha256(array.astype("<i8").tobytes()).hexdigest()
            yield "{} {}".format(array.shape, digits)
        elif array.dtype.kind in "fc":
            yield "{} {}".format(array.shape, _rounded(array))


def _rounded(array):
    if array.dtype.kind == "c":
        return _rounded(array.real) + _rounded(array.imag)
    flat = array.astype("float64").ravel()
    finite = numpy.isfinite(flat)
    odd = [int(numpy.sum(found)) for found in (numpy.isnan(flat), flat == numpy.inf, flat == -numpy.inf)]
    flat = flat[finite]
    scale = float(numpy.sqrt(numpy.mean(flat * flat))) if flat.size else 0.0
    # Weights that never repeat make the pattern depend on the order of the numbers.
    weights = numpy.cos(numpy.arange(flat.size)) / numpy.sqrt(max(flat.size, 1))
    pattern = float(numpy.sum(flat / scale * weights)) if scale else 0.0
    return "{:.3e} {:.3f} {}".format(scale, round(pattern, 3) + 0.0, odd)
