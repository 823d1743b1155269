"""Reports of a judged run: a file a format, one line a format in REPORTS."""

from collections.abc import Callable, Mapping

from orchestrator.model import Comparison
from orchestrator.reports import json, table

REPORTS: Mapping[str, Callable[[Comparison], str]] = {"json": json.render, "table": table.render}
