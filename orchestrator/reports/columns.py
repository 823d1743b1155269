"""The columns of the tables: their names, their meaning, and how they are drawn from an arm and its comparison."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from rich.console import JustifyMethod
from rich.text import Text

from orchestrator.catalog import did_you_mean
from orchestrator.errors import UsageError
from orchestrator.metrics import METRICS
from orchestrator.metrics.followed import TIME, Followed, describe_change
from orchestrator.metrics.spec import show_bytes
from orchestrator.model import ArmResult, Comparison, Drift, Judge, Magnitude, Metric, ShownVerdict
from orchestrator.stats.slowdown import format_slowdown
from orchestrator.terminal.durations import format_time
from orchestrator.terminal.text import clip, safe_text

STYLES: dict[ShownVerdict, str] = {
    "slower": "bold red", "faster": "bold green", "slightly slower": "red", "slightly faster": "green", "same": "",
    "inconclusive": "yellow",
}  # fmt: skip
MARKS: dict[ShownVerdict, str] = {
    "slower": "▲", "faster": "▼", "slightly slower": "△", "slightly faster": "▽", "same": "=", "inconclusive": "?",
}  # fmt: skip
# An arm without a verdict has one of these.
OTHER_MARKS: Mapping[str, str] = {
    "baseline": "·", "refused": "–", "died": "✕", "postponed": "…", "not measured": "…", "not compared": "·",
}  # fmt: skip
# Of a difference that is certain, where the interval reaches into the margin.
SMALL_MARKS: dict[ShownVerdict, str] = {**MARKS, "slower": "▴", "faster": "▾"}
ABOUT_SMALL_MARKS = "▴ ▾ of uncertain size: the interval reaches into the margin"
# A metric in words, for headings and sentences.
MEASURES: Mapping[Metric, str] = {spec.name: spec.about for spec in METRICS.values()}
STAR, WAVE = "*", "~"
# Cells on each side of the bar's middle; the smallest bar is half a cell.
BAR_CELLS, NARROW_BAR_CELLS = 4, 3
# Characters of a footnote; the run's journal has the full text.
LONGEST = 1000


class Notes:
    """Footnotes of a report: reasons, drifting arms, and the meaning of the star if one was set.

    Each reason is listed once, and reasons are numbered in the order of first use.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._drifts: dict[str, Drift] = {}
        self._starred = False
        self._small = False

    def mark(self, reason: str) -> str:
        return f" ({self._numbers.setdefault(reason, len(self._numbers) + 1)})" if reason else ""

    def drifting(self, arm: ArmResult) -> str:
        """Return the mark that precedes the time of an arm whose calls do not settle, or ''.

        It does not depend on whether a verdict rests on the arm.
        """
        if arm.drift is None:
            return ""
        self._drifts[f"{arm.target} {arm.case.label}"] = arm.drift
        return f"{WAVE} "

    def star(self) -> str:
        self._starred = True
        return STAR

    def sign(self, magnitude: Magnitude) -> str:
        """Return the mark of a verdict."""
        self._small |= magnitude.size == "clear"
        return mark_verdict(magnitude)

    def lines(self, alpha: float) -> list[Text]:
        lines = [
            safe_text(f"({number}) {clip(reason, LONGEST)}", style="dim") for reason, number in self._numbers.items()
        ]
        lines += [
            safe_text(f"{WAVE} {clip(arm, LONGEST)}: {drift}", style="dim") for arm, drift in self._drifts.items()
        ]
        if self._small:
            lines.append(Text(ABOUT_SMALL_MARKS, style="dim"))
        if self._starred:
            lines.append(
                Text(
                    f"{STAR} exploratory: more rounds were taken after the error of {alpha * 100:g} % was spent; "
                    "confirm it by a new run",
                    style="dim",
                )
            )
        return lines


Cell = Callable[[ArmResult, Comparison | None, Notes], str | Text]


@dataclass(frozen=True)
class CpuRatio:
    """The ratio of CPU times of a comparison, with its interval."""

    ratio: float
    ci_low: float | None
    ci_high: float | None


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table; those that are `usual` are shown unless others are named, however wide the terminal is."""

    name: str
    header: str
    of: Literal["arm", "comparison"]
    cell: Cell
    meaning: str = ""
    # Its name in the legend, if that is not its header.
    word: str = ""
    usual: bool = False
    justify: JustifyMethod = "right"


def ratio(value: float, decimals: int = 2) -> str:
    """Format a ratio with two or three figures, as many as such a measurement justifies, or with more next to 1."""
    if value < 0.1:
        return f"{value:.2g}x"
    return f"{value:.0f}x" if value >= 100 else f"{value:.1f}x" if value >= 10 else f"{value:.{decimals}f}x"


def mark_verdict(magnitude: Magnitude) -> str:
    return (SMALL_MARKS if magnitude.size == "clear" else MARKS)[magnitude.shown_verdict]


def _seconds(seconds: float) -> str:
    return format_time(seconds * 1e3)


def _of_metric(metric: Metric) -> Column:
    """Return the column of the figures of a metric."""
    spec = METRICS[metric]
    cell = _of_arm(lambda arm: arm.figures.get(metric), spec.show)
    return Column(
        name=metric.replace("_", "-"), header=metric.replace("_", " "), of="arm", cell=cell, meaning=spec.meaning
    )


def _of_arm(take: Callable[[ArmResult], float | None], format_value: Callable[[float], str]) -> Cell:
    def cell(arm: ArmResult, comparison: Comparison | None, notes: Notes) -> str:
        value = take(arm)
        return "" if value is None else format_value(value)

    return cell


def _of_comparison(take: Callable[[Comparison], float | None], format_value: Callable[[float], str]) -> Cell:
    def cell(arm: ArmResult, comparison: Comparison | None, notes: Notes) -> str:
        value = take(comparison) if comparison else None
        return "" if value is None else format_value(value)

    return cell


def _time(arm: ArmResult, comparison: Comparison | None, notes: Notes) -> str:
    return "" if arm.time_ms is None else notes.drifting(arm) + format_time(arm.time_ms)


class Bounded(Protocol):
    @property
    def ratio(self) -> float | None: ...

    @property
    def ci_low(self) -> float | None: ...

    @property
    def ci_high(self) -> float | None: ...


def format_interval(comparison: Bounded) -> str:
    if comparison.ci_low is None or comparison.ci_high is None:
        return ""
    return format_ends(comparison.ci_low, comparison.ci_high)


def format_ends(low: float, high: float) -> str:
    """Return an interval as in `1.05-1.16`; one that excludes 1 never seems to end there, as in `0.944-0.996`."""
    decimals = _count_decimals(low, high)
    return "-".join(_format_beside_one(end, decimals).removesuffix("x") for end in (low, high))


def format_estimate(comparison: Bounded) -> str:
    """Return a ratio without its interval, with as many digits as the interval needs."""
    if comparison.ratio is None:
        return ""
    if comparison.ci_low is None or comparison.ci_high is None:
        return ratio(comparison.ratio)
    return _format_beside_one(comparison.ratio, _count_decimals(comparison.ci_low, comparison.ci_high))


def format_ratio(comparison: Bounded) -> str:
    """Return a ratio as in `1.10x (1.05-1.16)`; too few rounds give no interval."""
    bounds = format_interval(comparison)
    return format_estimate(comparison) + (f" ({bounds})" if bounds else "")


def _format_beside_one(value: float, decimals: int) -> str:
    """Format a ratio with three decimals at most, unless it would look like 1 with them."""
    text = ratio(value, min(decimals, 3))
    return ratio(value, decimals) if float(text.removesuffix("x")) == 1 else text


def _count_decimals(low: float, high: float) -> int:
    """Return how many decimals show that an interval excludes 1, if it does."""
    decimals = 2
    while (low > 1 and float(f"{low:.{decimals}f}") == 1) or (high < 1 and float(f"{high:.{decimals}f}") == 1):
        decimals += 1
    return decimals


def bar(value: float, verdict: ShownVerdict | None = None, cells: int = BAR_CELLS) -> str:
    """Draw a ratio as a bar: from the middle to the right if slower, to the left if faster."""
    size = abs(math.log10(value))
    steps = min(round(size * 2 * cells), 2 * cells)
    if verdict in ("slower", "faster"):
        steps = max(steps, 1)
    full, half = divmod(steps, 2)
    beyond = size > 1.0
    if value >= 1:
        return " " * cells + "│" + ("█" * (full - beyond) + "▌" * half + "▶" * beyond).ljust(cells)
    return ("◀" * beyond + "▐" * half + "█" * (full - beyond)).rjust(cells) + "│" + " " * cells


def axis(cells: int = BAR_CELLS) -> str:
    """Return the header of a bar with this many cells on each side."""
    return "◂" + "1x".center(2 * cells - 1) + "▸"


def _bar(cells: int) -> Cell:
    def cell(arm: ArmResult, comparison: Comparison | None, notes: Notes) -> Text:
        if comparison is None or comparison.ratio is None:
            return Text()
        verdict = comparison.shown_verdict
        return Text(bar(comparison.ratio, verdict, cells), style=STYLES[verdict])

    return cell


def _ratio(arm: ArmResult, comparison: Comparison | None, notes: Notes) -> str:
    if comparison is None or comparison.seen_ratio is None:
        return ""
    return format_estimate(comparison) or ratio(comparison.seen_ratio)


def _interval(arm: ArmResult, comparison: Comparison | None, notes: Notes) -> str:
    return format_interval(comparison) if comparison else ""


def _verdict(arm: ArmResult, comparison: Comparison | None, notes: Notes) -> Text:
    """Return the verdict of an arm.

    A comparison without a ratio still has a verdict with a reason. One without a comparison may have died late.
    """
    if comparison is None:
        return Text(f"{arm.outcome}{notes.mark(arm.reason)}" if arm.outcome != "measured" else "")
    if comparison.missing and comparison.seen_ratio is not None:
        # The ratio is in its column, and the number of rounds here: a note would repeat both for every row.
        postponed = notes.mark(comparison.reason.removesuffix(comparison.so_far).removesuffix("; "))
        return Text(
            f"{MARKS['inconclusive']} {describe_rounds_so_far(comparison)}{postponed}", style=STYLES["inconclusive"]
        )
    return format_verdict(comparison, comparison.reason, notes, exploratory=comparison.exploratory)


def describe_rounds_so_far(comparison: Comparison) -> str:
    """Say in place of a verdict how many rounds a comparison has that has too few."""
    return (
        f"{comparison.rounds} of {comparison.rounds + comparison.missing} rounds" if comparison.rounds else "pilot only"
    )


def _wall_ms(arm: ArmResult) -> float | None:
    return arm.time_ms if arm.wall_ms is None else arm.wall_ms


def _cpu(arm: ArmResult, comparison: Comparison | None, notes: Notes) -> str:
    if comparison is None or comparison.cpu_ratio is None:
        return ""
    return format_ratio(CpuRatio(comparison.cpu_ratio, comparison.cpu_low, comparison.cpu_high))


def is_left_to_cpu(comparison: Comparison | None) -> bool:
    """Return whether wall time leaves it open what CPU time may answer."""
    return comparison is not None and comparison.verdict == "inconclusive" and comparison.cpu_ratio is not None


def _cpu_of_open(arm: ArmResult, comparison: Comparison | None, notes: Notes) -> str:
    return _cpu(arm, comparison, notes) if is_left_to_cpu(comparison) else ""


def format_verdict(
    magnitude: Magnitude, reason: str, notes: Notes, *, exploratory: bool = False, metric: Followed = TIME
) -> Text:
    star, verdict = notes.star() if exploratory else "", magnitude.shown_verdict
    word = describe_change(metric, verdict)
    return Text(f"{notes.sign(magnitude)} {word}{star}{notes.mark(reason)}", style=STYLES[verdict])


# From this width on, the bar has its full length.
WIDE = 100

COLUMNS: Mapping[str, Column] = {
    column.name: column
    for column in (
        _of_metric("build"),
        _of_metric("first"),
        Column(
            name="second", header="second", of="arm",
            cell=_of_arm(lambda arm: arm.second_ms, format_time), meaning="the second call, per step",
        ),
        replace(_of_metric("time"), usual=True, cell=_time),
        Column(
            name="items", header="items/s", of="arm",
            cell=_of_arm(lambda arm: arm.items_per_s, lambda rate: f"{rate:.3g}" if rate < 1000 else f"{rate:,.0f}"),
            meaning="examples, as the workload counts them, per second",
        ),
        Column(
            name="first-step", header="first step", of="arm", cell=_of_arm(lambda arm: arm.first_step_ms, format_time),
            meaning="from a program's call of fit to the end of its first step",
        ),
        _of_metric("step"),
        Column(
            name="loss", header="loss", of="arm",
            cell=_of_arm(lambda arm: arm.loss, lambda loss: f"{loss:.4g}"),
            meaning="after the last epoch",
        ),
        Column(
            name="train", header="train", of="arm",
            cell=_of_arm(lambda arm: arm.train_s, _seconds), meaning="all calls of a replicate, the first included",
        ),
        Column(
            name="ratio", header="ratio", of="comparison", usual=True, cell=_ratio,
        ),
        Column(name="interval", header="interval", of="comparison", usual=True, cell=_interval),
        Column(
            name="bar", header=axis(), word="bar", of="comparison", usual=True, justify="left",
            cell=_bar(BAR_CELLS), meaning="log scale, full at 10x",
        ),
        Column(name="verdict", header="verdict", of="comparison", usual=True, cell=_verdict, justify="left"),
        Column(
            name="study", header="study %", of="comparison",
            cell=_of_comparison(lambda comparison: comparison.seed_percent, lambda percent: f"{round(percent):+d}"),
            meaning="as the published study counts, + is faster",
        ),
        Column(name="rounds", header="rounds", of="arm", cell=_of_arm(lambda arm: arm.rounds, str)),
        Column(
            name="mde", header="mde", of="comparison",
            cell=_of_comparison(lambda comparison: comparison.mde, format_slowdown),
            meaning="the smallest slowdown that would typically have been called slower",
        ),
        Column(
            name="cpu-ratio", header="cpu ratio", of="comparison",
            cell=_cpu, meaning="of CPU times, which a busy machine disturbs less; no verdict depends on it",
        ),
        Column(
            name="wall", header="wall time", of="arm", cell=_of_arm(_wall_ms, format_time),
            meaning="after the warm-up, per step",
        ),
        Column(
            name="second-opinion", header="second opinion", of="comparison",
            cell=_of_comparison(lambda one: one.second_ratio, ratio), meaning="the ratio by Hodges and Lehmann",
        ),
        Column(
            name="sign-flip", header="sign-flip p", of="comparison",
            cell=_of_comparison(lambda comparison: comparison.sign_flip_p, lambda p: f"{p:.3f}"),
            meaning="how often arms swapped at random would differ as much",
        ),
        Column(
            name="resident", header="resident", of="arm",
            cell=_of_arm(lambda arm: arm.resident_bytes, show_bytes),
            meaning="a replicate's peak memory, with pages of files that it maps",
        ),
        *(_of_metric(metric) for metric in METRICS if metric not in ("time", "first", "build", "step")),
    )
}  # fmt: skip


CPU_OF_OPEN = replace(COLUMNS["cpu-ratio"], cell=_cpu_of_open)
# The column of times where these are judged by their CPU time.
CPU_TIME = replace(
    COLUMNS["time"],
    header="CPU time",
    meaning=COLUMNS["cpu"].meaning,
)


def parse_columns(text: str) -> tuple[str, ...]:
    """Return the names in `time,ratio,verdict`, or in `+build,first`, which adds to the default columns."""
    names = tuple(name.strip() for name in text.split(","))
    _parse(names)
    return names


def choose_columns(
    width: int, asked: Sequence[str] | None, *, items: bool = False, judge: Judge = "wall"
) -> tuple[Column, ...]:
    """Return the requested columns in the requested order.

    Columns added to the default ones are placed as in COLUMNS. With `items`, examples per second are one of these.
    """
    usual = [column for column in COLUMNS.values() if column.usual or (items and column.name == "items")]
    adding, named = _parse(asked) if asked else (True, ())
    chosen = [column for column in COLUMNS.values() if column in usual or column in named] if adding else named
    if judge == "cpu":
        chosen = [CPU_TIME if column.name == "time" else column for column in chosen]
    return tuple(_narrow(column) if column.name == "bar" and width < WIDE else column for column in chosen)


def shows_default(asked: Sequence[str] | None) -> bool:
    """Return whether the default columns are shown, possibly with others."""
    return not asked or _parse(asked)[0]


def _narrow(column: Column) -> Column:
    return replace(column, header=axis(NARROW_BAR_CELLS), cell=_bar(NARROW_BAR_CELLS))


def _parse(names: Sequence[str]) -> tuple[bool, tuple[Column, ...]]:
    adding = names[0].startswith("+")
    bare = [name.removeprefix("+").strip() if index == 0 else name for index, name in enumerate(names)]
    for name in bare:
        if name not in COLUMNS:
            raise UsageError(f"unknown column {name!r}{did_you_mean(name, COLUMNS)}; they are {', '.join(COLUMNS)}")
    return adding, tuple(COLUMNS[name] for name in dict.fromkeys(bare))


def legend(columns: Sequence[Column], judge: Judge = "wall") -> str:
    """Explain the columns shown, where their headers are not enough."""
    parts = [f"{column.word or column.header}: {column.meaning}" for column in columns if column.meaning]
    if any(column.of == "comparison" for column in columns):
        times = "CPU times" if judge == "cpu" else "times"
        parts.append(f"ratios and verdicts: of {times}, by round")
    return " · ".join(parts)
