"""How long the slowest calls of a replicate take, per step: of a server, they are what users wait for.

Only a run that asks for one of them makes enough calls to tell.
"""

from functools import partial

from orchestrator.metrics.spec import Figures, MetricSpec, Values
from orchestrator.model import ArmResult, Metric
from orchestrator.terminal.durations import format_time

# Ten of them are beyond the last percentile.
FEWEST_CALLS = 1000
PERCENTILES: dict[Metric, int] = {"p50": 50, "p95": 95, "p99": 99}


def _values(place: int, replicate: Figures) -> Values:
    return replicate.percentiles[place : place + 1]


def _figure(place: int, arm: ArmResult) -> float | None:
    return arm.percentiles_ms[place] if arm.percentiles_ms else None


SPECS = tuple(
    MetricSpec(
        name=key,
        about=f"{percent}th percentile of calls",
        more=f"takes longer at the {percent}th percentile of calls",
        less=f"takes less time at the {percent}th percentile of calls",
        values=partial(_values, place),
        figure=partial(_figure, place),
        show=format_time,
        least_calls=FEWEST_CALLS,
    )
    for place, (key, percent) in enumerate(PERCENTILES.items())
)
