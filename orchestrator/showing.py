"""Which report of a comparison is shown, and where: in a terminal, through a pipe, in a file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, RenderableType

from orchestrator.catalog import did_you_mean
from orchestrator.errors import UsageError
from orchestrator.model import Comparison
from orchestrator.reports import FORMATS, OBJECTS, TABLES, table
from orchestrator.reports.columns import known_columns
from orchestrator.reports.plain import drawn


@dataclass(frozen=True)
class Shown:
    """How a comparison is to be shown; unless a table is named, a run of claims by its claims, others by verdicts."""

    format: str = "table"
    table: str | None = None
    columns: tuple[str, ...] | None = None

    def show(self, comparison: Comparison, output: Path | None = None) -> None:
        if output is not None:
            try:
                output.write_text(self._text(comparison) + "\n")
            except OSError as error:
                raise UsageError(f"--output {output}: {error.strerror}") from error
        elif self.format == "json":
            print(self._text(comparison))
        else:
            draw(lambda width: self._layout(comparison, width))

    def _text(self, comparison: Comparison) -> str:
        if self.format == "json":
            return OBJECTS[self._name(comparison)](comparison)
        return drawn(lambda width: self._layout(comparison, width))

    def _layout(self, comparison: Comparison, width: int) -> RenderableType:
        if self.columns:
            return table.layout(comparison, width, self.columns)
        return TABLES[self._name(comparison)](comparison, width)

    def _name(self, comparison: Comparison) -> str:
        return self.table or ("claims" if comparison.plan.claims else "verdicts")


def shown(format: str, name: str | None = None, columns: str | None = None) -> Shown:
    """From flags, checked."""
    known_format(format)
    if name is not None and name not in TABLES:
        raise UsageError(f"unknown table {name!r}{did_you_mean(name, TABLES)}; it is {', '.join(TABLES)}")
    if columns is not None and (format != "table" or name not in (None, "verdicts")):
        raise UsageError("--columns goes with --format table and the table of verdicts")
    if format == "json" and name is not None and name not in OBJECTS:
        raise UsageError(f"--table {name} is for reading; --format json without it holds the same figures")
    return Shown(format, name, known_columns(columns) if columns else None)


def draw(layout: Callable[[int], RenderableType]) -> None:
    console = Console()
    if console.is_terminal:
        console.print(layout(console.width))
    else:
        print(drawn(layout))


def known_format(name: str) -> None:
    if name not in FORMATS:
        raise UsageError(f"unknown format {name!r}{did_you_mean(name, FORMATS)}; it is {', '.join(FORMATS)}")
