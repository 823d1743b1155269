"""What a metric is: a figure of every replicate by which two arms are compared, and the words for it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from orchestrator.model import ArmResult, Metric

Unit = Literal["ms", "bytes", "traces"]
# The log of a figure, or of the bursts of a replicate in order; without any, the replicate has no such figure.
Logs = tuple[float, ...]


class Figures(Protocol):
    """What a replicate tells."""

    @property
    def bursts(self) -> Sequence[float]: ...
    @property
    def cpu_bursts(self) -> Sequence[float]: ...
    @property
    def percentiles(self) -> Logs: ...
    @property
    def first_call_ns(self) -> float: ...
    @property
    def import_ns(self) -> int | None: ...
    @property
    def build_ns(self) -> int: ...
    @property
    def step_ns(self) -> int | None: ...
    @property
    def peak_rss_kb(self) -> int | None: ...
    @property
    def memory_kb(self) -> int | None: ...
    @property
    def gpu_memory_kb(self) -> int | None: ...
    @property
    def growth_bytes(self) -> int | None: ...
    @property
    def growth_calls(self) -> int | None: ...
    @property
    def traces(self) -> int | None: ...


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """A metric: more of it is worse.

    `key` is its name in files, and `name` the one that people read and write. `more` and `less` complete a sentence
    about a version.
    """

    key: Metric
    name: str
    # As a heading.
    about: str
    more: str
    less: str
    # The verdicts as a person reads them.
    worse: str = "slower"
    better: str = "faster"
    logs: Callable[[Figures], Logs]
    # An arm's typical figure, and how it is printed.
    figure: Callable[[ArmResult], float | None]
    unit: Unit = "ms"
    show: Callable[[float], str]
    # Unless the user names one; without any, it is the margin of times.
    margin: float | None = None
    # Whether a replicate that makes a single call has it as well.
    of_openings: bool = False
    # Whether all cases of a version share it.
    of_versions: bool = False
    # Whether one look at it says all, so that nothing is left to chance.
    exact: bool = False
    # The fewest calls of a replicate that say anything; quick cases make them where a run asks for this metric.
    least_calls: int = 0


def log_of(figure: float | None) -> Logs:
    """Return the log of a figure; of a replicate without it, nothing."""
    return (math.log(figure),) if figure else ()


def show_bytes(size: float) -> str:
    """Format a size as `360 MiB`, `12.4 GiB` or, of what a call adds, `97.3 KiB`."""
    units = ((10 * 2**30, 2**30, ".1f", "GiB"), (2**20, 2**20, ".0f", "MiB"), (0, 2**10, ".1f", "KiB"))
    _, factor, form, unit = next(each for each in units if abs(size) >= each[0])
    return f"{size / factor:{form}} {unit}"
