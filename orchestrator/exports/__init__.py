"""Exports of a run in the formats of other programs: each has a module, and an entry in EXPORTS.

Other programs do not pair times by round, so no verdict is ever computed from an export. If a format has room for the
verdict, it is written unchanged. The module of a format is imported only when it is used, since the command line needs
only EXPORTS for its help.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.results.run import Run


@dataclass(frozen=True, kw_only=True)
class Export:
    """An export format, which is either one text, or files with default names."""

    name: str
    # The module has `render(run) -> str`, whose text has no final newline, or `write(run, path) -> paths`.
    module: str
    # `write` writes to this file or folder in the run folder by default; a text goes to stdout.
    default_name: str = ""
    is_folder: bool = False
    # The export holds this flat table unless another is requested; its function takes that as the last argument.
    table: str = ""
    # This is true if the user can choose how an open verdict is exported.
    takes_inconclusive: bool = False


EXPORTS: dict[str, Export] = {
    export.name: export
    for export in (
        Export(name="csv", module=".csv", table="arms"),
        Export(name="parquet", module=".parquet", table="calls", default_name="{table}.parquet"),
        Export(name="json", module=".json"),
        Export(name="markdown", module=".markdown"),
        Export(name="junit", module=".junit", takes_inconclusive=True),
        Export(name="pyperf", module=".pyperf", default_name="pyperf", is_folder=True),
        Export(name="bencher", module=".bencher"),
        Export(name="github-benchmark", module=".github_benchmark"),
        Export(name="asv", module=".asv", default_name="asv", is_folder=True),
        Export(name="openmetrics", module=".openmetrics"),
    )
}


@dataclass(frozen=True)
class ExportResult:
    """The text, if it is meant for stdout; otherwise the files that were written."""

    text: str | None = None
    files: tuple[Path, ...] = ()


def check_export(
    to: str, table: str | None = None, output: Path | None = None, *, inconclusive: str | None = None
) -> None:
    """Raise UsageError if an export cannot be made, before its run is read."""
    from orchestrator.catalog import did_you_mean
    from orchestrator.errors import UsageError
    from orchestrator.results.tables import TABLES
    from orchestrator.terminal import output_file

    if to not in EXPORTS:
        raise UsageError(f"unknown format {to!r}{did_you_mean(to, EXPORTS)}; choose from {', '.join(EXPORTS)}")
    if table is not None and not EXPORTS[to].table:
        tabled = [name for name, export in EXPORTS.items() if export.table]
        raise UsageError(f"--table goes with --format {' or '.join(tabled)}; leave it out with --format {to}")
    if inconclusive is not None and not EXPORTS[to].takes_inconclusive:
        able = [name for name, export in EXPORTS.items() if export.takes_inconclusive]
        raise UsageError(f"--inconclusive goes with --format {' or '.join(able)}; leave it out with --format {to}")
    if table is not None and table not in TABLES:
        raise UsageError(f"no table {table!r}{did_you_mean(table, TABLES)}; choose from {', '.join(TABLES)}")
    if output and not EXPORTS[to].is_folder:
        output_file.check_output(output)


def export_run(
    run: Run, to: str, table: str | None = None, output: Path | None = None, *, inconclusive: str | None = None
) -> ExportResult:
    """Export a run; without an output, return a text, or write files to the run folder under their usual names."""
    from orchestrator.exports.files import write_text

    check_export(to, table, inconclusive=inconclusive)
    entry = EXPORTS[to]
    module = import_module(entry.module, __name__)
    table = table or entry.table
    tables = (table,) if table else (inconclusive,) if inconclusive else ()
    if entry.default_name:
        return ExportResult(
            files=module.write(run, output or run.path / entry.default_name.format(table=table), *tables)
        )
    text = module.render(run, *tables)
    if output is None:
        return ExportResult(text=text)
    write_text(output, text)
    return ExportResult(files=(output,))
