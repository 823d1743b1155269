"""The object that `report --format json` prints; docs/schema/ describes it."""

from orchestrator.reports import OBJECTS
from orchestrator.results.run import Run


def render(run: Run) -> str:
    return OBJECTS["claims" if run.plan.claims else "verdicts"](run.comparison)
