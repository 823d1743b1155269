"""The comparison of two runs: what differed between them, and which ratios changed."""

from collections import Counter
from collections.abc import Iterable, Sequence
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
    format_interval,
    format_verdict,
    ratio,
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


def layout_changes(changes: Changes, width: int) -> RenderableType:
    notes = Notes()
    parts: list[RenderableType] = [_head(changes)]
    parts += [safe_text(f"warning: {text}", style="yellow") for text in (*changes.broken, *changes.left_out)]
    if changes.differences:
        parts += [Text(), _differences(changes)]
    rows = list(zip(map(name_table, changes.changes), name_ratios(changes), changes.changes, strict=True))
    for title in dict.fromkeys(of for of, _, _ in rows):
        parts += [Text(), _ratios(title, [row[1:] for row in rows if row[0] == title], notes)]
    if changes.own_times:
        parts += [Text(), _own_times(changes, notes)]
    return Group(*parts, *below(notes.lines(ALPHA)))


def summarize_changes(changes: Sequence[RatioChange]) -> str:
    return f"{_count(changes, 'ratio')}."


def describe_weighed(changes: Changes) -> list[str]:
    """Say of how many changes the interval includes what earlier runs differ by."""
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
            *(safe_text(line, style="dim") for line in describe_weighed(changes)),
            safe_text(summarize_changes(changes.changes)),
        ]
    )


def _differences(changes: Changes) -> Grid:
    title = safe_text("what differs between the runs", style="bold")
    grid = Grid(title=title, headers=("", "earlier", "later"), right=(False,) * 3, narrowest=NARROWEST)
    for difference in changes.differences:
        grid.add(difference.what, difference.earlier, difference.later)
    return grid


def _ratios(title: str, named: Iterable[tuple[str, RatioChange]], notes: Notes) -> Grid:
    grid = Grid(
        title=safe_text(title, style="bold"),
        headers=("case", "earlier", "later", "change", "interval", axis(NARROW_BAR_CELLS), "verdict"),
        right=(False, True, True, True, True, False, False),
        narrowest=NARROWEST,
    )
    for name, change in named:
        metric = change.pair.metric
        grid.add(
            name,
            *(show_estimate(each, metric) for each in (change.earlier, change.later, change)),
            show_interval(change, metric),
            _picture(change),
            format_verdict(change, change.reason, notes, metric=metric),
        )
    return grid


def _own_times(changes: Changes, notes: Notes) -> RenderableType:
    """Return a table of the arms whose own time changed, and a line about all."""
    named = zip(names_of_arms(changes), changes.own_times, strict=True)
    moved = [(name, change) for name, change in named if change.size]
    grid = Grid(
        title=safe_text(OWN_TIMES, style="bold"),
        headers=("case", "target", "earlier", "later", "change", "interval", "verdict"),
        right=(False, False, True, True, True, True, False),
        narrowest=NARROWEST,
    )
    for name, change in moved:
        grid.add(
            name,
            str(change.arm.target),
            *(format_time(arm.time_ms) for arm in (change.earlier, change.later) if arm.time_ms is not None),
            "" if change.ratio is None else ratio(change.ratio),
            format_interval(change),
            format_verdict(change, change.reason, notes),
        )
    return Group(*([grid] if moved else []), safe_text(describe_own_times(changes.own_times), style="dim"))


def describe_own_times(changes: Sequence[TimeChange]) -> str:
    return f"{_count(changes, 'own time')}. {OWN_TIMES_RULE}"


def names_of_arms(changes: Changes) -> list[str]:
    cases = short_names(arm.case for arm in changes.earlier.arms)
    return [cases.get(change.arm.case, change.arm.case) for change in changes.own_times]


def name_table(change: RatioChange) -> str:
    """Return the title of the table that a change belongs to: what its ratios compare."""
    pair = change.pair
    of = "" if pair.metric == "time" else f", {MEASURES[pair.metric]}"
    return f"{pair.candidate} against {pair.baseline}{of}" if pair.kind == "target" else f"inside {pair.target}{of}"


def name_ratios(changes: Changes) -> list[str]:
    """Return a short name for each ratio."""
    cases = short_names(arm.case for arm in changes.earlier.arms)
    inside = names_of_pairs(change.earlier for change in changes.changes if change.pair.kind == "case")
    labels = ((change, change.pair.arms[0].case) for change in changes.changes)
    return [
        cases.get(label, label) if change.pair.kind == "target" else inside(change.earlier) for change, label in labels
    ]


def _picture(change: RatioChange) -> Text:
    verdict = change.shown_verdict
    return Text(bar(change.ratio, verdict, NARROW_BAR_CELLS), STYLES[verdict]) if change.ratio else Text()


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
