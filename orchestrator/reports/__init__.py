"""Reports of a judged run: a file a table or a format, and one line here."""

from collections.abc import Callable, Mapping

from rich.console import RenderableType

from orchestrator.model import Comparison
from orchestrator.reports import claims, json, seed, table

# For people: drawn at a width.
TABLES: Mapping[str, Callable[[Comparison, int], RenderableType]] = {
    "verdicts": table.layout,
    "claims": claims.layout,
    "seed": seed.layout,
}
# For programs: the tables that have one.
OBJECTS: Mapping[str, Callable[[Comparison], str]] = {
    "verdicts": json.render,
    "claims": claims.as_json,
}
FORMATS = ("table", "json")
