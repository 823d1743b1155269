"""The object that `report --format json` prints; docs/schema/ describes it."""

from orchestrator.library import Run
from orchestrator.reports import OBJECTS


def render(run: Run) -> str:
    return OBJECTS["claims" if run.plan.claims else "verdicts"](run.comparison)
