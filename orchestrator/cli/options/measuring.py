"""Flags that say how long to measure, and how large a difference matters."""

from dataclasses import dataclass
from typing import Annotated, get_args

import typer

from orchestrator.cli import parse
from orchestrator.cli.options.declare import Group, choice, number
from orchestrator.metrics import NAMES
from orchestrator.model import Judge


@dataclass(frozen=True, kw_only=True)
class MarginFlags(Group):
    panel = "Measuring"

    margin: Annotated[
        str,
        typer.Option(
            "--margin",
            help="Count differences up to this size as the same. A percentage, optionally with amounts for single "
            "metrics, e.g. 5%,leak=4KiB.",
            metavar="PERCENT,METRIC=AMOUNT",
        ),
    ] = "5%"


@dataclass(frozen=True, kw_only=True)
class JudgeFlags(Group):
    panel = "Measuring"

    judge: Annotated[
        str,
        choice(
            "--judge",
            "time",
            get_args(Judge),
            "Time that decides verdicts: wall (elapsed time), or cpu (CPU time of a step, less affected by other "
            "processes).",
        ),
    ] = "wall"


@dataclass(frozen=True, kw_only=True)
class MetricFlags(Group):
    panel = "Measuring"

    metric: Annotated[
        str | None,
        choice(
            "--metric",
            "metric",
            NAMES,
            "Metrics to compare in addition to time. Default: first,memory,output; in a report, those of the run.",
            several=True,
        ),
    ] = None

    @property
    def names(self) -> tuple[str, ...] | None:
        return None if self.metric is None else parse.parse_names(self.metric)


@dataclass(frozen=True, kw_only=True)
class BudgetFlags(Group):
    panel = "Measuring"

    budget: Annotated[
        str | None, typer.Option("--budget", help="Time limit for measuring, e.g. 90s or 10m.", metavar="DURATION")
    ] = None


@dataclass(frozen=True, kw_only=True)
class SeedFlags(Group):
    panel = "Measuring"

    seed: Annotated[
        int | None,
        number("--seed", 0, 2**31 - 1, "Seed for the random order and the data. Default: random."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class MeasuringFlags(SeedFlags, BudgetFlags):
    rounds: Annotated[int | None, number("--rounds", 2, 1000, "Run exactly this many rounds.")] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and exit.")] = False
