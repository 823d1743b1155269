"""A run in the formats of other programs: one file per format, and one line here.

Other programs do not pair by round, so no verdict is ever computed from an export. If a format has room for the
verdict, it is written as it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.catalog import did_you_mean
from orchestrator.errors import UsageError
from orchestrator.exports import (
    asv,
    bencher,
    csv,
    github_benchmark,
    json,
    junit,
    markdown,
    openmetrics,
    parquet,
    pyperf,
)
from orchestrator.exports import files as places
from orchestrator.results import tables
from orchestrator.results.run import Run
from orchestrator.terminal import output_file

# One text each, without the last line's end.
TEXTS: Mapping[str, Callable[[Run], str]] = {
    "csv": csv.render,
    "json": json.render,
    "markdown": markdown.render,
    "junit": junit.render,
    "bencher": bencher.render,
    "github-benchmark": github_benchmark.render,
    "openmetrics": openmetrics.render,
}
# A file or a folder each; they tell which files they wrote.
FILES: Mapping[str, Callable[[Run, Path], tuple[Path, ...]]] = {
    "parquet": parquet.write,
    "pyperf": pyperf.write,
    "asv": asv.write,
}
DEFAULT_NAME: Mapping[str, str] = {"parquet": f"{parquet.TABLE}.parquet", "pyperf": "pyperf", "asv": "asv"}
FOLDERS = ("pyperf", "asv")
# Those that hold a flat table, of which there are several.
TABLED = ("csv", "parquet")


@dataclass(frozen=True)
class Exported:
    """The text, if it is meant for stdout; otherwise the files that were written."""

    text: str | None = None
    files: tuple[Path, ...] = ()


def check(to: str, table: str | None = None, output: Path | None = None) -> None:
    """Raise UsageError if an export cannot be made, before its run is read."""
    known = (*TEXTS, *FILES)
    if to not in known:
        raise UsageError(f"unknown format {to!r}{did_you_mean(to, known)}; it is {', '.join(known)}")
    if table is not None and to not in TABLED:
        raise UsageError(f"--table goes with --to {' or '.join(TABLED)}; leave it out with --to {to}")
    if table is not None and table not in tables.TABLES:
        raise UsageError(f"no table {table!r}{did_you_mean(table, tables.TABLES)}; it is {', '.join(tables.TABLES)}")
    if output and to not in FOLDERS:
        output_file.check(output)


def export(run: Run, to: str, table: str | None = None, output: Path | None = None) -> Exported:
    """Export a run; without an output, return a text, or write files to the run directory under their usual names."""
    check(to, table)
    if to in TEXTS:
        text = csv.render(run, table) if to == "csv" and table else TEXTS[to](run)
        if output is None:
            return Exported(text=text)
        places.write_text(output, text)
        return Exported(files=(output,))
    if to == "parquet" and table:
        return Exported(files=parquet.write(run, output or run.path / f"{table}.parquet", table))
    return Exported(files=FILES[to](run, output or run.path / DEFAULT_NAME[to]))
