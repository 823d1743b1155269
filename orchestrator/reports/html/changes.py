"""The page about two runs: which ratios changed between them, worst first, and what else differs."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.reports import changes as texts
from orchestrator.reports.changes import OWN_TIMES_RULE, RULE, describe_weighed, summarize_changes
from orchestrator.reports.html.assets import asset, policy
from orchestrator.reports.html.document import FOLDER, template_environment
from orchestrator.reports.html.escape import escape_value
from orchestrator.reports.html.rows import Verdict, format_ends_with_dash, verdict_by
from orchestrator.reports.magnitudes import show_estimate
from orchestrator.results.compare_runs import ALPHA, Changes, RatioChange, TimeChange
from orchestrator.stats.slowdown import format_margin
from orchestrator.terminal.durations import format_time


@dataclass(frozen=True)
class ChangeRow:
    name: str
    earlier: str
    later: str
    change: str
    interval: str
    verdict: Verdict
    reason: str


def render_changes(changes: Changes) -> str:
    """Return the page; it needs no script."""
    style = asset("page.css")
    titles = [texts.name_table(change) for change in changes.changes]
    rows = [_row(name, change) for name, change in zip(texts.name_ratios(changes), changes.changes, strict=True)]
    return (
        template_environment(FOLDER)
        .get_template("changes.html.j2")
        .render(
            policy=policy(style),
            style=style,
            earlier=escape_value(changes.earlier.plan.run),
            later=escape_value(changes.later.plan.run),
            summary=summarize_changes(changes.changes),
            rule=RULE,
            facts=" · ".join(
                (f"margin {format_margin(changes.margin)}", f"intervals at {1 - ALPHA:.0%}", *describe_weighed(changes))
            ),
            warnings=[escape_value(text) for text in (*changes.broken, *changes.left_out)],
            differences=[
                tuple(map(escape_value, (each.what, each.earlier, each.later))) for each in changes.differences
            ],
            tables=[
                (escape_value(title), _sort(row for of, row in zip(titles, rows, strict=True) if of == title))
                for title in dict.fromkeys(titles)
            ],
            own_times=_sort(map(_own_time, texts.names_of_arms(changes), changes.own_times)),
            own_times_rule=OWN_TIMES_RULE,
        )
    )


def _row(name: str, change: RatioChange) -> ChangeRow:
    earlier, later = (show_estimate(each, change.metric) for each in (change.earlier, change.later))
    return _make_row(name, earlier, later, change)


def _own_time(name: str, change: TimeChange) -> ChangeRow:
    earlier, later = (format_time(arm.time_ms or 0.0) for arm in (change.earlier, change.later))
    return _make_row(f"{name} in {change.arm.target}", earlier, later, change)


def _make_row(name: str, earlier: str, later: str, change: RatioChange | TimeChange) -> ChangeRow:
    return ChangeRow(
        name=escape_value(name),
        earlier=earlier,
        later=later,
        change=show_estimate(change, change.metric),
        interval=format_ends_with_dash(change, change.metric),
        verdict=verdict_by(change.metric, change.shown_verdict),
        reason=escape_value(change.reason),
    )


def _sort(rows: Iterable[ChangeRow]) -> list[ChangeRow]:
    return sorted(rows, key=lambda row: row.verdict.rank)
