"""Warnings in addition to the verdicts: about the control arm, noise, clocks, and other differences."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from orchestrator.model import Comparison, Evaluation, GpuSpan, Manifest, Metric, Plan, Target, Watched
from orchestrator.results.endings import Endings
from orchestrator.stats.comparisons import MOST_CALLED_DIFFERENT, Family
from orchestrator.stats.dependence import Dependence
from orchestrator.stats.slowdown import LARGEST_SHOWN, format_margin
from orchestrator.terminal.counts import format_count

# A machine is noisy if noise leaves at least this share of the comparisons open, and at least this many are timed.
NOISY_SHARE, FEWEST_TO_TELL_NOISE = 1 / 3, 3
# A run is crowded if it had to share all cores in more than this share of its visits.
CROWDED_SHARE = 1 / 2
# A clock that falls below this share of its highest rate has changed by more than most margins.
EVEN_CLOCK = 0.95
# If chance alone makes the control arm differ more often than this, the difference proves nothing about the machine.
PLAUSIBLE = 0.05
# A comparison with fewer rounds is open because of their number, and not because of the machine.
ENOUGH_ROUNDS = 5
GOING = "the run is still measuring; this is what its last look saw, and rounds since then are judged at the next"


def check_control(comparisons: Sequence[Comparison]) -> list[str]:
    """Warn about this machine if the baseline differs from itself; this warning comes before all others."""
    own = [
        comparison
        for comparison in comparisons
        if comparison.pair.kind == "target" and comparison.pair.candidate.control
    ]
    if not own:
        return []
    failed = [comparison for comparison in own if comparison.verdict in ("slower", "faster")]
    if failed:
        worst = max(failed, key=lambda comparison: abs(math.log(comparison.ratio or 1.0)))
        baseline, _ = worst.pair.arms
        where = f"in {len(failed)} of {len(own)} cases: {baseline.target} against itself is {worst.verdict}"
        which = f"({worst.ratio:.2f}x in {baseline.case})"
        # This is the largest probability that at least this many equal arms are called different.
        equal, share = len(own), MOST_CALLED_DIFFERENT
        fewer = (
            math.comb(equal, count) * share**count * (1 - share) ** (equal - count) for count in range(len(failed))
        )
        chance = 1 - sum(fewer)
        if chance > PLAUSIBLE:
            return [
                f"the control arm came out different {where} {which}; in a run with that many equal arms, chance alone "
                f"does this with a probability of {chance:.0%}"
            ]
        return [f"THE CONTROL ARM FAILED {where} {which}; believe no difference of that size"]
    open_ = [comparison for comparison in own if comparison.verdict != "same"]
    if open_:
        # Too few rounds give no interval.
        why = "a noisy machine" if any(comparison.ci_low is not None for comparison in open_) else "too few rounds"
        return [f"the control arm is not shown to be the same in {len(open_)} of {len(own)} cases: {why}"]
    return []


def check_noise(plan: Plan, comparisons: Sequence[Comparison]) -> list[str]:
    """Warn about a noisy machine if many open comparisons would have been decided on a quieter one.

    The warning comes before the verdicts.
    """
    hidden, timed = _hidden_by_noise(plan, comparisons)
    if not _are_many(hidden, timed):
        return []
    visible = median(comparison.mde or 0.0 for comparison in hidden)
    size = f"slowdowns below {visible:.0%}" if visible <= LARGEST_SHOWN else "even a slowdown by a factor of two"
    decided = sum(comparison.is_decided_by_cpu for comparison in hidden)
    by_cpu = f"CPU time decides {decided} of these (--columns +cpu-ratio), " if decided else ""
    return [
        f"noisy machine: in {len(hidden)} of {timed} comparisons, {size} may go unseen "
        f"(target: {format_margin(plan.margin)}); {by_cpu}`tfcompare doctor` shows what helps, --resume adds rounds"
    ]


def is_noisy(plan: Plan, comparisons: Sequence[Comparison]) -> bool:
    """Return whether a run gets the warning about a noisy machine."""
    return _are_many(*_hidden_by_noise(plan, comparisons))


def _hidden_by_noise(plan: Plan, comparisons: Sequence[Comparison]) -> tuple[list[Comparison], int]:
    """Return the open comparisons in which noise hides the margin, and how many were timed.

    A comparison that is decided hides nothing, and one whose interval excludes 1 is not left open by noise.
    """
    timed = [
        comparison for comparison in comparisons if comparison.rounds >= ENOUGH_ROUNDS and comparison.mde is not None
    ]
    hidden = [
        comparison
        for comparison in timed
        if comparison.verdict == "inconclusive"
        and comparison.mde is not None
        and comparison.mde > (plan.margin if comparison.pair.margin is None else comparison.pair.margin)
        and comparison.ci_low is not None
        and comparison.ci_high is not None
        and comparison.ci_low <= 1 <= comparison.ci_high
    ]
    return hidden, len(timed)


def _are_many(hidden: Sequence[Comparison], timed: int) -> bool:
    return timed >= FEWEST_TO_TELL_NOISE and len(hidden) >= timed * NOISY_SHARE


def find_open_times(evaluation: Evaluation) -> list[Comparison]:
    """Return the open comparisons of times that CPU times may decide.

    There are none unless a busy or noisy machine left many comparisons open.
    """
    timed = [each for each in evaluation.comparisons if each.pair.metric == "time" and each.has_interval]
    open_ = [each for each in timed if each.verdict == "inconclusive" and each.cpu_verdict is not None]
    disturbed = evaluation.crowded or is_noisy(evaluation.plan, evaluation.comparisons)
    return open_ if disturbed and len(open_) >= len(timed) * NOISY_SHARE else []


def check_crowd(plan: Plan, endings: Endings) -> list[str]:
    """Warn that wall times are not those of the versions alone, if other work kept all cores busy."""
    if plan.judge == "cpu" or not is_crowded(endings):
        return []
    crowded = sum(load.is_crowded for load in endings.loads)
    advice = "" if plan.device == "gpu" else "; --judge cpu compares CPU times"
    return [
        f"other work shared all cores in {crowded} of {len(endings.loads)} visits, so wall times are a mixture of "
        f"computing and of waiting for a core{advice}"
    ]


def is_crowded(endings: Endings) -> bool:
    """Return whether a run had to share all cores in most of its visits."""
    return sum(load.is_crowded for load in endings.loads) > len(endings.loads) * CROWDED_SHARE


def check_dependence(found: Mapping[Family, Dependence]) -> list[str]:
    """Warn if rounds depend on each other, because they then tell less than the same number of independent ones."""
    of_metrics: dict[Metric, list[Dependence]] = defaultdict(list)
    for (metric, _), dependence in found.items():
        if dependence:
            of_metrics[metric].append(dependence)
    return [
        f"{first}, so the intervals of {metric} are wider: something on this machine changes slowly"
        + (f"; likewise {format_count(len(others), 'other part')} of the run" if others else "")
        for metric, (first, *others) in of_metrics.items()
    ]


def check_run(plan: Plan, manifest: Manifest, endings: Endings, problems: Sequence[str]) -> list[str]:
    warnings = [*problems, *manifest.notes, *_clocks(endings.watched)]
    if endings.finished is None:
        warnings.append(GOING if endings.going else "the run was cut short; what it measured is here")
    elif endings.finished.how and not endings.finished.at_budget:
        warnings.append(endings.finished.how)
    for target, loss in endings.lost.items():
        warnings.append(f"{target} was lost ({loss.stage}: {loss.reason})")
    warnings += [
        f"removed unexpected files from the results of {entry.target}: {entry.what}"
        for entry in endings.discarded
        if not entry.stream
    ]
    if endings.strays:
        of_target = [f"{endings.strays[target]} in {target}" for target in plan.targets if endings.strays[target]]
        counts = ", ".join(of_target)
        warnings.append(f"workloads left processes running, which were ended with their replicate: {counts}")
    warnings += compare_threads(plan, endings)
    if endings.disturbed:
        repeated = sum(entry.redone for entry in endings.disturbed)
        warnings.append(
            f"{format_count(len(endings.disturbed), 'disturbance')}, e.g. {endings.disturbed[0].cause}; {repeated} "
            "repeated"
        )
    return warnings


def compare_threads(plan: Plan, endings: Endings) -> list[str]:
    """Warn if TensorFlow states thread counts other than requested, or than in another version of the case."""
    by_case: dict[str, dict[Target, set[tuple[int, ...]]]] = defaultdict(dict)
    for (case, target), stated in endings.threads.items():
        by_case[case][target] = stated
    requested = {plan.threads} if plan.threads else set()
    odd = {case: stated for case, stated in by_case.items() if len(requested.union(*stated.values())) > 1}
    if not odd:
        return []
    case, by_target = next(iter(odd.items()))
    counts = "; ".join(
        f"{target}: {' or '.join(','.join(map(str, threads)) for threads in sorted(stated))}"
        for target, stated in by_target.items()
    )
    wish = f", --threads {','.join(map(str, plan.threads))} was asked for" if plan.threads else ""
    return [
        f"TensorFlow states different numbers of threads in {len(odd)} of {len(by_case)} cases (inter,intra; "
        f"0 is its own choice{wish}), e.g. in {case}: {counts}"
    ]


def _clocks(watched: Sequence[Watched]) -> list[str]:
    """Return one note per GPU whose clock changed.

    A ratio is formed within a round, but a GPU that cools down between two arms still affects it.
    """
    by_gpu: dict[int, list[GpuSpan]] = defaultdict(list)
    for visit in watched:
        for span in visit.gpus:
            by_gpu[span.index].append(span)
    notes = []
    for index, spans in sorted(by_gpu.items()):
        slowest = min((span.sm_mhz_min for span in spans if span.sm_mhz_min is not None), default=None)
        fastest = max((span.sm_mhz_max for span in spans if span.sm_mhz_max is not None), default=None)
        if slowest is None or fastest is None or slowest >= fastest * EVEN_CLOCK:
            continue
        hottest = max((span.temperature_c for span in spans if span.temperature_c is not None), default=None)
        heat = f", up to {hottest} C" if hottest is not None else ""
        reasons = Counter(reason for span in spans for reason in span.throttled)
        held = "".join(f", {reason} in {count} of {len(spans)} visits" for reason, count in reasons.most_common())
        notes.append(
            f"GPU {index} ran at {slowest} to {fastest} MHz after its bursts{heat}{held}; "
            "--lock-clocks MHZ holds it still"
        )
    return notes
