"""The comparison of two runs: what differed between them, and which ratios changed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from orchestrator.metrics import METRICS, describe_verdict
from orchestrator.reports.case_names import make_pair_namer as names_of_pairs
from orchestrator.reports.case_names import short_names
from orchestrator.reports.columns import (
    MARKS,
    MEASURES,
    NARROW_BAR_CELLS,
    STYLES,
    Notes,
    axis,
    bar,
    format_verdict,
)
from orchestrator.reports.grid import Grid
from orchestrator.reports.json import pair_object, run_object
from orchestrator.reports.magnitudes import show_estimate, show_interval
from orchestrator.reports.reasons import UNCERTAIN, describe_in_report
from orchestrator.reports.table import below
from orchestrator.results.compare_runs import ALPHA, Changes, RatioChange, TimeChange
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.durations import format_time
from orchestrator.terminal.strict_json import OF_DIFFERENCE, pick
from orchestrator.terminal.text import safe_text

SCHEMA = "tfcompare.changes/1"
JUDGED = "change=ratio ci_low ci_high verdict reason? size"
CHANGE = (
    "earlier_ratio=earlier.ratio later_ratio=later.ratio earlier_difference=earlier.difference "
    f"later_difference=later.difference {OF_DIFFERENCE} {JUDGED}"
)
OWN_TIME = (
    "workload=earlier.case.workload params=earlier.case.params target=arm.target earlier_s=earlier.time_ms "
    f"later_s=later.time_ms {JUDGED}"
)
NARROWEST = 16
RULE = "two runs are not paired: what is compared are the ratios inside each"
OWN_TIMES = "each version's own time"
OWN_TIMES_RULE = "The machine has not restarted in between; what else it did counts as well."


@dataclass(frozen=True)
class ChangeRow:
    """A ratio in both runs, or a version's own time, as tables and pages show it."""

    name: str
    target: str
    earlier: str
    later: str
    judged: RatioChange | TimeChange

    @property
    def change(self) -> str:
        return show_estimate(self.judged, self.judged.metric)

    @property
    def interval(self) -> str:
        return show_interval(self.judged, self.judged.metric)


def list_ratios(changes: Changes) -> dict[str, list[ChangeRow]]:
    """Return the rows by the title of their table, which says what the ratios compare."""
    cases = short_names(arm.case for arm in changes.earlier.arms)
    inside = names_of_pairs(change.earlier for change in changes.changes if change.pair.kind == "case")
    tables: dict[str, list[ChangeRow]] = {}
    for change in changes.changes:
        pair, metric, label = change.pair, change.metric, change.pair.arms[0].case
        of = "" if metric == "time" else f", {MEASURES[metric]}"
        if pair.kind == "target":
            title, name = f"{pair.candidate} against {pair.baseline}{of}", cases.get(label, label)
        else:
            title, name = f"inside {pair.target}{of}", inside(change.earlier)
        earlier, later = (show_estimate(each, metric) for each in (change.earlier, change.later))
        tables.setdefault(title, []).append(ChangeRow(name, "", earlier, later, change))
    return tables


def list_own_times(changes: Changes) -> list[ChangeRow]:
    cases = short_names(arm.case for arm in changes.earlier.arms)
    return [
        ChangeRow(
            cases.get(change.arm.case, change.arm.case),
            str(change.arm.target),
            format_time(change.earlier.time_ms or 0.0),
            format_time(change.later.time_ms or 0.0),
            change,
        )
        for change in changes.own_times
    ]


def layout_changes(changes: Changes, width: int) -> RenderableType:
    notes = Notes()
    parts: list[RenderableType] = [_head(changes)]
    parts += [safe_text(f"warning: {text}", style="yellow") for text in (*changes.broken, *changes.left_out)]
    if changes.differences:
        parts += [Text(), _differences(changes)]
    for title, rows in list_ratios(changes).items():
        parts += [Text(), _ratios(title, rows, notes)]
    if changes.own_times:
        parts += [Text(), _own_times(changes, notes)]
    return Group(*parts, *below(notes.lines(ALPHA)))


def summarize_changes(changes: Sequence[RatioChange]) -> str:
    return f"{_count(changes, 'ratio')}."


def describe_between_runs(changes: Changes) -> list[str]:
    """Say how many intervals include the differences between earlier runs of this machine."""
    if not changes.weighed:
        return []
    return [f"{format_count(changes.weighed, 'interval')} with what runs of this machine differ by, from its history"]


def _count(changes: Sequence[RatioChange] | Sequence[TimeChange], what: str) -> str:
    words = (*MARKS, UNCERTAIN)
    in_order = sorted(changes, key=lambda change: words.index(describe_in_report(change)))
    counts = Counter(describe_verdict(change.metric, describe_in_report(change)) for change in in_order)
    listing = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return f"{format_count(len(changes), what)} in both: {listing}"


def _head(changes: Changes) -> Text:
    rows = changes.changes
    earlier, later = (f"{run.plan.run} ({run.plan.created:%Y-%m-%d})" for run in (changes.earlier, changes.later))
    return Text("\n").join(
        [
            safe_text(f"tfcompare compare {earlier} with {later}", style="bold"),
            safe_text(RULE, style="dim"),
            safe_text(
                f"margin {format_margin(changes.margin)} · intervals at {1 - ALPHA:.0%} · "
                "change: later ratio / earlier"
                + (", of differences: later - earlier" if any(METRICS[each.metric].units for each in rows) else ""),
                style="dim",
            ),
            *(safe_text(line, style="dim") for line in describe_between_runs(changes)),
            safe_text(summarize_changes(changes.changes)),
        ]
    )


def _differences(changes: Changes) -> Grid:
    title = safe_text("what differs between the runs", style="bold")
    grid = Grid(title=title, headers=("", "earlier", "later"), right=(False,) * 3, narrowest=NARROWEST)
    for difference in changes.differences:
        grid.add(difference.what, difference.earlier, difference.later)
    return grid


def _ratios(title: str, rows: Iterable[ChangeRow], notes: Notes) -> Grid:
    grid = Grid(
        title=safe_text(title, style="bold"),
        headers=("case", "earlier", "later", "change", "interval", axis(NARROW_BAR_CELLS), "verdict"),
        right=(False, True, True, True, True, False, False),
        narrowest=NARROWEST,
    )
    for row in rows:
        change, verdict = row.judged, row.judged.shown_verdict
        picture = Text(bar(change.ratio, verdict, NARROW_BAR_CELLS), STYLES[verdict]) if change.ratio else Text()
        judged = format_verdict(change, change.reason, notes, metric=change.metric)
        grid.add(row.name, row.earlier, row.later, row.change, row.interval, picture, judged)
    return grid


def _own_times(changes: Changes, notes: Notes) -> RenderableType:
    """Return a table of the arms whose own time changed, and a line about all."""
    moved = [row for row in list_own_times(changes) if row.judged.size]
    grid = Grid(
        title=safe_text(OWN_TIMES, style="bold"),
        headers=("case", "target", "earlier", "later", "change", "interval", "verdict"),
        right=(False, False, True, True, True, True, False),
        narrowest=NARROWEST,
    )
    for row in moved:
        judged = format_verdict(row.judged, row.judged.reason, notes)
        grid.add(row.name, row.target, row.earlier, row.later, row.change, row.interval, judged)
    about = f"{_count(changes.own_times, 'own time')}. {OWN_TIMES_RULE}"
    return Group(*([grid] if moved else []), safe_text(about, style="dim"))


def changes_as_object(changes: Changes) -> dict[str, Any]:
    """Return the `tfcompare.changes/1` object, which is part of the interface."""
    return {
        "schema": SCHEMA,
        "earlier": run_object(changes.earlier.evaluation),
        "later": run_object(changes.later.evaluation),
        "margin": changes.margin,
        "differences": [pick(difference, "what earlier later") for difference in changes.differences],
        "changes": [{**pair_object(change.pair), **pick(change, CHANGE)} for change in changes.changes],
        "own_times": [pick(change, OWN_TIME) for change in changes.own_times],
        "warnings": [*changes.broken, *changes.left_out],
    }
