"""The error of a report as a whole.

A row is judged among the comparisons of its metric. A report has several metrics and hundreds of rows, so even if
nothing differs, one report in eight has a wrong row. Sentences about a whole report therefore name only the differences
that remain after a correction over all of its comparisons.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from orchestrator.model import ReportRow

# No more than this share of reports names a difference where there is none. The error in use is slightly lower.
MOST_REPORTS_WRONG, REPORT_ERROR = 0.05, 0.046

AnyRow = TypeVar("AnyRow", bound=ReportRow)


def find_limit(ps: Collection[float]) -> float:
    """Return the largest p that a report with these comparisons may name, or 0 if it may name nothing.

    This is Holm's correction. It is valid however the comparisons depend on each other, and however many differ.
    """
    limit = 0.0
    for smaller, p in enumerate(sorted(ps)):
        if p > REPORT_ERROR / (len(ps) - smaller):
            break
        limit = p
    return limit


def mark_row_only(row: AnyRow, limit: float, count: int) -> AnyRow:
    """Mark a row that differs if it is not certain among this many comparisons."""
    differs = row.verdict in ("slower", "faster") or row.size == "slight"
    if row.p is None or row.p <= limit or not differs:
        return row
    return replace(row, row_only=True, reason=f"certain in its row, but not among all {count} comparisons")
