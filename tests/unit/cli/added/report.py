"""A report that counts."""

import json

from rich.text import Text

from orchestrator.model import Comparison


def layout(comparison: Comparison, width: int) -> Text:
    return Text(f"{len(comparison.arms)} arms in {comparison.plan.engine}")


def as_json(comparison: Comparison) -> str:
    return json.dumps({"arms": len(comparison.arms)})
