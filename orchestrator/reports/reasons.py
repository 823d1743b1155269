"""Why comparisons have no verdict and arms no time, in one line per cause instead of one per row."""

import re
from collections.abc import Iterable, Iterator, Sequence

from orchestrator.model import Comparison, Evaluation, ReportRow
from orchestrator.stats.slowdown import format_slowdown
from orchestrator.terminal.counts import name_some

# What an undecided comparison's reason begins with or holds, and how several such comparisons are described together.
CLASSES: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"^too noisy"), "too noisy"),
    (re.compile(r"^postponed"), "postponed for want of budget"),
    (re.compile(r"needed for a verdict\)$"), "too few rounds for a verdict"),
    (re.compile(r"^not significant after"), "not significant after correcting for the number of comparisons"),
    (re.compile(r"no steady state"), "no steady state: the ratio changes while it is measured"),
    (re.compile(r"too short to be timed"), "calls too short to be timed: let one do more steps"),
)
OTHER = "for other reasons"
# How rows are counted that differ for themselves and not in the report as a whole.
UNCERTAIN = "not certain among all comparisons"


def describe_reasons(evaluation: Evaluation) -> Iterator[str]:
    """Yield a line about what is not decided for sure, and one about each reason why arms have no time."""
    undecided = [
        each
        for each in evaluation.comparisons
        if each.verdict == "inconclusive" and (each.estimate is not None or each.seen_ratio is not None)
    ]
    lines = []
    if undecided:
        classes = list(_by_class(undecided))
        parts = [_describe(name, own, count="" if len(classes) == 1 else f"{len(own)} ") for name, own in classes]
        lines.append(f"? {len(undecided)} of {len(evaluation.comparisons)} inconclusive: {', '.join(parts)}")
    if uncertain := count_uncertain((*evaluation.comparisons, *evaluation.of_metrics)):
        lines.append(f"{uncertain} of {evaluation.judged_together} certain only in the row: run the case alone")
    if lines:
        yield "; ".join(lines)
    untimed: dict[tuple[str, str], list[str]] = {}
    for arm in evaluation.arms:
        if arm.outcome != "measured":
            untimed.setdefault((arm.ending, arm.reason), []).append(f"{arm.target} {arm.case.label}")
    for (ending, reason), arms in untimed.items():
        yield f"{ending}: {name_some(arms)}: {reason}"


def describe_in_report(row: ReportRow) -> str:
    """Return the verdict as sentences about the whole report name it."""
    if not row.row_only:
        return row.shown_verdict
    return "same" if row.verdict == "same" else UNCERTAIN


def count_uncertain(rows: Iterable[ReportRow]) -> int:
    return sum(describe_in_report(each) == UNCERTAIN for each in rows)


def _by_class(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, list[Comparison]]]:
    classes: dict[str, list[Comparison]] = {}
    for each in comparisons:
        name = next((name for pattern, name in CLASSES if pattern.search(each.reason)), OTHER)
        classes.setdefault(name, []).append(each)
    yield from sorted(classes.items(), key=lambda item: -len(item[1]))


def _describe(name: str, comparisons: Sequence[Comparison], count: str) -> str:
    visible = sorted(each.mde for each in comparisons if each.mde is not None)
    if name != "too noisy" or not visible:
        return f"{count}{name}"
    least, most = format_slowdown(visible[0]), format_slowdown(visible[-1])
    span = least if least == most else f"{least} to {most}"
    return f"{count}{name} to see less than {span}"
