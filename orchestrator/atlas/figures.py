"""The figures of an atlas: all that its pages, tables and texts are made of, as one object that others can read."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from orchestrator.errors import ContractBroken
from orchestrator.formats import ATLAS
from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import TIME
from orchestrator.model import STRICT, Case, Metric, OutputVerdict, ReportRow
from orchestrator.results.damaged import DAMAGED
from orchestrator.results.stamped import read_stamped
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import clip

# The figures of all releases and of a hundred cases take a tenth of this.
MOST_BYTES = 2**26
LONGEST_TEXT = 2000
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
# An atlas of all releases and of the suite `full` has a tenth of these. Pages grow with their product.
MOST_RELEASES, MOST_CASES = 300, 2000
# The pages have a chart of each of these, in this order.
CHARTED: tuple[Metric, ...] = (TIME, "first", "memory")


def shorten_release(name: str) -> str:
    """Return the name for the head of a column: `2.13`, or the release of a package that was varied."""
    number = name.rpartition("==")[2]
    return number.removesuffix(".0") if number.count(".") > 1 else number


@dataclass(frozen=True, kw_only=True)
class AtlasRelease:
    """A release as it was measured: the name of its target, and what is installed in it."""

    __pydantic_config__ = STRICT

    name: Text
    python: Text
    keras: Text
    # The day on which it was compared with its predecessor, or '' if it was not.
    measured: Text

    @property
    def short(self) -> str:
        return shorten_release(self.name)


@dataclass(frozen=True, kw_only=True)
class AtlasCase:
    __pydantic_config__ = STRICT

    label: Text
    workload: Text
    params: Mapping[Text, Text]
    summary: Text

    @property
    def case(self) -> Case:
        return Case(self.workload, tuple(self.params.items()))


@dataclass(frozen=True, kw_only=True)
class AtlasCell:
    """A case in a release: how it ended, and its figures by metric, in the unit of files."""

    __pydantic_config__ = STRICT

    case: Text
    release: Text
    outcome: Text
    reason: Text
    figures: Mapping[Metric, float]


@dataclass(frozen=True, kw_only=True)
class AtlasRatio(ReportRow):
    """A release compared with another one: its predecessor if it is a step, and the reference if it is a level."""

    __pydantic_config__ = STRICT

    case: Text
    metric: Metric
    older: Text
    newer: Text
    rounds: int

    @property
    def is_named(self) -> bool:
        """Whether sentences about the whole atlas name it: a difference that survives the correction over all rows."""
        return self.report_verdict in ("slower", "faster")


@dataclass(frozen=True, kw_only=True)
class AtlasResult:
    """Whether a release returns the same as its predecessor in a case."""

    __pydantic_config__ = STRICT

    case: Text
    older: Text
    newer: Text
    verdict: OutputVerdict
    difference: float | None
    reason: Text


@dataclass(frozen=True, kw_only=True)
class AtlasCause:
    """What `why` found out about a step, in sentences."""

    __pydantic_config__ = STRICT

    case: Text
    metric: Metric
    older: Text
    newer: Text
    findings: tuple[Text, ...]


@dataclass(frozen=True, kw_only=True)
class AtlasClaim:
    """A published claim that reports the effect that was measured in a step."""

    __pydantic_config__ = STRICT

    case: Text
    metric: Metric
    older: Text
    newer: Text
    name: Text
    title: Text
    source: Text


@dataclass(frozen=True, kw_only=True)
class AtlasFigures:
    """A whole atlas of one machine; releases are in order, the newest last. Levels are against the reference."""

    __pydantic_config__ = STRICT

    title: Text
    built: Text
    tool: Text
    margin: float
    reference: Text
    machine: Mapping[Text, Text]
    releases: Annotated[tuple[AtlasRelease, ...], Field(min_length=2, max_length=MOST_RELEASES)]
    cases: Annotated[tuple[AtlasCase, ...], Field(max_length=MOST_CASES)]
    cells: tuple[AtlasCell, ...]
    steps: tuple[AtlasRatio, ...]
    levels: tuple[AtlasRatio, ...]
    results: tuple[AtlasResult, ...]
    causes: tuple[AtlasCause, ...]
    claims: tuple[AtlasClaim, ...] = ()
    notes: tuple[Text, ...] = ()
    judged_together: int = 0

    @cached_property
    def by_cell(self) -> Mapping[tuple[str, str], AtlasCell]:
        return {(each.case, each.release): each for each in self.cells}

    @cached_property
    def by_step(self) -> Mapping[tuple[str, Metric, str], AtlasRatio]:
        """The steps by case, metric and newer release."""
        return {(each.case, each.metric, each.newer): each for each in self.steps}

    @cached_property
    def by_level(self) -> Mapping[tuple[str, Metric, str], AtlasRatio]:
        return {(each.case, each.metric, each.newer): each for each in self.levels}

    @cached_property
    def largest(self) -> tuple[AtlasRatio, ...]:
        """The steps that sentences may name, the largest ratio first, and differences after all ratios."""
        named = (each for each in self.steps if each.is_named)
        return tuple(sorted(named, key=lambda each: (each.difference is not None, -each.distance)))

    def find_cause(self, step: AtlasRatio) -> tuple[str, ...]:
        return next((each.findings for each in self.causes if _names(each, step)), ())

    def find_claims(self, step: AtlasRatio) -> tuple[AtlasClaim, ...]:
        return tuple(each for each in self.claims if _names(each, step))

    @property
    def charted(self) -> tuple[Metric, ...]:
        """The metrics that have levels, those of charts first."""
        found = {each.metric for each in self.levels}
        return tuple(metric for metric in dict.fromkeys((*CHARTED, *METRICS)) if metric in found)


def _names(each: AtlasCause | AtlasClaim, step: AtlasRatio) -> bool:
    return (each.case, each.metric, each.older, each.newer) == (step.case, step.metric, step.older, step.newer)


@cache
def _adapter() -> TypeAdapter[AtlasFigures]:
    return TypeAdapter(AtlasFigures)


def make_figures_object(figures: AtlasFigures) -> dict[str, Any]:
    """Return the `tfcompare.atlas/1` object, which is part of the interface."""
    return {"schema": ATLAS.mark, **json.loads(_adapter().dump_json(figures))}


def figures_as_json(figures: AtlasFigures) -> str:
    # One line per entry keeps differences between two atlases readable.
    return strict_json.dump(make_figures_object(figures), indent=1)


def read_figures(path: Path) -> AtlasFigures:
    """Read the figures of an atlas, which may be another person's.

    Raises ContractBroken unless they have the form that tfcompare writes.
    """
    missing = f"holds no figures of an atlas (there is no {path.name})"
    figures = read_stamped(path, ATLAS, _adapter(), MOST_BYTES, missing)
    if wrong := next(_list_faults(figures), ""):
        raise ContractBroken(f"{path} is not what this tfcompare writes ({wrong}): {DAMAGED}")
    return figures


def _list_faults(figures: AtlasFigures) -> Iterator[str]:
    """Yield what pages could not be made of, although each value has the right type."""
    cases, releases = {each.label for each in figures.cases}, {each.name for each in figures.releases}
    if len(cases) < len(figures.cases) or len(releases) < len(figures.releases):
        yield "a case or a release is in it twice"
    if any(each.label != each.case.label for each in figures.cases):
        yield "the label of a case is not that of its parameters"
    if len(figures.cells) > len(cases) * len(releases):
        yield "it has more cells than cases and releases"
    named: list[tuple[str, tuple[str, ...]]] = [(each.case, (each.release,)) for each in figures.cells]
    named += [(each.case, (each.newer,)) for each in figures.levels]
    others = (figures.steps, figures.results, figures.causes, figures.claims)
    named += [(each.case, (each.older, each.newer)) for of_kind in others for each in of_kind]
    if unknown := next((case for case, of in named if case not in cases or not releases.issuperset(of)), None):
        yield f"it has figures of {unknown[:100]!r} in a release or a case that it does not list"
    if any(each.older != figures.reference for each in figures.levels):
        yield "a level is against another release than the others"
    for each in (*figures.steps, *figures.levels):
        ends = (each.ratio, each.ci_low, each.ci_high)
        if any(value is not None and not 0 < value < math.inf for value in ends):
            yield f"a ratio of {each.metric} is no positive number"
        by_difference = METRICS[each.metric].units is not None
        if (each.ratio if by_difference else each.difference) is not None:
            yield f"{each.metric} is compared by {'differences' if by_difference else 'ratios'}, and has the other"
    numbers = [value for cell in figures.cells for value in cell.figures.values()]
    ratios = (*figures.steps, *figures.levels)
    numbers += [value for each in ratios for value in (each.difference, each.p) if value is not None]
    if not all(map(math.isfinite, (*numbers, figures.margin))):
        yield "a figure is no number"
    if not figures.machine.get("memory_mb", "0").isdecimal():
        yield "the memory of its machine is no number"


def cut(text: str) -> str:
    """Return a text that fits into the figures."""
    return clip(text, LONGEST_TEXT)
