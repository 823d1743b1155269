"""The page about two runs: which ratios changed between them, worst first, and what else differs."""

from collections.abc import Iterable

from orchestrator.reports.changes import (
    OWN_TIMES_RULE,
    RULE,
    ChangeRow,
    describe_between_runs,
    list_own_times,
    list_ratios,
    summarize_changes,
)
from orchestrator.reports.html.assets import FOLDER, asset, policy, template_environment
from orchestrator.reports.html.rows import VERDICTS, verdict_by
from orchestrator.results.compare_runs import ALPHA, Changes
from orchestrator.stats.slowdown import format_margin


def render_changes(changes: Changes) -> str:
    """Return the page; it needs no script."""
    style = asset("page.css")
    facts = (
        f"margin {format_margin(changes.margin)}",
        f"intervals at {1 - ALPHA:.0%}",
        *describe_between_runs(changes),
    )
    return (
        template_environment(FOLDER)
        .get_template("changes.html.j2")
        .render(
            policy=policy(style),
            style=style,
            earlier=changes.earlier.plan.run,
            later=changes.later.plan.run,
            summary=summarize_changes(changes.changes),
            rule=RULE,
            facts=" · ".join(facts),
            warnings=[*changes.broken, *changes.left_out],
            differences=changes.differences,
            tables={title: _sort(rows) for title, rows in list_ratios(changes).items()},
            own_times=_sort(list_own_times(changes)),
            own_times_rule=OWN_TIMES_RULE,
            verdict_by=verdict_by,
        )
    )


def _sort(rows: Iterable[ChangeRow]) -> list[ChangeRow]:
    return sorted(rows, key=lambda row: VERDICTS[row.judged.shown_verdict].rank)
