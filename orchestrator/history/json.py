"""The part of the history that is shown, in formats for programs: one object, or one row per night."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from orchestrator.history.model import Alarm, Change, Key, Segment, Series
from orchestrator.history.night_rows import NightRow, find_bounds, rows
from orchestrator.history.select import ShownPart, case_of
from orchestrator.terminal.strict_json import OF_RATIO, pick

SCHEMA = "tfcompare.history/1"
CHANGE = f"first last direction before after {OF_RATIO} p"
ALARM = (
    "id state since opened note? until series=key.id said? found_by surroundings run reproduce bisect? why? good? "
    "bad? commits? findings undoes? left apart"
)
CSV = (
    "case", "target", "reference", "device", "engine", "host", "night", "segment", "outcome", "reason", "ratio",
    "ci_low", "ci_high", "rounds", "stage", "build", "control", "changed", "metric", "result", "judge",
)  # fmt: skip

FindChanges = Callable[[Key, Segment], Sequence[Change]]


@dataclass(frozen=True, kw_only=True)
class ShownSeries:
    """A series with the nights that are shown, its total number of nights, and its alarms, open or not.

    Its changes are searched for only if few series are shown.
    """

    series: Series
    rows: tuple[NightRow, ...]
    nights: int
    alarms: tuple[Alarm, ...]
    changes: tuple[Change, ...] | None


def build_shown_series(
    picked: ShownPart, alarms: Sequence[Alarm], find: FindChanges | None = None
) -> list[ShownSeries]:
    """Return the picked series with what is shown of them.

    `find` returns the changes of a segment of a series. They are searched for in the whole segment, however little of
    it is shown.
    """
    return [
        ShownSeries(
            series=series,
            rows=tuple(row for row in rows(series) if row.night >= picked.first),
            nights=picked.nights[series.key],
            alarms=tuple(alarm for alarm in alarms if alarm.key == series.key),
            changes=None if find is None else _find_shown(series, find, picked.first),
        )
        for series in picked.series
    ]


def _find_shown(series: Series, find: FindChanges, first: date) -> tuple[Change, ...]:
    return tuple(change for part in series.segments for change in find(series.key, part) if change.first >= first)


def history_as_object(
    listed: Sequence[ShownSeries], alarms: Sequence[Alarm], warnings: Sequence[str]
) -> dict[str, Any]:
    """Return the `tfcompare.history/1` object, which is part of the interface."""
    return {
        "schema": SCHEMA,
        "alarms": [
            {**_describe_key(alarm.key), **pick(alarm, ALARM), "change": pick(alarm.change, CHANGE)} for alarm in alarms
        ],
        "series": [
            {
                **_describe_key(entry.series.key),
                **pick(entry.series.key, "id"),
                "nights": entry.nights,
                "shown": [_row_object(row) for row in entry.rows],
                "changes": None if entry.changes is None else [pick(change, CHANGE) for change in entry.changes],
                "alarms": [alarm.id for alarm in entry.alarms],
            }
            for entry in listed
        ],
        "warnings": list(warnings),
    }


def as_csv(listed: Sequence[ShownSeries]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV, lineterminator="\n")
    writer.writeheader()
    for entry in listed:
        key = entry.series.key
        of_series = {name: getattr(key, name) for name in CSV[:6]}
        for row in entry.rows:
            of_row = _row_object(row)
            of_row |= {"changed": "; ".join(row.changed), "metric": key.metric, "judge": key.judge}
            writer.writerow({**of_series, **of_row})
    return text.getvalue()


def _describe_key(key: Key) -> dict[str, Any]:
    names = "target reference device engine host metric judge"
    return {**pick(case_of(key.case), "workload params"), **pick(key, names)}


def _row_object(row: NightRow) -> dict[str, Any]:
    low, high = find_bounds(row.value) if row.value else (None, None)
    return {
        **pick(row, "night segment outcome reason? stage build changed result?"),
        "ratio": math.exp(row.value.effect) if row.value else None,
        "ci_low": low,
        "ci_high": high,
        "rounds": row.value.rounds if row.value else 0,
        "control": math.exp(row.control.effect) if row.control else None,
    }
