"""Whether two versions return the same: sketches of their first results, against those of other replicates.

A sketch is what a worker says of a result, so it is read like anything that a worker sends. Floating-point numbers are
compared on the scale of their part of the result, as a share of its root mean square.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.model import ArmKey, OutputContrast, Plan, VersionPair
from orchestrator.results.replicates import Replicate

# No worker writes more.
LONGEST, MOST_PARTS = 2**16, 64
# The distance from 1 to the next number of each type, and the share that is not called a difference.
PRECISION: Mapping[str, float] = {
    "float64": 2.0**-52, "complex128": 2.0**-52, "float": 2.0**-23, "float32": 2.0**-23, "complex64": 2.0**-23,
    "float16": 2.0**-10, "bfloat16": 2.0**-7,
}  # fmt: skip
TOLERANCE: Mapping[str, float] = {
    "float64": 1e-8, "complex128": 1e-8, "float": 1e-4, "float32": 1e-4, "complex64": 1e-4,
    "float16": 8e-3, "bfloat16": 6e-2,
}  # fmt: skip
# Each round has other seeds.
FEWEST_ROUNDS = 2
# Sums of equal numbers differ by the order of additions.
EQUAL_MOMENTS = 1e-8
UNSTEADY = (
    "replicates of {version} already differ from each other{size}: give its model the same weights with "
    "compat.fix_weights, or seed what is random"
)

Number = Annotated[float, Field(allow_inf_nan=False)]
# No larger integer has its place in an array.
Integer = Annotated[int, Field(ge=-(2**64), le=2**64)]
Word = Annotated[str, Field(max_length=80)]


class SketchPart(BaseModel):
    """One array, number or text of a result."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Word
    type: Word
    shape: Annotated[tuple[Integer, ...], Field(max_length=64)]
    digest: Annotated[str, Field(max_length=12)] | None = None
    odd: tuple[Integer, Integer, Integer] = (0, 0, 0)
    mean: Number = 0.0
    rms: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    values: Annotated[tuple[Integer | float, ...], Field(max_length=512)] = ()

    @property
    def form(self) -> str:
        return f"{self.type}[{','.join(map(str, self.shape))}]"

    @property
    def says_something(self) -> bool:
        """Whether more is known of it than its type."""
        return self.digest is not None or bool(self.values) or 0 in self.shape


class Sketch(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    parts: Annotated[tuple[SketchPart, ...], Field(max_length=MOST_PARTS)]
    left_out: Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class Distance:
    """How far apart two results are: as a share of their size, in steps of their type, and where.

    It is infinite where they have different forms. `allowed` is the share that is no difference.
    """

    share: float = 0.0
    ulps: float | None = None
    allowed: float = 0.0
    where: str = ""


def read_sketch(text: str | None) -> Sketch | None:
    """Return a sketch, or None if there is none that can be read."""
    if not text or len(text) > LONGEST:
        return None
    try:
        return Sketch.model_validate(json.loads(text))
    except (ValidationError, ValueError, RecursionError):
        return None


def find_output_pairs(plan: Plan) -> tuple[VersionPair, ...]:
    """Return the pairs of versions whose results are compared: those whose times are, and those that claims name."""
    planned = (pair for pair in plan.pairs if isinstance(pair, VersionPair) and pair.across)
    claimed = (returns.compared for claim in plan.claims for returns in claim.returns)
    return tuple(dict.fromkeys((*planned, *claimed)))


def compare_outputs(plan: Plan, replicates: Iterable[Replicate]) -> tuple[OutputContrast, ...]:
    """Compare what every version of a case returned with what its baseline did, where both were measured."""
    texts: dict[ArmKey, dict[str | None, None]] = {}
    rounds: dict[ArmKey, set[int]] = {}
    for replicate in sorted(replicates, key=lambda each: each.number):
        texts.setdefault(replicate.arm, {})[replicate.output] = None
        rounds.setdefault(replicate.arm, set()).add(replicate.round)
    sketches = {text: read_sketch(text) for of_arm in texts.values() for text in of_arm}
    by_arm = {arm: [sketches[text] for text in of_arm] for arm, of_arm in texts.items()}
    measured = (pair for pair in find_output_pairs(plan) if by_arm.keys() >= set(pair.arms))
    compared = ((pair, _compare(pair, *(by_arm[key] for key in pair.arms))) for pair in measured)
    return tuple(_doubt(found, min(len(rounds[key]) for key in pair.arms)) for pair, found in compared)


def _doubt(found: OutputContrast, rounds: int) -> OutputContrast:
    """Believe no difference of a single round: its seed may have caused it."""
    if found.verdict != "differs" or rounds >= FEWEST_ROUNDS:
        return found
    return replace(found, verdict="not comparable", reason="a single round does not tell a difference from chance")


def _compare(
    pair: VersionPair, baseline: Sequence[Sketch | None], candidate: Sequence[Sketch | None]
) -> OutputContrast:
    unknown = OutputContrast(case=pair.case, baseline=pair.baseline, candidate=pair.candidate, verdict="not comparable")
    known = [[sketch for sketch in of_arm if sketch] for of_arm in (baseline, candidate)]
    if any(len(own) < len(of_arm) for own, of_arm in zip(known, (baseline, candidate), strict=True)):
        return replace(unknown, reason="its results were not kept")
    if not any(part.says_something for own in known for sketch in own for part in sketch.parts):
        return replace(unknown, reason="its calls return nothing that has a value")
    floors = [_floor(own) for own in known]
    for version, floor in zip((pair.baseline, pair.candidate), floors, strict=True):
        if floor.share > floor.allowed:
            size = f" by {show_share(floor.share)}" if math.isfinite(floor.share) else f" ({floor.where})"
            return replace(unknown, reason=UNSTEADY.format(version=version, size=size))
    found, floor_share = distance(known[0][0], known[1][0]), max(floor.share for floor in floors)
    if not math.isfinite(found.share):
        return replace(unknown, verdict="differs", reason=found.where, floor=floor_share)
    # Replicates that differ by nearly as much as is allowed may differ twice as much from those of another version.
    near = found.share <= max(found.allowed, 2 * floor_share)
    return replace(
        unknown,
        verdict="equal" if found.share == 0.0 else "equal within tolerance" if near else "differs",
        difference=found.share,
        ulps=found.ulps,
        floor=floor_share,
        reason=found.where,
    )


def _floor(sketches: Sequence[Sketch]) -> Distance:
    """Return how far the replicates of one arm are from its first one."""
    return max((distance(sketches[0], other) for other in sketches), key=lambda each: each.share)


def distance(one: Sketch, other: Sketch) -> Distance:
    """Return the distance of the parts that are farthest apart."""
    if [part.name for part in one.parts] != [part.name for part in other.parts] or one.left_out != other.left_out:
        counts = (f"{len(sketch.parts) + sketch.left_out}" for sketch in (one, other))
        return Distance(math.inf, where=f"a result of {' parts against one of '.join(counts)}")
    found = [_distance(mine, theirs) for mine, theirs in zip(one.parts, other.parts, strict=True)]
    return max(found, key=lambda each: (each.share, bool(each.where)), default=Distance())


def _distance(one: SketchPart, other: SketchPart) -> Distance:
    place = f" of {one.name}" if one.name else ""
    if one.shape != other.shape:
        return Distance(math.inf, where=f"{other.form}{place}, not {one.form}")
    if {one.type, other.type} <= PRECISION.keys():
        return _of_floats(one, other, place)
    if one.type != other.type:
        return Distance(math.inf, where=f"{other.form}{place}, not {one.form}")
    if one.digest != other.digest:
        return Distance(math.inf, where=f"other values in {one.form}{place}")
    return Distance()


def _of_floats(one: SketchPart, other: SketchPart, place: str) -> Distance:
    coarser = max(one.type, other.type, key=PRECISION.__getitem__)
    where = f"{other.type}{place}, not {one.type}" if one.type != other.type else ""
    if one.odd != other.odd or len(one.values) != len(other.values):
        names = ("NaN", "inf", "-inf")
        counts = zip(names, one.odd, other.odd, strict=True)
        odd = (f"{theirs} {name}, not {mine}" for name, mine, theirs in counts if mine != theirs)
        return Distance(math.inf, where=", ".join(odd) + place)
    differences = [_apart(mine, theirs) for mine, theirs in zip(one.values, other.values, strict=True)]
    if any(map(math.isinf, differences)):
        return Distance(math.inf, where=f"NaN or inf in other places{place}")
    scale = max(one.rms, other.rms)
    moments = [abs(one.mean - other.mean), abs(one.rms - other.rms)]
    differences += [difference for difference in moments if difference > EQUAL_MOMENTS * scale]
    largest = max(differences, default=0.0)
    if largest == 0.0:
        return Distance(where=where)
    share = largest / scale if scale else math.inf
    return Distance(share, share / PRECISION[coarser], TOLERANCE[coarser], where)


def _apart(one: float, other: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    difference = abs(other - one)
    return math.inf if math.isnan(difference) else difference


def describe_output(verdict: str, difference: float | None, reason: str) -> str:
    """Return what is known of two results, such as `results differ by 2%`."""
    if verdict != "differs":
        return f"results {verdict}{f': {reason}' if reason else ''}"
    by = f" by {show_share(difference)}" if difference is not None else ""
    return f"results differ{by}{f' ({reason})' if reason else ''}"


def show_share(share: float) -> str:
    """Format a share of a result's size: `12%` of it, `0.04%`, or `3e-07`."""
    return f"{share * 100:.2g}%" if 1e-4 <= share < 1 else f"{share:.0%}" if share >= 1 else f"{share:.1g}"
