"""An export of labels."""

from orchestrator.results.run import Run


def render(run: Run) -> str:
    return "\n".join(case.label for case in run.plan.cases)
