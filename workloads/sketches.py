"""Sketches of results: what a replicate keeps of a result, so that the host can compare two without holding them.

Each part has a digest of all values, sums of all values with random signs, and a sample of values. The sums are
random projections: the difference of two of them is about as large as the norm of the difference of the two results,
wherever these differ, so that one wrong value among a million shows. Values of very different sizes have separate sums;
otherwise, a mask of -1e9 would hide all others.
"""

import hashlib
import json

import numpy

from workloads.values import MOST_DEPTH, DeepNest

# The first parts have samples of values, which are limited in total and have at least a few values each. Further parts
# are sketched together, by their types.
MOST_PARTS, MOST_VALUES, FEWEST_VALUES, MOST_GROUPS = 16, 256, 8, 8
# Two values that change places are missed if all sums give them the same sign, as with one pair in 65,000.
SUMS, BLOCK = 16, 2**12
# A band of sizes ends at a power of 16. Everything below a few times the typical size is in one band.
BITS, FEW_BITS, MOST_BANDS, LOWEST = 4, 2, 12, -1080
# The typical size is estimated from this many values.
MOST_TYPICAL = 2**16
NAME_LIMIT, REASON_LIMIT, DIGITS = 60, 200, 16
NUMBERS = (bool, int, float, complex, numpy.number, numpy.bool_)


def sketch(value, no_result=""):
    """Return a result in host memory as a few kilobytes of JSON, or only why its workload has no result to compare.

    Nothing is changed or consumed: a part without a value, such as a generator, is known only by its type.
    """
    signs, parts = Signs(), [] if no_result else list(_find_parts(value, ""))
    sampled, others = parts[:MOST_PARTS], parts[MOST_PARTS:]
    most = max(MOST_VALUES // max(len(sampled), 1), FEWEST_VALUES)
    told = [dict(_sketch_part(inner, signs, most), name=name[:NAME_LIMIT]) for name, inner in sampled]
    whole = {"parts": told, "others": _sketch_others(others, signs), "no_result": no_result[:REASON_LIMIT]}
    return json.dumps(whole, sort_keys=True, separators=(",", ":"))


def _find_parts(value, name, above=()):
    """Yield the name and the value of each part of a nest of dicts, lists and tuples; `above` is what holds it."""
    own = id(value)
    if isinstance(value, numpy.ndarray) and value.dtype == object and not _is_text(value):
        value = value.ravel().tolist()
    if isinstance(value, dict):
        inner = [(str(key), value[key]) for key in sorted(value, key=str)]
    elif isinstance(value, (list, tuple)) and len(value) > MOST_PARTS and all(isinstance(each, NUMBERS) for each in value):
        # Many numbers, such as the losses of many steps, are one part.
        inner = None
    elif isinstance(value, (list, tuple)):
        inner = [(str(place), each) for place, each in enumerate(value)]
    else:
        inner = None
    if not inner:
        yield name, value
        return
    if own in above or len(above) == MOST_DEPTH:
        yield name, DeepNest()
        return
    for key, each in inner:
        yield from _find_parts(each, f"{name}.{key}" if name else key, above + (own,))


def _is_text(array):
    """Return whether an array of objects has only texts; TensorFlow returns texts in such arrays."""
    return all(isinstance(each, (bytes, str)) for each in array.flat)


def _sketch_part(value, signs, most):
    kind, array = _read_part(value)
    if array is None:
        return {"type": kind, "shape": [], "digest": _digest_other(value)}
    told = {"type": kind, "shape": list(array.shape)}
    try:
        if array.dtype.kind in "OSU":
            return dict(told, digest=_digest_texts(array.flat))
        return dict(told, values=_sample(array, most), **_measure([array], signs))
    except (TypeError, ValueError, OverflowError):
        # Numpy can store this type but not compute with it. That must not end a replicate that is timed.
        return dict(told, digest=None)


def _read_part(value):
    """Return the name of a part's type, and its values as an array if there are any."""
    if isinstance(value, (bytes, str)):
        return "text" if isinstance(value, str) else "bytes", None
    array = None
    # A lone bfloat16 of an old TensorFlow is not one of numpy's numbers.
    lone = isinstance(value, NUMBERS + (numpy.ndarray, numpy.generic)) or type(value).__name__ == "bfloat16"
    if lone or (isinstance(value, (list, tuple)) and value):
        array = numpy.asarray(value)
    if array is None or (array.dtype == object and not isinstance(value, numpy.ndarray)):
        # A whole number that fits into no type of numpy is an object.
        return type(value).__name__[:NAME_LIMIT], None
    if array.dtype.kind in "OSU":
        return "texts", array
    if array.dtype == float and any(isinstance(each, float) for each in ([value] if lone else value)):
        # This includes numpy's float64. A lone number is often the mean of many in float32, such as a loss.
        return "float", array
    return array.dtype.name[:NAME_LIMIT], array


def _digest_other(value):
    """Return the digest of a part that is not an array; None if it has no value that can be compared."""
    if isinstance(value, (bytes, str)):
        return _digest_texts([value])
    if value is None or isinstance(value, int) or (isinstance(value, (dict, list, tuple)) and not value):
        return _digest_texts([repr(value)])
    return None


def _digest_texts(texts):
    digest = hashlib.sha256()
    for text in texts:
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        digest.update("{} {} ".format("bytes" if data is text else "text", len(data)).encode("ascii") + data)
    return digest.hexdigest()[:DIGITS]


def _sketch_others(parts, signs):
    """Return one sketch for each type of the parts that have none themselves, and a digest of all names and shapes."""
    forms, groups, texts = hashlib.sha256(), {}, {}
    for name, value in parts:
        kind, array = _read_part(value)
        shape = () if array is None else array.shape
        forms.update(f"{name!r} {shape}\n".encode("utf-8", "replace"))
        if array is None or array.dtype.kind in "OSU":
            texts.setdefault(kind, []).append(_digest_other(value) if array is None else _digest_texts(array.flat))
        else:
            groups.setdefault(kind, []).append(array)
    told = []
    for kind in sorted(groups):
        try:
            found = _measure(groups[kind], signs)
        except (TypeError, ValueError, OverflowError):
            found = {"digest": None}
        told.append(dict(found, type=kind, shape=[sum(array.size for array in groups[kind])], name=""))
    for kind in sorted(texts):
        digest = None if None in texts[kind] else _digest_texts(texts[kind])
        told.append({"type": kind, "shape": [len(texts[kind])], "name": "", "digest": digest})
    kept, lost = told[:MOST_GROUPS], len(told) > MOST_GROUPS
    return {"count": len(parts), "forms": forms.hexdigest()[:DIGITS], "parts": kept, "lost": lost}


def _measure(arrays, signs):
    """Return the digest, the typical size and the sums of all numbers of some arrays of one type, block by block."""
    digest, places, odd = hashlib.sha256(), hashlib.sha256(), [0, 0, 0]
    bands, typical = {}, _find_typical(arrays)
    for number, block in enumerate(_blocks(arrays)):
        exact, numbers = _read_numbers(block)
        digest.update(exact.tobytes())
        finite = numpy.isfinite(numbers)
        if not finite.all():
            kinds = (numpy.isnan(numbers) + 2 * (numbers == numpy.inf) + 3 * (numbers == -numpy.inf)).astype("u1")
            odd = [count + int(numpy.sum(kinds == kind)) for kind, count in enumerate(odd, 1)]
            places.update(f"{number} {len(kinds)} ".encode("ascii") + kinds.tobytes())
            numbers = numpy.where(finite, numbers, 0.0)
        typical = typical or _find_middle(numbers)
        _add_block(bands, numbers, finite, _find_level(typical), signs.select(number, numbers.size))
    return {
        "digest": digest.hexdigest()[:DIGITS],
        "odd": odd,
        "places": places.hexdigest()[:DIGITS],
        "typical": typical,
        "bands": _join_bands(bands, _find_level(typical)),
    }


def _blocks(arrays):
    """Yield arrays in pieces of less than two BLOCKs: a copy of a large result would raise the memory peak."""
    waiting, size = [], 0
    for array in arrays:
        flat = _flatten(array)
        for begin in range(0, array.size, BLOCK):
            piece = flat[begin : begin + BLOCK]
            waiting.append(piece)
            size += piece.size
            if size >= BLOCK:
                yield numpy.concatenate(waiting)
                waiting, size = [], 0
    if waiting:
        yield numpy.concatenate(waiting)


def _flatten(array):
    """Return something that gives slices of an array in one order, whatever its layout, without a copy of all of it."""
    return array.reshape(-1) if array.flags.c_contiguous else array.flat


def _read_numbers(array):
    """Return numbers in a form in which equal ones have equal digests, and as float64; a complex one as two parts."""
    kind = array.dtype.kind
    if kind in "biumM":
        exact = array.astype("<i8")
        return exact, (exact if kind in "mM" else array).astype("float64")
    if kind == "c":
        numbers = array.astype("complex128").view("float64")
    elif kind == "f" or (kind == "V" and array.dtype.names is None):
        # Numpy can do nothing with TensorFlow's bfloat16 except convert it.
        numbers = array.astype("float64")
    else:
        raise TypeError(f"no numbers: {array.dtype}")
    exact = numpy.where(numpy.isnan(numbers), numpy.nan, numbers) + 0.0
    if kind == "f" and array.dtype.itemsize > 8:
        exact = numpy.concatenate([exact, numpy.nan_to_num((array - numbers).astype("float64"))])
    return exact.astype("<f8"), numbers


def _pick(array, most):
    """Return values of an array from places that are the same in every version, one from each of `most` equal spans."""
    if array.size <= most:
        return _flatten(array)[:]
    ends = numpy.arange(most + 1, dtype="int64") * array.size // most
    widths = (ends[1:] - ends[:-1]).astype("uint64")
    return _flatten(array)[ends[:-1] + (_hash(numpy.arange(most)) % widths).astype("int64")]


def _sample(array, most):
    """Return a sample of values that JSON can hold; nine digits distinguish every float32 from its neighbours."""
    picked = _pick(array, most)
    exact, numbers = _read_numbers(picked)
    if exact.dtype.kind == "i":
        return [int(each) for each in (picked if array.dtype.kind in "biu" else exact)]
    short = array.dtype.itemsize < (16 if array.dtype.kind == "c" else 8)
    figures = [float(f"{each:.9g}") for each in numbers] if short else numbers.tolist()
    return [each if numpy.isfinite(each) else str(each) for each in figures]


def _find_typical(arrays):
    size = max(sum(array.size for array in arrays), 1)
    picked = [_pick(array, -(-MOST_TYPICAL * array.size // size)) for array in arrays]
    return _find_middle(numpy.concatenate([_read_numbers(each)[1] for each in picked]))


def _find_middle(numbers):
    """Return the median size of all that is finite and not zero; 0 if there is nothing.

    The largest size is left out if several values have it: a mask can be most of a result.
    """
    sizes = numpy.sort(numpy.abs(numbers[numpy.isfinite(numbers) & (numbers != 0)]))
    rest = sizes[: numpy.searchsorted(sizes, sizes[-1])] if sizes.size else sizes
    sizes = rest if 0 < rest.size < sizes.size - 1 else sizes
    return float(sizes[sizes.size // 2]) if sizes.size else 0.0


def _find_level(typical):
    """Return the power of 2 below which everything is in one band."""
    return BITS * -(-(int(numpy.frexp(typical)[1]) + FEW_BITS) // BITS) if typical else LOWEST


def _add_block(bands, numbers, finite, bottom, signs):
    exponents = BITS * -(-numpy.frexp(numbers)[1] // BITS) if _find_exponent(numbers) > bottom else None
    levels = None if exponents is None else numpy.where(numbers == 0, bottom, numpy.maximum(exponents, bottom))
    for level in [bottom] if levels is None else sorted(set(levels.tolist())):
        chosen = finite if levels is None else finite & (levels == level)
        scaled = numpy.ldexp(numbers if levels is None else numpy.where(chosen, numbers, 0.0), -level)
        band = bands.setdefault(level, {"count": 0, "squares": 0.0, "sums": numpy.zeros(SUMS), "signs": numpy.zeros(SUMS)})
        band["count"] += int(numpy.sum(chosen))
        band["squares"] += float(numpy.sum(scaled * scaled))
        band["sums"] += signs.sum(scaled)
        if level > bottom:
            band["signs"] += signs.sum(numpy.sign(scaled))


def _find_exponent(numbers):
    """Return the exponent of the power of 2 that is above all sizes."""
    largest = numpy.max(numpy.abs(numbers))
    return int(numpy.frexp(largest)[1]) if largest else LOWEST


def _join_bands(bands, bottom):
    """Return a few bands as JSON has them, the lowest first; all sums of a band are in units of its level."""
    above = sorted(level for level in bands if level > bottom)
    bottom = ([bottom] + above)[max(len(above) - MOST_BANDS, 0)]
    joined = {"level": int(bottom), "count": 0, "squares": 0.0, "sums": numpy.zeros(SUMS)}
    for level in sorted(level for level in bands if level <= bottom):
        band, unit = bands[level], 2.0 ** max(level - bottom, LOWEST)
        joined["count"] += band["count"]
        joined["squares"] += band["squares"] * unit * unit
        joined["sums"] += band["sums"] * unit
    told = [joined] + [dict(bands[level], level=int(level)) for level in above if level > bottom]
    return [
        {
            "level": band["level"],
            "count": band["count"],
            "norm": band["squares"] ** 0.5,
            "sums": band["sums"].tolist(),
            "signs": [int(each) for each in band.get("signs", ())],
        }
        for band in told
    ]


class Signs:
    """The signs of values by their places, with one row for each sum; they are the same everywhere."""

    WIDTH = 4 * BLOCK

    def __init__(self):
        self.table = numpy.empty((SUMS, 0))
        self.chosen = self.turns = None

    def select(self, number, size):
        """Choose the signs of a block: each block gets another piece of the table, in which some rows are negated."""
        width, begin = (size, 0) if number == 0 else (self.WIDTH, int(_hash([number])[0]) % (self.WIDTH - 2 * BLOCK))
        if self.table.shape[1] < width:
            bits = _hash(numpy.arange(width))
            self.table = numpy.empty((SUMS, width))
            for row in range(SUMS):
                self.table[row] = _find_signs(bits >> numpy.uint64(row))
        self.chosen = self.table[:, begin : begin + size]
        self.turns = _find_signs(_hash(numpy.arange(SUMS) + SUMS * (number + 1)))
        return self

    def sum(self, numbers):
        # This starts no threads, unlike a product of matrices.
        return numpy.einsum("ij,j->i", self.chosen, numbers) * self.turns


def _find_signs(bits):
    return (bits & numpy.uint64(1)).astype("float64") * 2.0 - 1.0


def _hash(places):
    """Return 64 bits for each place that look random: the mixing steps of SplitMix64."""
    mixed = (numpy.asarray(places).astype("uint64") + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> numpy.uint64(31))
