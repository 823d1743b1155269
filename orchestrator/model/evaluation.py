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
    # If set, the arm died because its workload found a statement to be false.
    refuted: bool = False
    # `failure` is what the arm died of. If its own code did not cause it, it is external, and --resume tries the arm
    # again.
    failure: FailureKind | None = None
    external: bool = False
    rounds: int = 0
    # Each figure is in milliseconds, in bytes or a count.
    figures: Mapping[Metric, float] = field(default_factory=dict)
    # This is the number of steps per call. A program is one step.
    steps: float = 1.0
    # The second call is timed per step.
    second_ms: float | None = None
    train_s: float | None = None
    # This includes the pages of mapped files.
    resident_bytes: float | None = None
    # This is the wall time of a step if the time in `figures` is CPU time.
    wall_ms: float | None = None
    # A step handles this many examples, if the workload reports it.
    items: int | None = None
    # Only a program that calls Keras' fit has a first step, and a loss after each epoch.
    first_step_ms: float | None = None
    losses: tuple[float, ...] = ()
    drift: Drift | None = None

    @property
    def key(self) -> ArmKey:
        return ArmKey(self.case.label, self.target)

    @property
    def ending(self) -> str:
        """The outcome in words, with the kind of failure."""
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
    """The difference of two arms, paired by round, and the verdict on it."""

    pair: Pair
    rounds: int
    # Only ratios have the next three figures.
    mde: float | None = None
    seed_percent: float | None = None
    second_ratio: float | None = None
    sign_flip_p: float | None = None
    exploratory: bool = False
    # The spread is the standard deviation of the log ratios of rounds.
    spread: float | None = None
    # CPU times are less disturbed by a busy machine. They are judged by the same rule, except for a run on a GPU, and
    # no other verdict depends on them.
    cpu_ratio: float | None = None
    cpu_low: float | None = None
    cpu_high: float | None = None
    cpu_spread: float | None = None
    cpu_verdict: VerdictName | None = None
    # `missing` is how many more rounds a verdict needs. `pilot_ratio` is the ratio of the pilot if no round was
    # measured.
    missing: int = 0
    pilot_ratio: float | None = None

    @property
    def is_decided_by_cpu(self) -> bool:
        """Whether CPU times have a verdict and wall times have none."""
        is_open = self.verdict == "inconclusive" and not self.exploratory
        return is_open and self.cpu_verdict not in (None, "inconclusive")

    @property
    def seen_ratio(self) -> float | None:
        """The ratio of the rounds or, without any, of the pilot."""
        return self.pilot_ratio if self.ratio is None else self.ratio

    @property
    def so_far(self) -> str:
        """The result of too few rounds for a verdict: `10.3x so far (2 rounds; 2 more needed for a verdict)`."""
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
    """The results of the first and the fifth call of two versions of a case, and how far apart they are.

    Everything is about the `call` whose results are farther apart. `difference` is the largest difference of a single
    value, relative to its size or to the typical size of values. It is a lower bound if not all values were kept
    (`complete`). `ulps` counts the steps of the coarser type. Neither is known if the results have different forms.
    """

    case: Case
    baseline: Target
    candidate: Target
    verdict: OutputVerdict
    call: OutputCall = "first"
    difference: float | None = None
    ulps: float | None = None
    # Replicates of one version differ from each other by this much.
    floor: float | None = None
    # This many of the values that were compared one by one differ.
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
    # If set, all cores were shared with other work in most visits.
    crowded: bool = False
    # This describes how the budget ended the run, or is ''.
    ended_by_budget: str = ""
    # Measuring took this long. 0 means that it is not known.
    seconds: float = 0.0
    # Each version is compared with the one before it if there are three or more.
    neighbours: tuple[Comparison, ...] = ()
    # If the baseline of a case has no time, each version is compared with the oldest that has one.
    references: tuple[Comparison, ...] = ()
    # Only arms that claims wanted profiled have shares.
    shares: Mapping[ArmKey, Shares] = field(default_factory=dict)
    # Other metrics that are compared across versions are separate families, for which no rounds were measured.
    metrics: Mapping[Metric, tuple[Comparison, ...]] = field(default_factory=dict)
    outputs: tuple[OutputComparison, ...] = ()
    # `means` has a mean per metric and version over the cases that all versions have, `set_means` over the cases of
    # claims.
    means: tuple[MeanRatio, ...] = ()
    set_means: Mapping[CaseSet, MeanRatio] = field(default_factory=dict)
    # The verdicts of the report as a whole are corrected for this many comparisons.
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
