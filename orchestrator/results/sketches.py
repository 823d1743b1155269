"""Sketches of results, which workers send: they are checked like everything from a worker, and compared part by part.

workloads/sketches.py describes how a sketch is made. If only a sample of values is kept, the sums decide: the
difference of two sums with the same random signs is about as large as the norm of the difference of all values.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

# No worker writes more.
LONGEST, MOST_PARTS, MOST_GROUPS, MOST_BANDS, SUMS, BITS = 2**18, 16, 8, 13, 16, 4
# PRECISION is the distance from 1 to the next number of a type; a share up to TOLERANCE is not called a difference.
PRECISION: Mapping[str, float] = {
    "float64": 2.0**-52, "complex128": 2.0**-52, "float128": 2.0**-52, "complex256": 2.0**-52, "float": 2.0**-23,
    "float32": 2.0**-23, "complex64": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7,
}  # fmt: skip
TOLERANCE: Mapping[str, float] = {
    "float64": 1e-8, "complex128": 1e-8, "float128": 1e-8, "complex256": 1e-8, "float": 1e-4,
    "float32": 1e-4, "complex64": 1e-4, "float16": 8e-3, "bfloat16": 6e-2,
}  # fmt: skip
# Parts of these types say nothing, though they can be compared.
EMPTY = ("NoneType", "dict", "list", "tuple")

Number = Annotated[float, Field(allow_inf_nan=False)]
# An array cannot hold a larger integer, and no larger array exists.
Integer = Annotated[int, Field(ge=-(2**64), le=2**64)]
Count = Annotated[int, Field(ge=0, le=2**62)]
Word = Annotated[str, Field(max_length=80)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
Sums = Annotated[tuple[Number, ...], Field(min_length=SUMS, max_length=SUMS)]


class Band(BaseModel):
    """The values of a part whose sizes are below a power of 2, down to a 16th of it; in the lowest band, down to 0.

    `norm` and `sums` are in units of that power. `signs` are sums of the values' signs, which the lowest band lacks.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: Annotated[int, Field(ge=-1080, le=1028, multiple_of=BITS)]
    count: Count
    norm: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    sums: Sums
    signs: Sums | tuple[()]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if max(self.norm, *map(abs, self.sums), *map(abs, self.signs)) > self.count * (1 + 1e-9):
            raise ValueError("larger sums than there are values")
        return self


class SketchPart(BaseModel):
    """One array, number or text of a result, or many small ones of one type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Word
    type: Word
    shape: Annotated[tuple[Count, ...], Field(max_length=64)]
    digest: Digest | None
    odd: tuple[Count, Count, Count] = (0, 0, 0)
    places: Digest | None = None
    typical: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    bands: Annotated[tuple[Band, ...], Field(max_length=MOST_BANDS)] = ()
    values: Annotated[tuple[Integer | float, ...], Field(max_length=512)] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        levels = [band.level for band in self.bands]
        if levels != sorted(set(levels)) or any(len(band.signs) != SUMS for band in self.bands[1:]):
            raise ValueError("bands that are in no order")
        if not self.bands:
            if self.values or self.places or any(self.odd):
                raise ValueError("values without sums")
        elif (
            self.count != self.size
            or len(self.values) > self.size
            or (self.typical > 0 and (math.frexp(self.typical)[1] > levels[0]))
        ):
            raise ValueError("other numbers of values than the shape has, or of another size")
        return self

    @property
    def size(self) -> int:
        """The count of its numbers; a complex value has two."""
        return math.prod(self.shape) * (2 if self.type.startswith("complex") else 1)

    @property
    def count(self) -> int:
        return sum(band.count for band in self.bands) + sum(self.odd)

    @property
    def complete(self) -> bool:
        return len(self.values) == self.size

    @property
    def form(self) -> str:
        return f"{self.type}[{','.join(map(str, self.shape))}]"


class Others(BaseModel):
    """The parts of a result beyond those that have their own sketch; all parts of one type share a sketch."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: Count
    forms: Digest
    parts: Annotated[tuple[SketchPart, ...], Field(max_length=MOST_GROUPS)]
    lost: bool


class Sketch(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    parts: Annotated[tuple[SketchPart, ...], Field(max_length=MOST_PARTS)]
    others: Others
    # This says why the workload returns nothing that could be compared.
    no_result: Annotated[str, Field(max_length=200)] = ""

    @property
    def says_something(self) -> bool:
        parts = (*self.parts, *self.others.parts)
        return any(part.digest is not None and part.type not in EMPTY for part in parts)


@dataclass(frozen=True)
class Distance:
    """The distance between two results.

    `share` is the largest difference of one value, as a share of its size or, if that is larger, of the typical size in
    its part; it is infinite where the results have different forms. Where not all values are kept (`complete`), it is
    the least that the largest difference can be. `allowed` is the share that is not called one. `changed` counts the
    values that differ, of those `compared` one by one. `unknown` says which part cannot be compared.
    """

    share: float = 0.0
    allowed: float = 0.0
    ulps: float | None = None
    where: str = ""
    changed: int = 0
    compared: int = 0
    complete: bool = True
    # The digests of all values decide this.
    identical: bool = True
    unknown: str = ""

    @property
    def exceeds(self) -> bool:
        return self.share > self.allowed

    @property
    def excess(self) -> float:
        return 0.0 if self.share == 0 else self.share / self.allowed if self.allowed else math.inf


# Versions of a case mostly return the same, and reading a sketch takes longer than comparing two.
@lru_cache(100)
def read_sketch(text: str | None) -> Sketch | None:
    """Return a sketch, or None if there is none that can be read."""
    if not text or len(text) > LONGEST:
        return None
    try:
        return Sketch.model_validate(json.loads(text))
    except (ValidationError, ValueError, RecursionError):
        return None


def find_distance(one: Sketch, other: Sketch) -> Distance:
    """Return the distance of the parts that are farthest apart, and the values that differ in all parts."""
    names = [[part.name for part in sketch.parts] for sketch in (one, other)]
    counts = [len(sketch.parts) + sketch.others.count for sketch in (one, other)]
    if names[0] != names[1] or counts[0] != counts[1]:
        where = f"a result of {' parts against one of '.join(map(str, counts))}"
        return Distance(math.inf, identical=False, where=where)
    found = [
        _compare_parts(mine, theirs, f" of {mine.name}" if mine.name else "")
        for mine, theirs in zip(one.parts, other.parts, strict=True)
    ]
    found += _compare_others(one.others, other.others)
    return replace(
        max(found, key=lambda each: (each.excess, bool(each.where)), default=Distance()),
        changed=sum(each.changed for each in found),
        compared=sum(each.compared for each in found),
        complete=all(each.complete for each in found),
        identical=all(each.identical for each in found),
        unknown=next((each.unknown for each in found if each.unknown), ""),
    )


def _compare_others(one: Others, other: Others) -> list[Distance]:
    place = f" of the parts after the first {MOST_PARTS}"
    if one.lost or other.lost:
        return [Distance(identical=False, unknown=f"too many types{place}")]
    if one.forms != other.forms or [part.shape for part in one.parts] != [part.shape for part in other.parts]:
        return [Distance(math.inf, where=f"other names, types or shapes{place}")]
    return [_compare_parts(mine, theirs, place) for mine, theirs in zip(one.parts, other.parts, strict=True)]


def _compare_parts(one: SketchPart, other: SketchPart, place: str) -> Distance:
    for part in (one, other):
        if part.digest is None:
            return Distance(identical=False, unknown=f"{part.type}{place} has no value that can be compared")
    numbers = {one.type, other.type} <= PRECISION.keys()
    if one.shape != other.shape or (one.type != other.type and not numbers):
        return Distance(math.inf, identical=False, where=f"{other.form}{place}, not {one.form}")
    type_note = f"{other.type}{place}, not {one.type}" if one.type != other.type else ""
    if one.digest == other.digest:
        return Distance(where=type_note, compared=one.size)
    counts = zip(("NaN", "inf", "-inf"), one.odd, other.odd, strict=True)
    odd = ", ".join(f"{theirs} {name}, not {mine}" for name, mine, theirs in counts if mine != theirs)
    if not odd and one.places != other.places:
        odd = "NaN or inf in other places"
    if not one.bands or not other.bands or len(one.values) != len(other.values) or odd:
        return Distance(math.inf, identical=False, where=(odd or f"other values in {one.form}") + place)
    typical = max(one.typical, other.typical)
    shares = [_share(mine, theirs, typical) for mine, theirs in zip(one.values, other.values, strict=True)]
    changed = sum(share > 0 for share in shares)
    found = Distance(changed=changed, compared=len(shares), complete=one.complete, identical=False)
    if not numbers:
        return replace(found, share=math.inf, where=f"other values in {one.form}{place}")
    share = max(shares, default=0.0)
    if not one.complete:
        share = max(share, _share_of_sums(one, other, typical, _most_changed(changed, len(shares))))
    coarser = max(one.type, other.type, key=PRECISION.__getitem__)
    return replace(found, share=share, allowed=TOLERANCE[coarser], ulps=share / PRECISION[coarser], where=type_note)


def _share(one: float, other: float, typical: float) -> float:
    """Return the difference of two values as a share of the larger one or, if that is larger, of the typical size."""
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    scale = max(abs(one), abs(other), typical)
    share = abs(other / scale - one / scale)
    return math.inf if math.isnan(share) else share


def _most_changed(changed: int, compared: int) -> float:
    """Return the upper limit (95 %) of the fraction of all values that differ, from those of a sample that do."""
    return min(1.0, (changed + 3 + 2 * math.sqrt(changed)) / compared) if compared else 1.0


def _share_of_sums(one: SketchPart, other: SketchPart, typical: float, fraction: float) -> float:
    """Return the least share by which the value that differs most must differ, according to the sums of all values.

    The root mean square of the differences of sums is about the norm of the differences of values. If at most this
    fraction of the values differ, then one of them does by this share or more.
    """
    bottom = max(part.bands[0].level for part in (one, other))
    higher = sorted({band.level for part in (one, other) for band in part.bands if band.level > bottom}, reverse=True)
    share = 0.0
    for level, mine, theirs in zip(
        (*higher, bottom), _fill_bands(one, higher, bottom), _fill_bands(other, higher, bottom), strict=True
    ):
        norm = float(np.linalg.norm(theirs.sums - mine.sums)) / math.sqrt(SUMS)
        count = max(mine.count, theirs.count)
        values = math.hypot(max(mine.norm, theirs.norm), math.ldexp(typical, -level) * math.sqrt(count))
        scale = values * math.sqrt(min(1.0, fraction * one.size / count)) if count else 0.0
        if norm:
            share = max(share, norm / scale if scale else math.inf)
    return share


@dataclass(frozen=True)
class FilledBand:
    """The amounts that all values of a part add to a band: from its lower end up to the value, or to its upper end."""

    count: int
    norm: float
    sums: Any


def _fill_bands(part: SketchPart, higher: Sequence[int], bottom: int) -> list[FilledBand]:
    """Return these bands of a part, the highest first; the last one has all that is below `bottom`.

    This way, a value just below a band's end and one just above it add nearly the same to each band.
    """
    bands = {band.level: band for band in part.bands}
    above, filled = np.zeros(SUMS), []
    for level in higher:
        count, norm, sums, signs = 0, 0.0, np.zeros(SUMS), np.zeros(SUMS)
        if band := bands.get(level):
            count, norm, sums, signs = band.count, band.norm, np.array(band.sums), np.array(band.signs)
        filled.append(FilledBand(count, norm, sums - signs / 2**BITS + above * (1 - 1 / 2**BITS)))
        above = above + signs
    below = [(band, math.ldexp(1.0, band.level - bottom)) for band in part.bands if band.level <= bottom]
    norm = math.hypot(*(unit * band.norm for band, unit in below))
    sums = above + sum(unit * np.array(band.sums) for band, unit in below)
    return [*filled, FilledBand(sum(band.count for band, _ in below), norm, sums)]


def show_share(share: float) -> str:
    """Format a share of a result's size: `12%` of it, `0.04%`, or `3e-07`."""
    return f"{share * 100:.2g}%" if 1e-4 <= share < 1 else f"{share:.0%}" if share >= 1 else f"{share:.1g}"
