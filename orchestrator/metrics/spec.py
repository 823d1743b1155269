"""What a metric is: a figure of every replicate by which two arms are compared, and the words for it."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median, median_low
from typing import Literal

from orchestrator.metrics.units import COUNT, Units
from orchestrator.model import ArmKey, ArmResult, Magnitude, Metric, Replicate
from orchestrator.stats.scale import RATIOS, Differences, MetricScale

Unit = Literal["ms", "bytes", "count"]
# A figure on the scale of its metric, or those of the bursts of a replicate in order; without any, the replicate has no
# such figure.
Values = tuple[float, ...]

PERCENTAGE = re.compile(r"(?P<number>\d{1,6}(?:\.\d{1,6})?) ?%?")


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """A metric: more of it is worse.

    `more` and `less` complete a sentence about a version.
    """

    name: Metric
    # As a heading, and in the legend of tables.
    about: str
    meaning: str = ""
    more: str
    less: str
    # The verdicts as a person reads them.
    worse: str = "slower"
    better: str = "faster"
    values: Callable[[Replicate], Values]
    # The units of a metric whose arms are compared by their difference; all others are by their ratio.
    units: Units | None = None
    # The step in which its figures are read, if that is no small part of what matters.
    resolution: float = 0.0
    # The figure of a replicate in its unit, and how it is printed; those that are not read of replicates have none.
    figure: Callable[[Replicate], float | None]
    unit: Unit = "ms"
    show: Callable[[float], str]
    # A share or, of differences, an amount, unless the user names one; without any, it is the margin of times.
    margin: float | None = None
    # Whether a replicate that makes a single call has it as well.
    of_openings: bool = False
    # Whether all cases of a version share it.
    of_targets: bool = False
    # Whether one look at it says all, so that nothing is left to chance.
    exact: bool = False
    # What is judged together with it.
    judged_with: tuple[Metric, ...] = ()
    # The fewest calls of a replicate that say anything; quick cases make them where a run asks for this metric.
    least_calls: int = 0

    @property
    def scale(self) -> MetricScale:
        return Differences(self.units.show, self.resolution) if self.units else RATIOS

    @property
    def column(self) -> str:
        """The name of its column in tables of figures, which are in seconds, bytes or counts."""
        return self.name + {"ms": "_s", "bytes": "_bytes", "count": ""}[self.unit]

    def export(self, figure: float) -> float:
        """Return a figure in the unit of files: seconds, bytes or a count."""
        return figure / 1e3 if self.unit == "ms" else figure

    def typical(self, replicates: Iterable[Replicate]) -> float | None:
        """Return the figure of an arm, given its replicates: the median of those that have one."""
        known = [figure for each in replicates if (figure := self.figure(each)) is not None]
        return (median_low if self.units is COUNT else median)(known) if known else None

    def describe(self, magnitude: Magnitude) -> str:
        """Return by how much two arms differ: `1.56x`, or the difference of a metric that is judged by it."""
        if self.units:
            return "" if magnitude.difference is None else self.units.show_difference(magnitude.difference)
        return "" if magnitude.ratio is None else f"{magnitude.ratio:.3g}x"

    def parse_amount(self, text: str) -> float | None:
        """Return an amount as people write it: a percentage or, of differences, in the units of the metric."""
        if self.units:
            return self.units.parse(text)
        match = PERCENTAGE.fullmatch(text.strip())
        return float(match["number"]) / 100 if match else None


def find_figure(spec: MetricSpec, arms: Iterable[ArmResult], key: ArmKey) -> float | None:
    """Return an arm's figure; of what all cases of a version share, that of any case that has it."""
    own = (arm for arm in arms if arm.key == key or (spec.of_targets and arm.target == key.target))
    figures = (arm.figures.get(spec.name) for arm in own)
    return next((figure for figure in figures if figure is not None), None)


def in_ms(time_ns: float | None) -> float | None:
    """Return a time in milliseconds; a replicate without it has 0 or nothing."""
    return time_ns / 1e6 if time_ns else None


def in_bytes(size_kb: int | None) -> float | None:
    """Return a size in bytes; a replicate without it has 0 or nothing."""
    return size_kb * 1024.0 if size_kb else None


def log_of(figure: float | None) -> Values:
    """Return the log of a figure; of a replicate without it, nothing."""
    return (math.log(figure),) if figure else ()


def show_bytes(size: float) -> str:
    """Format a size as `360 MiB`, `12.4 GiB` or, of what a call adds, `97.3 KiB`."""
    units = ((10 * 2**30, 2**30, ".1f", "GiB"), (2**20, 2**20, ".0f", "MiB"), (0, 2**10, ".1f", "KiB"))
    _, factor, form, unit = next(each for each in units if abs(size) >= each[0])
    return f"{size / factor:{form}} {unit}"
