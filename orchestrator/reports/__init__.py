"""Reports of a judged run: one file per table or format, and one line per report here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType

from orchestrator.model import Comparison
from orchestrator.reports import claims, json, seed, table, trend
from orchestrator.results.run import Run


@dataclass(frozen=True)
class Page:
    """A report that shows more of a run than its comparison.

    `name` is the file in the run directory that it is written to; without a name it goes to stdout.
    """

    make: Callable[[Path], tuple[str, Run]]
    name: str | None = None


def _html(path: Path) -> tuple[str, Run]:
    # What draws plots takes a second to import, and no other report needs it.
    from orchestrator.reports import html

    return html.page(path)


# For people: drawn at a width.
TABLES: Mapping[str, Callable[[Comparison, int], RenderableType]] = {
    "verdicts": table.layout,
    "claims": claims.layout,
    "seed": seed.layout,
    "trend": trend.layout,
}
# For programs: the tables that have one.
OBJECTS: Mapping[str, Callable[[Comparison], str]] = {
    "verdicts": json.render,
    "claims": claims.as_json,
    "trend": trend.as_json,
}
PAGES: Mapping[str, Page] = {"html": Page(_html, "report.html")}
FORMATS = ("table", "json", *PAGES)
