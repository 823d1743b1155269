"""A report that counts."""

import json

from rich.text import Text

from orchestrator.model import Evaluation


def layout(evaluation: Evaluation, width: int) -> Text:
    return Text(f"{len(evaluation.arms)} arms in {evaluation.plan.engine}")


def as_json(evaluation: Evaluation) -> str:
    return json.dumps({"arms": len(evaluation.arms)})
