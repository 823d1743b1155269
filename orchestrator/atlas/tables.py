"""The figures of an atlas as flat tables, for spreadsheets and for SQL."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from orchestrator.atlas.figures import AtlasFigures, AtlasRatio
from orchestrator.metrics import METRICS
from orchestrator.terminal.text import escape_unprintable

# A row is a figure of a case in a release, with the step to it and its level.
COLUMNS: dict[str, pa.DataType] = {
    "case": pa.string(), "workload": pa.string(), "release": pa.string(), "previous": pa.string(),
    "metric": pa.string(), "unit": pa.string(), "outcome": pa.string(), "reason": pa.string(), "figure": pa.float64(),
    **{
        f"{of}_{name}": kind
        for of in ("step", "level")
        for name, kind in (
            ("verdict", pa.string()), ("ratio", pa.float64()), ("low", pa.float64()), ("high", pa.float64()),
            ("difference", pa.float64()), ("rounds", pa.int64()), ("row_only", pa.bool_()),
        )
    },
}  # fmt: skip


def list_figures(figures: AtlasFigures) -> Iterator[dict[str, Any]]:
    workloads = {case.label: case.workload for case in figures.cases}
    previous = dict(
        zip((each.name for each in figures.releases[1:]), (each.name for each in figures.releases), strict=False)
    )
    for cell in figures.cells:
        metrics = dict.fromkeys((*cell.figures, *(each.metric for each in figures.steps if each.newer == cell.release)))
        for metric in metrics or ("time",):
            key = (cell.case, metric, cell.release)
            figure, step, level = cell.figures.get(metric), figures.by_step.get(key), figures.by_level.get(key)
            if figure is None and step is None and level is None and cell.outcome == "measured":
                continue
            yield {
                "case": cell.case, "workload": workloads.get(cell.case, ""), "release": cell.release,
                "previous": previous.get(cell.release), "metric": metric,
                "unit": METRICS[metric].unit.replace("ms", "s"), "outcome": cell.outcome, "reason": cell.reason,
                "figure": figure,
                **_of_ratio("step", step), **_of_ratio("level", level),
            }  # fmt: skip


def _of_ratio(prefix: str, ratio: AtlasRatio | None) -> dict[str, Any]:
    if ratio is None:
        return dict.fromkeys(name for name in COLUMNS if name.startswith(f"{prefix}_"))
    return {
        f"{prefix}_verdict": ratio.shown_verdict, f"{prefix}_ratio": ratio.ratio, f"{prefix}_low": ratio.ci_low,
        f"{prefix}_high": ratio.ci_high, f"{prefix}_difference": ratio.difference, f"{prefix}_rounds": ratio.rounds,
        f"{prefix}_row_only": ratio.row_only,
    }  # fmt: skip


def make_csv(figures: AtlasFigures) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    for row in list_figures(figures):
        writer.writerow(
            {name: escape_unprintable(value) if isinstance(value, str) else value for name, value in row.items()}
        )
    return text.getvalue()


def make_parquet(figures: AtlasFigures) -> bytes:
    table = pa.Table.from_pylist(list(list_figures(figures)), schema=pa.schema(list(COLUMNS.items())))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())
