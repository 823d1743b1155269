"""The error of a report as a whole.

A row is judged among the comparisons of its metric. A report has several metrics and hundreds of rows, so where nothing
differs, some row of it still errs in one report of eight. Sentences about a whole report therefore name only what is
left after a correction over all of its comparisons.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from orchestrator.model import ReportRow

# At most this share of reports names an equal comparison. As for rows, a little less is given out.
MOST_REPORTS_WRONG, REPORT_ERROR = 0.05, 0.046

AnyRow = TypeVar("AnyRow", bound=ReportRow)


def find_limit(ps: Collection[float]) -> float:
    """Return the largest p that a report with these may name, or 0 if it may name nothing.

    This is Holm's correction. It holds however the comparisons depend on each other, and however many of them differ.
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
