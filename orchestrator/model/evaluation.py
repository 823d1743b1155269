"""A judged run: its arms with their results, and the comparisons between them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.model.cases import ArmKey, Case, Target
from orchestrator.model.claims import CaseSet
from orchestrator.model.failures import FailureKind, describe_failure
from orchestrator.model.journal import Shares
from orchestrator.model.magnitude import ReportRow, VerdictName
from orchestrator.model.pairs import Metric, Pair
from orchestrator.model.plan import Manifest, Plan

Outcome = Literal["measured", "refused", "died", "postponed", "not measured"]
OutputVerdict = Literal["equal", "equal within tolerance", "differs", "not comparable"]
OutputCall = Literal["first", "fifth"]


@dataclass(frozen=True, kw_only=True)
class Drift:
    """The trend of calls that do not settle.

    `rise` is how the later half of a replicate's bursts differs from the earlier half, as a log ratio.
    """

    rise: float

    def __str__(self) -> str:
        return f"no steady state: later calls take {math.expm1(self.rise):+.1%} against earlier ones"


@dataclass(frozen=True, kw_only=True)
class ArmResult:
    """A case in a version, and its result."""

    case: Case
    target: Target
    outcome: Outcome
    reason: str = ""
    # Whether it died because its workload found a statement to be false.
    refuted: bool = False
    # What it died of, and whether that came from outside of its code: then --resume tries it again.
    failure: FailureKind | None = None
    external: bool = False
    rounds: int = 0
    # Of every metric that it has, in milliseconds, in bytes or as a count.
    figures: Mapping[Metric, float] = field(default_factory=dict)
    # Of a call; a program is one step.
    steps: float = 1.0
    # By the step.
    second_ms: float | None = None
    train_s: float | None = None
    # With pages of files that it maps.
    resident_bytes: float | None = None
    # The wall time of a step, where the time is its CPU time.
    wall_ms: float | None = None
    # Examples that a step handles, if the workload says so.
    items: int | None = None
    # Of a program that calls Keras' fit: the first step, and the loss after each epoch.
    first_step_ms: float | None = None
    losses: tuple[float, ...] = ()
    drift: Drift | None = None

    @property
    def key(self) -> ArmKey:
        return ArmKey(self.case.label, self.target)

    @property
    def ending(self) -> str:
        """The outcome in words, with what it died of."""
        return self.outcome + describe_failure(self.failure, external=self.external)

    @property
    def time_ms(self) -> float | None:
        """The time of a step."""
        return self.figures.get("time")

    @property
    def loss(self) -> float | None:
        return self.losses[-1] if self.losses else None

    @property
    def items_per_s(self) -> float | None:
        return None if self.time_ms is None or not self.items else self.items / self.time_ms * 1e3


@dataclass(frozen=True, kw_only=True)
class Comparison(ReportRow):
    """By how much two arms differ, paired by round, and whether to believe it."""

    pair: Pair
    rounds: int
    # Of ratios only.
    mde: float | None = None
    seed_percent: float | None = None
    second_ratio: float | None = None
    sign_flip_p: float | None = None
    exploratory: bool = False
    # How far the ratio of a round is from that of another: the standard deviation of their logs.
    spread: float | None = None
    # The same of CPU times, which a busy machine disturbs less: judged by the same rule, but for a run on a GPU. No
    # other verdict depends on them.
    cpu_ratio: float | None = None
    cpu_low: float | None = None
    cpu_high: float | None = None
    cpu_spread: float | None = None
    cpu_verdict: VerdictName | None = None
    # How many rounds are missing for a verdict, and the ratio of the pilot where no round was measured.
    missing: int = 0
    pilot_ratio: float | None = None

    @property
    def is_decided_by_cpu(self) -> bool:
        """Whether CPU times have a verdict where wall times have none."""
        is_open = self.verdict == "inconclusive" and not self.exploratory
        return is_open and self.cpu_verdict not in (None, "inconclusive")

    @property
    def seen_ratio(self) -> float | None:
        """The ratio of the rounds or, without any, of the pilot."""
        return self.pilot_ratio if self.ratio is None else self.ratio

    @property
    def so_far(self) -> str:
        """What rounds show that are too few for a verdict: `10.3x so far (2 rounds; 2 more needed for a verdict)`."""
        if not self.missing:
            return ""
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        if self.ratio is not None:
            return f"{self.ratio:.3g}x so far ({rounds}; {self.missing} more needed for a verdict)"
        if self.difference is not None:
            return f"{rounds} so far; {self.missing} more needed for a verdict"
        if self.pilot_ratio is not None:
            return f"{self.pilot_ratio:.3g}x in the pilot ({self.missing} rounds needed for a verdict)"
        return f"no round was measured ({self.missing} needed for a verdict)"


@dataclass(frozen=True, kw_only=True)
class MeanRatio:
    """The geometric mean of the ratios of some cases, from the rounds that all of them have."""

    metric: Metric
    baseline: Target
    candidate: Target
    ratio: float
    ci_low: float
    ci_high: float
    cases: int
    rounds: int


@dataclass(frozen=True, kw_only=True)
class OutputComparison:
    """What the first and the fifth call of two versions of a case returned, and how far apart it is.

    All is about the `call` in which they are farther apart. `difference` is the largest one of a single value, relative
    to its size or to the typical size of values, and at least this where not all values were kept (`complete`). `ulps`
    counts the steps of the coarser type. Neither is known where the results have different forms.
    """

    case: Case
    baseline: Target
    candidate: Target
    verdict: OutputVerdict
    call: OutputCall = "first"
    difference: float | None = None
    ulps: float | None = None
    # By how much replicates of one version differ among themselves.
    floor: float | None = None
    # Values that differ, of those compared one by one.
    changed: int = 0
    compared: int = 0
    complete: bool = True
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A judged run, from which every report is drawn."""

    plan: Plan
    manifest: Manifest
    arms: tuple[ArmResult, ...]
    comparisons: tuple[Comparison, ...]
    warnings: tuple[str, ...]
    broken: tuple[str, ...] = ()
    # Whether all cores were shared with other work in most visits.
    crowded: bool = False
    # How the budget ended the run, or ''.
    ended_by_budget: str = ""
    # Each version against the one before it, where there are three or more.
    neighbours: tuple[Comparison, ...] = ()
    # Of a case whose baseline has no time, each version against the oldest that has one.
    references: tuple[Comparison, ...] = ()
    # Of the arms that claims wanted profiled.
    shares: Mapping[ArmKey, Shares] = field(default_factory=dict)
    # What else is compared across versions: separate families of comparisons, for which no rounds were measured.
    metrics: Mapping[Metric, tuple[Comparison, ...]] = field(default_factory=dict)
    outputs: tuple[OutputComparison, ...] = ()
    # Over the cases that all versions have, of each metric and version; and over the cases that claims are about.
    means: tuple[MeanRatio, ...] = ()
    set_means: Mapping[CaseSet, MeanRatio] = field(default_factory=dict)
    # How many comparisons the verdicts of the report as a whole are corrected for.
    judged_together: int = 0

    @property
    def of_metrics(self) -> tuple[Comparison, ...]:
        """The comparisons of all metrics but time."""
        return tuple(comparison for comparisons in self.metrics.values() for comparison in comparisons)

    @property
    def of_all(self) -> tuple[Comparison, ...]:
        """The comparisons of all families."""
        return (*self.comparisons, *self.neighbours, *self.references, *self.of_metrics)

    @property
    def died(self) -> tuple[ArmResult, ...]:
        return tuple(arm for arm in self.arms if arm.outcome == "died")
