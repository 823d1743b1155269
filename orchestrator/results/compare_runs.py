"""Compares two runs of the same cases.

Nothing pairs the rounds of two runs, so only the ratios within each run are compared. If both ran on one machine that
has not restarted in between, the times of each version are compared as well: they show which side of a ratio moved, but
they also move with the machine.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from orchestrator.errors import UsageError
from orchestrator.metrics import METRICS, scale_of
from orchestrator.model import (
    ArmKey,
    ArmResult,
    Comparison,
    Metric,
    Pair,
    ReportRow,
)
from orchestrator.results.differences import MOST_PACKAGES, find_code, find_moved
from orchestrator.results.endings import read_endings
from orchestrator.results.rewritten import WORKER, ChangedWorkloads, find_rewritten
from orchestrator.results.run import Run, load_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.samples import samples
from orchestrator.stats.comparisons import (
    DIFFERENCE_ERROR,
    FALSE_DISCOVERIES,
    MeasuredPair,
    compare_figures,
    measure_together,
    of_many,
)
from orchestrator.stats.looks import FEWEST_ROUNDS, LookSchedule
from orchestrator.stats.paired import Estimate
from orchestrator.stats.report_error import find_limit, mark_row_only
from orchestrator.stats.round_times import RoundTimes
from orchestrator.stats.shared_variance import find_share_of_error
from orchestrator.stats.verdict import Levels, judge_estimate
from orchestrator.stats.welch import BetweenRunVariance, ChangeBetweenRuns
from orchestrator.terminal.counts import format_count

ALPHA = 0.05
# These entries of a host's record change all the time.
MOVING = frozenset({"load", "psi_cpu"})
# This many characters of a digest are enough to distinguish two digests.
SHORT = 12

# It returns how far earlier runs of these cases differ from each other, by pair.
FindBetween = Callable[[Run, Run], Mapping[Pair, BetweenRunVariance]]


@dataclass(frozen=True, kw_only=True)
class FigureChange(ReportRow):
    """The change of a figure between two runs, with a verdict on it."""

    @property
    def metric(self) -> Metric:
        return "time"


@dataclass(frozen=True, kw_only=True)
class RatioChange(FigureChange):
    """One comparison found in both runs: its ratio or difference in each, and whether that changed."""

    pair: Pair
    earlier: Comparison
    later: Comparison

    @property
    def metric(self) -> Metric:
        return self.pair.metric

    @property
    def exploratory(self) -> bool:
        """Whether either ratio has rounds that were added after the whole error was spent."""
        return self.earlier.exploratory or self.later.exploratory


@dataclass(frozen=True, kw_only=True)
class TimeChange(FigureChange):
    """The time of an arm in both runs, and whether it changed."""

    arm: ArmKey
    earlier: ArmResult
    later: ArmResult


AnyChange = TypeVar("AnyChange", RatioChange, TimeChange)


@dataclass(frozen=True)
class Difference:
    """A fact that differs between the two runs."""

    what: str
    earlier: str
    later: str


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The result of comparing two runs."""

    earlier: Run
    later: Run
    margin: float
    changes: tuple[RatioChange, ...]
    differences: tuple[Difference, ...]
    left_out: tuple[str, ...]
    # Only one run has these pairs, or their source changed between the runs.
    missing: tuple[Pair, ...] = ()
    # This is empty unless one machine measured both runs without a restart in between.
    own_times: tuple[TimeChange, ...] = ()
    # The correction for multiple comparisons counts this many of the changes.
    judged_together: int = 0
    # This many of the changes were compared with the differences between earlier runs.
    weighed: int = 0

    @property
    def broken(self) -> tuple[str, ...]:
        return (*self.earlier.evaluation.broken, *self.later.evaluation.broken)


def compare_runs(earlier: Path, later: Path, find_between: FindBetween = lambda earlier, later: {}) -> Changes:
    for path in (earlier, later):
        if RunFolder.open(path).is_held:
            raise UsageError(f"{path} is still being measured; wait until it has finished")
    runs = load_run(earlier), load_run(later)
    if len({run.plan.run for run in runs}) == 1:
        raise UsageError(f"{earlier} and {later} are the same run; compare it with another run of the same cases")
    return find_changes(*runs, find_between(*runs))


def find_changes(earlier: Run, later: Run, between: Mapping[Pair, BetweenRunVariance] | None = None) -> Changes:
    if earlier.plan.judge != later.plan.judge:
        times = {"wall": "wall time", "cpu": "CPU time"}
        raise UsageError(
            f"{earlier.path} was judged by {times[earlier.plan.judge]} and {later.path} by "
            f"{times[later.plan.judge]}: their ratios are of different things; measure one of them again"
        )
    between = between or {}
    planned_before, planned_after = (
        {comparison.pair: comparison for comparison in run.comparisons} for run in (earlier, later)
    )
    old, new = (
        own | {comparison.pair: comparison for comparison in run.evaluation.of_metrics}
        for own, run in ((planned_before, earlier), (planned_after, later))
    )
    rewritten = find_rewritten(earlier, later)
    common = [pair for pair in old if pair in new and pair.workload not in rewritten.workloads]
    if not common:
        raise UsageError(_nothing_in_common(earlier, later, rewritten))
    stopped = [_measure_pairs(run, common) for run in (earlier, later)]
    margin = max(earlier.plan.margin, later.plan.margin)
    changes = [
        _change(old[pair], new[pair], before, after, margin if pair.margin is None else pair.margin, between.get(pair))
        for pair, before, after in zip(common, *stopped, strict=True)
    ]
    judged, own_times = _by_chance(changes), _find_own_times(earlier, later, common, margin)
    ps = [change.p for change in (*judged, *own_times) if change.p is not None]
    limit = find_limit(ps)
    return Changes(
        earlier=earlier,
        later=later,
        margin=margin,
        changes=tuple(mark_row_only(change, limit, len(ps)) for change in judged),
        differences=list_differences(earlier, later),
        left_out=_describe_left_out(planned_before, planned_after, rewritten),
        missing=tuple(pair for pair in (old | new) if pair not in set(common)),
        own_times=tuple(mark_row_only(change, limit, len(ps)) for change in own_times),
        judged_together=len(ps),
        weighed=sum(compared is not None and compared.between is not None for _, compared in changes),
    )


def _find_own_times(earlier: Run, later: Run, pairs: Sequence[Pair], margin: float) -> tuple[TimeChange, ...]:
    """Compare the times of the arms of these pairs, if the machine is the same and has not restarted in between."""
    starts = [(run.manifest.host.get("id"), run.manifest.host.get("boot")) for run in (earlier, later)]
    if starts[0] != starts[1] or None in starts[0]:
        return ()
    arms = dict.fromkeys(arm for pair in pairs if pair.metric == "time" for arm in pair.arms)
    before, after = ({arm.key: arm for arm in run.arms} for run in (earlier, later))
    stopped = zip(*(_measure_arms(run, arms) for run in (earlier, later)), strict=True)
    found = [
        (TimeChange(arm=arm, earlier=before[arm], later=after[arm]), Compared(old, new))
        for arm, (old, new) in zip(arms, stopped, strict=True)
        if old and new
    ]
    return _by_chance([(_judge(change, compared, margin), compared) for change, compared in found])


def _measure_arms(run: Run, arms: Iterable[ArmKey]) -> list["Stopped | None"]:
    by_arm, endings = samples(run.plan, run.replicates), read_endings(RunFolder.open(run.path))
    found: list[Stopped | None] = []
    for arm in arms:
        schedule = endings.of(arm.case).schedule(run.plan.looks)
        rounds = by_arm.get((*arm, "time"), {})
        levels = [times.level for times in rounds.values() if isinstance(times, RoundTimes)]
        enough = len(levels) >= max(schedule.fewest, FEWEST_ROUNDS)
        found.append(Stopped(MeasuredPair(Estimate(tuple(levels)), max(rounds)), schedule) if enough else None)
    return found


@dataclass(frozen=True)
class Stopped:
    """A ratio of a run, and the looks at which the run could stop because enough was decided."""

    measured: MeasuredPair
    schedule: LookSchedule

    @property
    def levels(self) -> Levels:
        return self.measured.find_levels(self.schedule, ALPHA, DIFFERENCE_ERROR)

    def adjust(self, p: float) -> float:
        return min(self.schedule.adjust(p, self.measured.last_round) / find_share_of_error(self.measured.estimate), 1.0)


@dataclass(frozen=True)
class Compared:
    """The change of a ratio between two runs that each stopped when enough was decided.

    A run stops when its ratio happens to look certain, so a plain interval would miss the true value in one of ten
    cases. This interval is as wide as at the stricter of the two looks.
    """

    earlier: Stopped
    later: Stopped
    between: BetweenRunVariance | None = None

    @property
    def across(self) -> ChangeBetweenRuns:
        return ChangeBetweenRuns(self.earlier.measured.estimate, self.later.measured.estimate, self.between)

    @property
    def levels(self) -> Levels:
        return Levels(*map(min, self.earlier.levels, self.later.levels))

    @property
    def p(self) -> float:
        return max(each.adjust(self.across.p) for each in (self.earlier, self.later))


def _measure_pairs(run: Run, pairs: list[Pair]) -> list[Stopped | None]:
    by_arm = samples(replace(run.plan, pairs=tuple(pairs)), run.replicates, run.openings)
    endings = read_endings(RunFolder.open(run.path))
    found = measure_together(by_arm, pairs, scale_of, endings.find_parts(run.plan.looks))
    return [
        Stopped(measured, endings.of(pair.arms[0].case).schedule(run.plan.looks)) if measured else None
        for pair, measured in zip(pairs, found, strict=True)
    ]


def _change(
    old: Comparison,
    new: Comparison,
    before: Stopped | None,
    after: Stopped | None,
    margin: float,
    between: BetweenRunVariance | None,
) -> tuple[RatioChange, Compared | None]:
    change = RatioChange(pair=old.pair, earlier=old, later=new)
    if METRICS[old.pair.metric].exact and old.ratio and new.ratio:
        # An exact metric has no rounds, and chance plays no part in it.
        exact = compare_figures(old.pair, old.ratio, new.ratio, margin)
        return replace(
            change, ratio=exact.ratio, ci_low=exact.ratio, ci_high=exact.ratio, verdict=exact.verdict, size=exact.size
        ), None
    if before is None or after is None:
        which, comparison = ("earlier", old) if before is None else ("later", new)
        return replace(change, reason=f"not compared in the {which} run: {comparison.reason}"), None
    compared = Compared(before, after, between)
    if old.ends is None or new.ends is None:
        which, run = ("earlier", before) if old.ends is None else ("later", after)
        reason = f"{run.measured.estimate.rounds} rounds of the {which} run are too few to tell"
        fields = scale_of(change.metric).as_fields(compared.across.theta, None)
        return replace(change, **fields, reason=reason), None
    return _judge(change, compared, margin), compared


def _judge(change: AnyChange, compared: Compared, margin: float) -> AnyChange:
    across, scale = compared.across, scale_of(change.metric)
    judgement = judge_estimate(across, margin, compared.levels, scale)
    width = judgement.half_width
    reason = ""
    if judgement.verdict == "inconclusive":
        visible = scale.from_scale(across.smallest_visible(compared.levels.differ))
        reason = f"too noisy: these rounds {scale.describe_visible(visible, 'changes')}"
    return replace(
        change,
        **scale.as_fields(across.theta, (across.theta - width, across.theta + width)),
        p=compared.p,
        verdict=judgement.verdict,
        size=judgement.size,
        reason=reason,
    )


def _by_chance(changes: list[tuple[AnyChange, Compared | None]]) -> tuple[AnyChange, ...]:
    """Mark changes as inconclusive if chance alone could explain them.

    Among many comparisons of a metric, some differ by chance (Benjamini and Hochberg).
    """
    checked = []
    families = {
        metric: [compared.p for change, compared in changes if compared and change.metric == metric]
        for metric in {change.metric for change, _ in changes}
    }
    adjusted = {metric: iter(of_many(raw)) for metric, raw in families.items()}
    for change, compared in changes:
        raw = families[change.metric]
        # A change that is exact or has no verdict stays as it is.
        chance = next(adjusted[change.metric]) if compared else 0.0
        if change.verdict in ("slower", "faster") and chance > FALSE_DISCOVERIES:
            reason = f"not significant after correcting for {len(raw)} comparisons"
            change = replace(change, verdict="inconclusive", size=None, reason=reason)
        checked.append(change)
    return tuple(checked)


def list_differences(earlier: Run, later: Run) -> tuple[Difference, ...]:
    """Return what differs: the machine, the measurement settings, and the environments of the shared versions."""
    old, new = _setting(earlier), _setting(later)
    settings = tuple(
        Difference(name, old.get(name, "-"), new.get(name, "-"))
        for name in dict.fromkeys((*old, *new))
        if old.get(name, "-") != new.get(name, "-")
    )
    return (*settings, *_find_moved_packages(earlier, later))


def _find_moved_packages(earlier: Run, later: Run) -> Iterator[Difference]:
    """Yield the packages of each shared version that moved: each alone, or their count if they are many."""
    shared = earlier.manifest.environments.keys() & later.manifest.environments.keys()
    for target in (target for target in later.manifest.environments if target in shared):
        moved = find_moved(*(run.manifest.environments[target].packages for run in (earlier, later)))
        if len(moved) <= MOST_PACKAGES:
            yield from (Difference(f"{target} package {each.name}", each.baseline, each.candidate) for each in moved)
        else:
            yield Difference(f"{target} packages", "-", f"{len(moved)} differ")


def _setting(run: Run) -> dict[str, str]:
    plan, manifest = run.plan, run.manifest
    settings: dict[str, object] = {
        "tfcompare": manifest.tool,
        "tfcompare's worker": manifest.sources.get(WORKER, "")[:SHORT] or None,
        "engine": plan.engine,
        "device": plan.device,
        "isolation": plan.isolation,
        "threads": plan.threads and ",".join(map(str, plan.threads)),
        "datasets": "not tuned" if plan.untuned_datasets else None,
        "XLA code": "kept" if plan.keeps_xla_code else None,
        "cpus": plan.cpus and ",".join(map(str, plan.cpus)),
        "memory_mb": plan.memory_mb,
        "runtime": plan.runtime or None,
        **{f"host {name}": value for name, value in manifest.host.items() if name not in MOVING},
        **{f"variable {name}": value for name, value in manifest.variables.items()},
    }
    for file in plan.large:
        # A run recognises a file that is too large to copy by its size and time; --hash-data records contents.
        modified = datetime.fromtimestamp(file.modified_ns / 1e9, UTC)
        settings[file.name] = f"{file.bytes} bytes, modified at {modified:%Y-%m-%d %H:%M:%S} UTC"
    for name, code in find_code(plan).items():
        settings |= {f"{name} {word}": commit for word, commit in code.items()}
    for target, facts in manifest.environments.items():
        settings |= {f"{target} environment": facts.identity, f"{target} lock": facts.lock}
        settings |= {f"{target} {name}": value for name, value in manifest.workers.get(target, {}).items()}
        settings |= {f"{target} variable {name}": value for name, value in facts.variables.items()}
    return {name: str(value) for name, value in settings.items() if value is not None}


def _describe_left_out(
    old: Mapping[Pair, Comparison], new: Mapping[Pair, Comparison], rewritten: ChangedWorkloads
) -> tuple[str, ...]:
    lines = []
    if rewritten.workloads:
        lines.append(f"left out, because their source or data changed between the runs: {rewritten}")
    for which, own, other in (("earlier", old, new), ("later", new, old)):
        if missing := [pair for pair in own if pair not in other and pair.workload not in rewritten.workloads]:
            lines.append(f"left out, for only the {which} run has them: {format_count(len(missing), 'comparison')}")
    return tuple(lines)


def _nothing_in_common(earlier: Run, later: Run, rewritten: ChangedWorkloads) -> str:
    targets = dict.fromkeys((*earlier.plan.targets, *later.plan.targets))
    why = f" (the source or the data of {rewritten} changed between them)" if rewritten.workloads else ""
    return (
        f"{earlier.path} and {later.path} have no comparison in common{why}: it needs the same two arms in both runs. "
        "Times of two runs are never compared with each other; to compare versions, measure them in one run: "
        f"tfcompare run --versions {','.join(map(str, targets))}"
    )
