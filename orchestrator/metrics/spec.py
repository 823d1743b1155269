"""The definition of a metric: a figure of every replicate by which two arms are compared, and the words for it."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median, median_low
from typing import Literal

from orchestrator.metrics.units import COUNT, Units
from orchestrator.model import ArmKey, ArmResult, Magnitude, Metric, Replicate
from orchestrator.stats.scale import RATIOS, Differences, MetricScale

Unit = Literal["ms", "bytes", "count", "joules"]
# Values are figures of a replicate on the scale of a metric: one for the replicate, or one per burst in order. They are
# empty if the replicate has no such figure.
Values = tuple[float, ...]

PERCENTAGE = re.compile(r"(?P<number>\d{1,6}(?:\.\d{1,6})?) ?%?")


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """A metric; a larger figure is worse.

    `more` and `less` complete a sentence about a version.
    """

    name: Metric
    # `about` is the heading, and `meaning` appears in the legend of tables.
    about: str
    meaning: str = ""
    more: str
    less: str
    # These are the verdicts as a person reads them.
    worse: str = "slower"
    better: str = "faster"
    values: Callable[[Replicate], Values]
    # Arms are compared by their difference if the metric has units, and by their ratio otherwise.
    units: Units | None = None
    # Figures are read in steps of this size. It is 0 if the steps are too small to matter.
    resolution: float = 0.0
    # `figure` reads a replicate's figure in its unit, or None if the metric is not read from replicates. `show` prints
    # it.
    figure: Callable[[Replicate], float | None]
    unit: Unit = "ms"
    show: Callable[[float], str]
    # The margin is a share or, for a metric of differences, an amount. It applies unless the user names one. None
    # stands for the margin of times.
    margin: float | None = None
    # If set, a replicate that makes a single call also has it.
    of_openings: bool = False
    # If set, all cases of a version share it.
    of_targets: bool = False
    # If set, the figure is exact, and chance plays no part.
    exact: bool = False
    # This reads the figure of the next call of a replicate. Counts that differ from call to call are not compared.
    read_next: Callable[[Replicate], float | None] | None = None
    # If set, each minor version of Python counts in its own way.
    by_python: bool = False
    # If set, only TensorFlow has it, and no other backend of Keras.
    of_tensorflow: bool = False
    # These metrics are judged together with it.
    judged_with: tuple[Metric, ...] = ()
    # A replicate needs this many calls to show anything. Quick cases make them if a run asks for this metric.
    least_calls: int = 0
    # Bursts are at least this long if a run asks for this metric.
    least_burst_s: float = 0.0

    @property
    def scale(self) -> MetricScale:
        return Differences(self.units.show, self.resolution) if self.units else RATIOS

    @property
    def column(self) -> str:
        """The name of its column in tables of figures, which are in seconds, bytes, joules or counts."""
        return self.name + {"ms": "_s", "bytes": "_bytes", "joules": "_joules", "count": ""}[self.unit]

    def export(self, figure: float) -> float:
        """Return a figure in the unit of files: seconds, bytes, joules or a count."""
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
        """Parse an amount as people write it: a percentage or, for a metric of differences, in its units."""
        if self.units:
            return self.units.parse(text)
        match = PERCENTAGE.fullmatch(text.strip())
        return float(match["number"]) / 100 if match else None


def find_figure(spec: MetricSpec, arms: Iterable[ArmResult], key: ArmKey) -> float | None:
    """Return an arm's figure; if all cases of a version share it, any case may provide it."""
    own = (arm for arm in arms if arm.key == key or (spec.of_targets and arm.target == key.target))
    figures = (arm.figures.get(spec.name) for arm in own)
    return next((figure for figure in figures if figure is not None), None)


def in_ms(time_ns: float | None) -> float | None:
    """Return a time in milliseconds, or None if the replicate lacks it; a stored 0 also means None."""
    return time_ns / 1e6 if time_ns else None


def in_bytes(size_kb: int | None) -> float | None:
    """Return a size in bytes, or None if the replicate lacks it; a stored 0 also means None."""
    return size_kb * 1024.0 if size_kb else None


def log_of(figure: float | None) -> Values:
    """Return the log of a figure, or nothing if the replicate lacks it."""
    return (math.log(figure),) if figure else ()


def show_bytes(size: float) -> str:
    """Format a size as `360 MiB`, `12.4 GiB` or, for growth per call, `97.3 KiB`."""
    units = ((10 * 2**30, 2**30, ".1f", "GiB"), (2**20, 2**20, ".0f", "MiB"), (0, 2**10, ".1f", "KiB"))
    _, factor, form, unit = next(each for each in units if abs(size) >= each[0])
    return f"{size / factor:{form}} {unit}"


def show_energy(joules: float) -> str:
    """Format an energy as `3.21 mJ` or `1.5 J`."""
    return f"{joules:.3g} J" if joules >= 1 else f"{joules * 1e3:.3g} mJ"
