"""Reads and judges a run directory: the same way at every look during the run and for every report afterwards."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import pyarrow as pa

from orchestrator import contract
from orchestrator.model import Arm, ArmKey, ArmResult, Comparison, Contrast, Manifest, Metric, Plan, VersionPair
from orchestrator.plan.pairs import neighbour_pairs, reference_pairs
from orchestrator.results.announced import of_journal
from orchestrator.results.endings import Endings, read_endings
from orchestrator.results.replicates import Replicate, load
from orchestrator.results.rundir import RunDir
from orchestrator.results.warnings import check_control, check_noise, check_run
from orchestrator.stats.contrasts import Samples, compare
from orchestrator.stats.drift import drift

METRICS: Mapping[Metric, Callable[[Replicate], float]] = {
    "steady": lambda replicate: replicate.steady_ns,
    "first": lambda replicate: replicate.first_ns,
    "build": lambda replicate: replicate.build_ns,
    "peak_rss": lambda replicate: replicate.peak_rss_kb or 0,
    "traces": lambda replicate: replicate.traces or 0,
}


@dataclass(frozen=True)
class Gathered:
    """Contents of a run directory, without discarded replicates."""

    plan: Plan
    manifest: Manifest
    endings: Endings
    replicates: tuple[Replicate, ...]
    problems: tuple[str, ...]
    broken: tuple[str, ...]


def gather(run: RunDir, also: Callable[[pa.Table], None] | None = None) -> Gathered:
    """Read a run directory; `also` is called with the rows of each stream, which are not kept."""
    plan, manifest = run.read_plan(), run.read_manifest()
    endings = read_endings(run)
    announced = of_journal(plan, run.entries())
    loaded = load(run.streams(), plan.run, also, announced)
    missing = announced.missing(loaded.unread | endings.unread) if announced else []
    kept = tuple(
        replicate
        for replicate in loaded.replicates
        if replicate.round != contract.PILOT_ROUND and replicate.number not in endings.redone
    )
    return Gathered(plan, manifest, endings, kept, loaded.problems, (*loaded.broken, *endings.broken, *missing))


def judge_run(run: RunDir, *, at_look: bool = False) -> Comparison:
    """Judge a run directory.

    A look delays the measurement, so it skips what no verdict needs.
    """
    return judge(gather(run), flip=not at_look)


def judge(found: Gathered, *, flip: bool = True) -> Comparison:
    arms, contrasts = compute_contrasts(found.plan, found.replicates, found.endings, flip=flip)
    return Comparison(
        plan=found.plan,
        manifest=found.manifest,
        arms=arms,
        contrasts=contrasts,
        neighbours=further(found, neighbour_pairs(found.plan, arms), arms) if flip else (),
        references=further(found, reference_pairs(found.plan, arms), arms) if flip else (),
        warnings=(
            *check_control(contrasts),
            *check_noise(found.plan, contrasts),
            *check_run(found.plan, found.manifest, found.endings, found.problems),
        ),
        broken=found.broken,
    )


def compute_contrasts(
    plan: Plan, replicates: Iterable[Replicate], endings: Endings, *, flip: bool
) -> tuple[tuple[ArmResult, ...], tuple[Contrast, ...]]:
    """Compute arms and contrasts from replicates and endings, without reading any file."""
    by_arm = _by_arm(replicates)
    arms = tuple(_result(arm, by_arm.get(arm.key, []), endings) for arm in plan.arms())
    known = _samples(plan, by_arm)
    contrasts = compare(plan, known, arms, flip=flip)
    return arms, tuple(_mark_exploratory(contrast, known, endings.exploratory_from) for contrast in contrasts)


def further(found: Gathered, pairs: tuple[VersionPair, ...], arms: Sequence[ArmResult]) -> tuple[Contrast, ...]:
    """Return a separate family of contrasts, for which no rounds were measured."""
    plan = replace(found.plan, pairs=pairs)
    if not pairs:
        return ()
    known = samples(plan, found.replicates)
    first = found.endings.exploratory_from
    return tuple(_mark_exploratory(contrast, known, first) for contrast in compare(plan, known, arms))


def samples(plan: Plan, replicates: Iterable[Replicate]) -> Samples:
    """Return the samples from which verdicts are made."""
    return _samples(plan, _by_arm(replicates))


def _by_arm(replicates: Iterable[Replicate]) -> dict[ArmKey, list[Replicate]]:
    found: dict[ArmKey, list[Replicate]] = defaultdict(list)
    for replicate in replicates:
        found[replicate.arm].append(replicate)
    return found


def _samples(plan: Plan, by_arm: Mapping[ArmKey, Sequence[Replicate]]) -> Samples:
    metrics = {pair.metric for pair in plan.pairs}
    return {
        (*name, metric): {replicate.round: math.log(max(METRICS[metric](replicate), 1.0)) for replicate in of_arm}
        for name, of_arm in by_arm.items()
        for metric in metrics
    }


def _mark_exploratory(contrast: Contrast, samples: Samples, first: int | None) -> Contrast:
    if first is None:
        return contrast
    baseline, candidate = (samples.get((*name, contrast.pair.metric), {}) for name in contrast.pair.arms)
    return replace(contrast, exploratory=max(baseline.keys() & candidate.keys(), default=0) >= first)


def _result(arm: Arm, replicates: Sequence[Replicate], endings: Endings) -> ArmResult:
    case, version = arm
    if arm.key in endings.refused:
        return ArmResult(case=case, version=version, outcome="refused", reason=endings.refused[arm.key])
    death = endings.died.get(arm.key)
    reason = death.reason if death else ""
    refuted = bool(death and death.refutes)
    if not reason and not replicates:
        reason = endings.lost.get(version, "the run ended before it was measured")
    if not replicates:
        return ArmResult(case=case, version=version, outcome="died", reason=reason, refuted=refuted)
    return ArmResult(
        case=case,
        version=version,
        outcome="died" if reason else "measured",
        reason=reason,
        refuted=refuted,
        rounds=len(replicates),
        median_ms=median(replicate.steady_ns for replicate in replicates) / 1e6,
        first_ms=median(replicate.first_ns for replicate in replicates) / 1e6,
        second_ms=median(replicate.second_ns for replicate in replicates) / 1e6,
        train_s=median(replicate.calls_ns for replicate in replicates) / 1e9,
        build_s=median(replicate.build_ns for replicate in replicates) / 1e9,
        import_s=median(replicate.import_ns or 0 for replicate in replicates) / 1e9,
        peak_rss_mb=median(replicate.peak_rss_kb or 0 for replicate in replicates) / 1024,
        traces=replicates[-1].traces,
        checksum=replicates[-1].checksum,
        drift=drift([replicate.rise for replicate in replicates]),
    )
