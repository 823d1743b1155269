"""What a step returns: pulled to the host, and kept as a digest and as a sketch, so that results can be compared."""

import hashlib
import json

import numpy

# The most parts of a result, and values of all of them together, that a sketch has; each part has at least a few.
MOST_PARTS, MOST_VALUES, FEWEST_VALUES = 16, 256, 8
NAME_LIMIT, BLOCK = 60, 2 ** 16


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


def sketch(value):
    """A result on the host in a few kilobytes of JSON: of each part its type, shape, moments and a sample of values.

    A short part is whole. Of a longer one the same places are kept in every version.
    """
    parts = list(_named_parts(value, ""))
    kept = parts[:MOST_PARTS]
    most = max(MOST_VALUES // max(len(kept), 1), FEWEST_VALUES)
    told = [dict(_sketch_part(inner, most), name=name[:NAME_LIMIT]) for name, inner in kept]
    return json.dumps({"parts": told, "left_out": len(parts) - len(kept)}, sort_keys=True, separators=(",", ":"))


def _named_parts(value, name):
    if isinstance(value, dict):
        inner = [(str(key), value[key]) for key in sorted(value, key=str)]
    elif isinstance(value, (list, tuple)):
        inner = [(str(place), one) for place, one in enumerate(value)]
    else:
        yield name, value
        return
    if not inner:
        yield name, value
    for key, one in inner:
        for part in _named_parts(one, "{}.{}".format(name, key) if name else key):
            yield part


def _sketch_part(value, most):
    """What is kept of one part; of what holds no numbers only its type and, of texts, a digest."""
    try:
        if isinstance(value, float):
            # Also numpy's float64. A lone number is often the mean of many in float32, such as a loss.
            return dict(_sketch_array(numpy.asarray(value), most), type="float")
        if isinstance(value, (bool, int, complex, numpy.ndarray, numpy.generic)):
            return _sketch_array(numpy.asarray(value), most)
        text = value.encode("utf-8", "replace") if isinstance(value, str) else value
        return {"type": type(value).__name__, "shape": [], "digest": _digest([text]) if isinstance(text, bytes) else None}
    except (TypeError, ValueError, OverflowError):
        # A type of numbers that numpy only stores. It must not end a replicate whose time is asked for.
        return {"type": type(value).__name__, "shape": [], "digest": None}


def _sketch_array(array, most):
    told = {"type": array.dtype.name[:NAME_LIMIT], "shape": list(array.shape)}
    flat = array.ravel()
    if array.dtype.kind not in "biufc" and array.dtype.name != "bfloat16":
        # Such as texts.
        return dict(told, digest=_digest(repr(one).encode("utf-8", "replace") for one in flat.tolist()))
    if array.dtype.kind == "c":
        flat = numpy.concatenate([flat.real, flat.imag])
    places = numpy.arange(flat.size) if flat.size <= most else numpy.linspace(0, flat.size - 1, most).astype("int64")
    sample = flat[places]
    if array.dtype.kind in "biu":
        digest = _digest(block.astype("<i8").tobytes() for block in _blocks(flat))
        return dict(told, digest=digest, values=[int(one) for one in sample])
    return dict(told, values=[_figure(one) for one in sample.astype("float64")], **_moments(flat))


def _moments(flat):
    """The mean and the root of the mean square of what is finite, and how many values are not."""
    odd, count, largest = [0, 0, 0], 0, 0.0
    for block in _blocks(flat, "float64"):
        for place, found in enumerate((numpy.isnan(block), block == numpy.inf, block == -numpy.inf)):
            odd[place] += int(numpy.sum(found))
        finite = block[numpy.isfinite(block)]
        count += finite.size
        largest = max(largest, float(numpy.max(numpy.abs(finite)))) if finite.size else largest
    total = squares = 0.0
    if largest:
        for block in _blocks(flat, "float64"):
            # Squares of huge values have no float.
            scaled = block[numpy.isfinite(block)] / largest
            total += float(numpy.sum(scaled))
            squares += float(numpy.sum(scaled * scaled))
    mean, rms = (total / count, (squares / count) ** 0.5) if count else (0.0, 0.0)
    return {"odd": odd, "mean": mean * largest, "rms": rms * largest}


def _blocks(flat, kind=None):
    """An array piece by piece: a copy of all of a large result would be the peak of its replicate's memory."""
    for begin in range(0, flat.size, BLOCK):
        block = flat[begin:begin + BLOCK]
        yield block.astype(kind) if kind else block


def _digest(pieces):
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()[:12]


def _figure(value):
    """A float that JSON has, or its name; nine digits tell every float32 from its neighbours."""
    return float("{:.9g}".format(value)) if numpy.isfinite(value) else str(float(value))
