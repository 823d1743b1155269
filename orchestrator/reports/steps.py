"""The steps of a program that calls Keras' `fit`, which are compared like its whole time, and its losses."""

from collections.abc import Iterable
from dataclasses import replace

from orchestrator.model import ArmKey, ArmResult, Comparison, Evaluation
from orchestrator.reports.columns import COLUMNS, Column


def comparisons_of_steps(evaluation: Evaluation) -> dict[ArmKey, Comparison]:
    """Return the comparison of each arm's steps with those of the baseline."""
    return {each.pair.arms[1]: each for each in evaluation.comparisons if each.pair.metric == "step"}


def as_arms_of_steps(arms: Iterable[ArmResult]) -> list[ArmResult]:
    """Return the arms that have steps, with the time of a step in place of their time."""
    return [
        replace(arm, figures={**arm.figures, "time": arm.figures["step"]}, drift=None)
        for arm in arms
        if "step" in arm.figures
    ]


def columns_of_steps(judging: Iterable[Column]) -> list[Column]:
    return [COLUMNS["first-step"], COLUMNS["step"], *judging, COLUMNS["loss"]]


def describe_losses(evaluation: Evaluation) -> Iterable[str]:
    """Yield one line with the last loss in each target, because fast steps that learn nothing are no gain."""
    ends = [f"{arm.target} {arm.loss:.4g}" for arm in evaluation.arms if arm.loss is not None]
    if ends:
        yield f"loss after the last epoch: {', '.join(ends)}"
