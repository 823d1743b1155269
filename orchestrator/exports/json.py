"""The object that `report --format json` prints; docs/schema/ describes it."""

from orchestrator.reports import usual_report
from orchestrator.results.run import Run


def render(run: Run) -> str:
    return usual_report(run.plan, complete=True).as_json(run.evaluation)
