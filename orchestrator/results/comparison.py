"""Reads and judges a run directory: the same way at every look during the run and for every report afterwards."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import median

import pyarrow as pa

from orchestrator.model import (
    CONTROL,
    Arm,
    CardSpan,
    Case,
    Comparison,
    Contrast,
    Discarded,
    Disturbed,
    Ended,
    Extended,
    Finished,
    Lost,
    Manifest,
    Metric,
    Pair,
    Plan,
    Watched,
)
from orchestrator.plan.pairs import neighbour_pairs, reference_pairs
from orchestrator.results.announced import of_journal
from orchestrator.results.replicates import Replicate, load
from orchestrator.results.rundir import RunDir
from orchestrator.stats.contrasts import Samples, compare
from orchestrator.stats.drift import drift
from workloads import contract

METRICS: Mapping[Metric, Callable[[Replicate], float]] = {
    "steady": lambda replicate: replicate.steady_ns,
    "first": lambda replicate: replicate.first_ns,
    "build": lambda replicate: replicate.build_ns,
    "peak_rss": lambda replicate: replicate.peak_rss_kb or 0,
    "traces": lambda replicate: replicate.traces or 0,
}

# From this share of the contrasts on, those that noise leaves open say more of the machine than of the versions.
NOISY_SHARE, FEWEST_TO_TELL_NOISE = 1 / 3, 3
# A clock that falls below this share of its highest has moved more than most margins.
STEADY_CLOCK = 0.95
# With fewer, it is not the machine that hides a difference.
ENOUGH_ROUNDS = 5


@dataclass(frozen=True)
class Endings:
    """What the journal says about arms that were not simply measured."""

    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    died: dict[tuple[str, str], Ended] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    redone: set[int] = field(default_factory=set)
    disturbed: list[Disturbed] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    discarded: list[Discarded] = field(default_factory=list)
    # Of each arm, what TensorFlow stated.
    threads: dict[tuple[str, str], set[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(set))
    exploratory_from: int | None = None
    finished: Finished | None = None

    @property
    def broken(self) -> tuple[str, ...]:
        """The streams that were not even files."""
        return tuple(entry.what for entry in self.discarded if entry.stream)

    @property
    def unread(self) -> frozenset[tuple[str, int]]:
        return frozenset((entry.version, entry.part) for entry in self.discarded if entry.stream)


def read_endings(run: RunDir) -> Endings:
    endings = Endings()
    finished = None
    exploratory_from = None
    for entry in run.entries():
        if isinstance(entry, Ended) and entry.outcome == "refused":
            endings.refused[entry.case, entry.version] = entry.reason
        elif isinstance(entry, Ended) and entry.outcome == "died" and entry.closes_arm:
            endings.died[entry.case, entry.version] = entry
        elif isinstance(entry, Ended) and entry.outcome == "measured":
            # More rounds had a worker for it again.
            endings.lost.pop(entry.version, None)
            if entry.threads:
                endings.threads[entry.case, entry.version].add(entry.threads)
        elif isinstance(entry, Lost):
            endings.lost[entry.version] = f"{entry.stage}: {entry.reason}"
        elif isinstance(entry, Disturbed):
            endings.disturbed.append(entry)
            endings.redone.update(entry.replicates if entry.redone else ())
        elif isinstance(entry, Watched):
            endings.watched.append(entry)
        elif isinstance(entry, Discarded):
            endings.discarded.append(entry)
        elif isinstance(entry, Extended):
            finished = None
            if entry.exploratory and exploratory_from is None:
                exploratory_from = entry.first_round
        elif isinstance(entry, Finished):
            finished = entry
    return replace(endings, exploratory_from=exploratory_from, finished=finished)


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
    arms, contrasts = compared(found.plan, found.replicates, found.endings, flip=flip)
    return Comparison(
        plan=found.plan,
        manifest=found.manifest,
        arms=arms,
        contrasts=contrasts,
        neighbours=further(found, neighbour_pairs(found.plan, arms), arms) if flip else (),
        references=further(found, reference_pairs(found.plan, arms), arms) if flip else (),
        warnings=(
            *_control(contrasts),
            *_noise(found.plan, contrasts),
            *_warnings(found.plan, found.manifest, found.endings, found.problems),
        ),
        broken=found.broken,
    )


def compared(
    plan: Plan, replicates: Iterable[Replicate], endings: Endings, *, flip: bool
) -> tuple[tuple[Arm, ...], tuple[Contrast, ...]]:
    """Compute arms and contrasts from replicates and endings, without reading any file."""
    by_arm = _by_arm(replicates)
    arms = tuple(_arm(case, version, by_arm.get((case.label, version), []), endings) for case, version in plan.arms())
    known = _samples(plan, by_arm)
    contrasts = compare(plan, known, arms, flip=flip)
    return arms, tuple(_explored(contrast, known, endings.exploratory_from) for contrast in contrasts)


def further(found: Gathered, pairs: tuple[Pair, ...], arms: Sequence[Arm]) -> tuple[Contrast, ...]:
    """Return a separate family of contrasts, for which no rounds were measured."""
    plan = replace(found.plan, pairs=pairs)
    if not pairs:
        return ()
    known = samples(plan, found.replicates)
    first = found.endings.exploratory_from
    return tuple(_explored(contrast, known, first) for contrast in compare(plan, known, arms))


def samples(plan: Plan, replicates: Iterable[Replicate]) -> Samples:
    """Return the samples from which verdicts are made."""
    return _samples(plan, _by_arm(replicates))


def _by_arm(replicates: Iterable[Replicate]) -> dict[tuple[str, str], list[Replicate]]:
    found: dict[tuple[str, str], list[Replicate]] = defaultdict(list)
    for replicate in replicates:
        found[replicate.case, replicate.version].append(replicate)
    return found


def _samples(plan: Plan, by_arm: Mapping[tuple[str, str], Sequence[Replicate]]) -> Samples:
    metrics = {pair.metric for pair in plan.pairs}
    return {
        (*name, metric): {replicate.round: math.log(max(METRICS[metric](replicate), 1.0)) for replicate in of_arm}
        for name, of_arm in by_arm.items()
        for metric in metrics
    }


def _explored(contrast: Contrast, samples: Samples, first: int | None) -> Contrast:
    if first is None:
        return contrast
    baseline, candidate = (samples.get((*name, contrast.pair.metric), {}) for name in contrast.pair.arms)
    return replace(contrast, exploratory=max(baseline.keys() & candidate.keys(), default=0) >= first)


def _arm(case: Case, version: str, replicates: Sequence[Replicate], endings: Endings) -> Arm:
    name = case.label, version
    if name in endings.refused:
        return Arm(case=case, version=version, outcome="refused", reason=endings.refused[name])
    death = endings.died.get(name)
    reason = death.reason if death else ""
    refuted = bool(death and death.refutes)
    if not reason and not replicates:
        reason = endings.lost.get(version, "the run ended before it was measured")
    if not replicates:
        return Arm(case=case, version=version, outcome="died", reason=reason, refuted=refuted)
    return Arm(
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


def _control(contrasts: Sequence[Contrast]) -> list[str]:
    """Warn about this machine if the baseline differs from itself; this warning comes before all others."""
    own = [one for one in contrasts if one.pair.kind == "version" and one.pair.candidate.endswith(CONTROL)]
    if not own:
        return []
    failed = [one for one in own if one.verdict in ("slower", "faster")]
    if failed:
        worst = max(failed, key=lambda one: abs(math.log(one.ratio or 1.0)))
        return [
            f"THE CONTROL ARM FAILED in {len(failed)} of {len(own)} cases: {worst.pair.baseline} against itself is "
            f"{worst.verdict} ({worst.ratio:.2f}x in {worst.pair.arms[0][0]}); believe no difference of that size"
        ]
    open_ = [one for one in own if one.verdict != "same"]
    if open_:
        return [f"the control arm is not shown to be the same in {len(open_)} of {len(own)} cases: a noisy machine"]
    return []


def _noise(plan: Plan, contrasts: Sequence[Contrast]) -> list[str]:
    """Warn about a noisy machine if many open contrasts would have been decided on a quieter one.

    The warning comes before the verdicts.
    """
    timed = [
        (one.mde, one.ci_low, one.ci_high)
        for one in contrasts
        if one.rounds >= ENOUGH_ROUNDS and one.mde is not None and one.ci_low is not None and one.ci_high is not None
    ]
    hidden = [mde for mde, low, high in timed if mde > plan.margin and low <= 1 <= high]
    if len(timed) < FEWEST_TO_TELL_NOISE or len(hidden) < len(timed) * NOISY_SHARE:
        return []
    return [
        f"A NOISY MACHINE: in {len(hidden)} of {len(timed)} contrasts a slowdown would typically be seen from "
        f"{median(hidden):.0%} on, and not from {plan.margin:.0%}; `tfcompare doctor` says what helps, --more goes on"
    ]


def _warnings(plan: Plan, manifest: Manifest, endings: Endings, problems: Sequence[str]) -> list[str]:
    warnings = [*problems, *manifest.notes, *_clocks(endings.watched)]
    if endings.finished is None:
        warnings.append("the run was cut short; what it measured is here")
    elif endings.finished.how:
        warnings.append(endings.finished.how)
    for version, reason in endings.lost.items():
        warnings.append(f"{version} was lost ({reason})")
    warnings += [
        f"removed unexpected files from the results of {entry.version}: {entry.what}"
        for entry in endings.discarded
        if not entry.stream
    ]
    warnings += compare_threads(plan, endings)
    kept = [entry.cause for entry in endings.disturbed if not entry.redone]
    if endings.disturbed:
        warnings.append(
            f"others used the machine in {len(endings.disturbed)} visits of a case (e.g. "
            f"{endings.disturbed[0].cause}); {len(endings.disturbed) - len(kept)} were redone, {len(kept)} kept"
        )
    pythons = {
        version: str(manifest.workers.get(version, {}).get("python", facts.python))
        for version, facts in manifest.environments.items()
    }
    # An environment may know less of its Python than the worker in it.
    if len({tuple(python.split(".")[:2]) for python in pythons.values()}) > 1:
        warnings.append(f"Python differs between versions ({_listed(pythons)}): it is part of every ratio")
    return warnings


def compare_threads(plan: Plan, endings: Endings) -> list[str]:
    """Warn if TensorFlow states thread counts other than requested, or than in another version of the case."""
    by_case: dict[str, dict[str, set[tuple[int, ...]]]] = defaultdict(dict)
    for (case, version), stated in endings.threads.items():
        by_case[case][version] = stated
    asked = {plan.threads} if plan.threads else set()
    odd = {case: stated for case, stated in by_case.items() if len(asked.union(*stated.values())) > 1}
    if not odd:
        return []
    case, by_version = next(iter(odd.items()))
    counts = "; ".join(
        f"{version}: {' or '.join(','.join(map(str, one)) for one in sorted(found))}"
        for version, found in by_version.items()
    )
    wish = f", --threads {','.join(map(str, plan.threads))} was asked for" if plan.threads else ""
    return [
        f"TensorFlow states different numbers of threads in {len(odd)} of {len(by_case)} cases (inter,intra; "
        f"0 is its own choice{wish}), e.g. in {case}: {counts}"
    ]


def _listed(pythons: Mapping[str, str]) -> str:
    """List versions with their Pythons; three or more neighbours that share a Python become a range."""
    told: list[str] = []
    for python, group in groupby(pythons, key=pythons.__getitem__):
        versions = list(group)
        whom = [f"{versions[0]} to {versions[-1]}"] if len(versions) > 2 else versions
        told += [f"{one} on {python}" for one in whom]
    return ", ".join(told)


def _clocks(watched: Sequence[Watched]) -> list[str]:
    """Return one note per GPU whose clock was not steady.

    A ratio is formed within a round, but a card that cools down between two arms still affects it.
    """
    by_card: dict[int, list[CardSpan]] = defaultdict(list)
    for visit in watched:
        for card in visit.cards:
            by_card[card.index].append(card)
    return [told for index, seen in sorted(by_card.items()) if (told := _clock(index, seen))]


def _clock(index: int, visits: Sequence[CardSpan]) -> str:
    slowest = min((card.sm_mhz_min for card in visits if card.sm_mhz_min is not None), default=None)
    fastest = max((card.sm_mhz_max for card in visits if card.sm_mhz_max is not None), default=None)
    if slowest is None or fastest is None or slowest >= fastest * STEADY_CLOCK:
        return ""
    hottest = max((card.temperature_c for card in visits if card.temperature_c is not None), default=None)
    heat = f", up to {hottest} C" if hottest is not None else ""
    reasons = Counter(reason for card in visits for reason in card.throttled)
    held = "".join(f", {reason} in {count} of {len(visits)} visits" for reason, count in reasons.most_common())
    return (
        f"GPU {index} ran at {slowest} to {fastest} MHz after its bursts{heat}{held}; "
        "`nvidia-smi --lock-gpu-clocks` keeps it still"
    )
