"""The figures of a part of the page: what was seen, whether it meets its target, and whether it got worse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

# How a value is written, by what it is multiplied for that, and the unit of a distance to a target.
UNITS: Mapping[str, tuple[str, float, str]] = {
    "s": ("{:.2f} s", 1, " s"),
    "ms": ("{:.0f} ms", 1, " ms"),
    "ns": ("{:.0f} ns", 1, " ns"),
    "MiB": ("{:.0f} MiB", 1, " MiB"),
    "MB": ("{:.2f} MB", 1, " MB"),
    "ratio": ("{:.2f}x", 1, "x"),
    "share": ("{:.3g}%", 100, " points"),
    "count": ("{:.3g}", 1, ""),
}
HEAD = ("| figure | seen | target | | the measurement before |", "|---|---|---|---|---|")


@dataclass(frozen=True)
class Figure:
    """A figure; `best` says which way it gets better, and `limit` is the target of those that have one.

    `bound` is the end nearer to the target of the exact limits of a part of what was compared: where even that misses
    the target, the figure misses it.
    """

    name: str
    value: float
    unit: str
    best: Literal["least", "most"] = "least"
    limit: float | None = None
    # Counts and exact limits, for the reader.
    detail: str = ""
    bound: float | None = None

    def show(self, value: float) -> str:
        form, scale, _ = UNITS[self.unit]
        return form.format(value * scale)


class Section(NamedTuple):
    """What a bench has measured: a text for the page, and the figures below it."""

    body: str
    figures: Sequence[Figure]
    # At which its results were measured, where some were kept from before.
    commits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Before:
    """The last measurement of an earlier day: the value of each figure by its name, the day and the CPU."""

    day: str
    cpu: str
    values: Mapping[str, float]


def judge(figure: Figure) -> str:
    """Return `met`, or by how much the target is missed; nothing without a target."""
    if figure.limit is None:
        return ""
    _, scale, unit = UNITS[figure.unit]
    seen = [figure.value] if figure.bound is None else [figure.value, figure.bound]
    beyond = [value - figure.limit if figure.best == "least" else figure.limit - value for value in seen]
    missed = next((distance for distance in beyond if distance > 0), 0.0)
    amount = f"{missed * scale:.2g}"
    return f"**missed by {amount}{' point' if (amount, unit) == ('1', ' points') else unit}**" if missed else "met"


def compare(figure: Figure, before: Before, cpu: str) -> str:
    """Return the value of the measurement before, and whether the figure is worse or better now, as far as is shown."""
    if figure.name not in before.values:
        return ""
    value = before.values[figure.name]
    told = f"{figure.show(value)} on {before.day}{f', {before.cpu}' if before.cpu != cpu else ''}"
    if figure.show(value) == figure.show(figure.value):
        return told
    return f"{'**worse**' if (figure.value > value) == (figure.best == 'least') else 'better'}: {told}"


def table(figures: Sequence[Figure], before: Before | None = None, cpu: str = "") -> list[str]:
    rows = []
    for figure in figures:
        seen = figure.show(figure.value) + (f" ({figure.detail})" if figure.detail else "")
        way = "at most" if figure.best == "least" else "at least"
        target = "" if figure.limit is None else f"{way} {figure.show(figure.limit)}"
        earlier = compare(figure, before, cpu) if before else ""
        rows.append(f"| {' | '.join((figure.name, seen, target, judge(figure), earlier))} |")
    return [*HEAD, *rows] if rows else []
