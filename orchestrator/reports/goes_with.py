"""Facts that go with a difference of times: what else the run saw of the two arms.

Rules apply only where times differ, so none can fire on equal arms. A fact that goes with a difference need not be its
cause, so no sentence says `why`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from orchestrator.catalog.claims import find_claims_about
from orchestrator.catalog.found import all_found
from orchestrator.catalog.workloads import all_workloads, source_hashes
from orchestrator.metrics import METRICS
from orchestrator.metrics.units import COUNT_PER_CALL
from orchestrator.model import (
    ArmKey,
    ArmResult,
    CasePair,
    Claim,
    Comparison,
    Evaluation,
    Expectation,
    Manifest,
    Metric,
    VerdictName,
)
from orchestrator.reports.case_names import short_names
from orchestrator.terminal.counts import name_some
from orchestrator.terminal.durations import format_time

# A line names at most this many cases of a target, or targets of a case.
MOST_NAMED = 2
# If at least the first share of calls retrace, `most calls retrace`; from the second share on, `every call retraces`.
MOST_CALLS, EACH_CALL = 0.5, 0.95
# One thread that computes keeps almost a core busy.
ONE_CORE = 0.9
# The slower arm keeps at most this share of the faster arm's cores busy; the faster arm keeps at least this many busy.
FEWER, SEVERAL = 0.8, 1.3
NONE = "none"


@dataclass(frozen=True)
class DifferingArms:
    """Two arms whose times differ in the report as a whole, and what else their comparisons say."""

    slower: ArmResult
    faster: ArmResult
    # This is unknown on a GPU, and where CPU times themselves were judged.
    cpu_verdict: VerdictName | None
    on_gpu: bool
    # The slower arm has more of these.
    more: frozenset[Metric]


@dataclass(frozen=True)
class Rule:
    """A fact about the slower of two arms, in words, and the figure that shows it."""

    name: str
    holds: Callable[[DifferingArms], bool]
    says: Callable[[ArmResult], str]
    figure: Callable[[ArmResult], str]
    # This follows the figure of the slower arm only.
    unit: str = ""


@dataclass(frozen=True)
class Companion:
    """A fact that goes with the difference of some cases, and the target or the case that is slower."""

    rule: str
    slower: str
    faster: str
    cases: tuple[str, ...]
    fact: str
    # The slower target with its cases, or the slower case with its targets, and the figures of both arms.
    place: str = ""
    figures: str = ""
    is_across: bool = True

    @property
    def text(self) -> str:
        return _join(self, [self.place])


def _retraces(arms: DifferingArms) -> bool:
    slow, fast = (arm.figures.get("traces_per_call") for arm in (arms.slower, arms.faster))
    return slow is not None and fast is not None and slow >= MOST_CALLS and fast <= slow / 2


def _count_cores(arm: ArmResult) -> float:
    """Return how many cores an arm keeps busy while it is called."""
    return arm.figures.get("cpu", 0.0) / arm.time_ms if arm.time_ms else 0.0


def _waits(arms: DifferingArms) -> bool:
    return arms.cpu_verdict == "same" and 0 < _count_cores(arms.slower) < ONE_CORE


def _uses_fewer_cores(arms: DifferingArms) -> bool:
    slow, fast = _count_cores(arms.slower), _count_cores(arms.faster)
    return arms.cpu_verdict is not None and slow >= ONE_CORE and fast >= SEVERAL and slow <= FEWER * fast


def _uses_no_gpu(arms: DifferingArms) -> bool:
    slow, fast = (arm.figures.get("gpu_memory") for arm in (arms.slower, arms.faster))
    return arms.on_gpu and not slow and bool(fast)


def _show(metric: Metric) -> Callable[[ArmResult], str]:
    return lambda arm: METRICS[metric].show(arm.figures[metric]) if arm.figures.get(metric) else NONE


RULES = (
    Rule(
        "retraces",
        _retraces,
        lambda arm: "every call retraces" if arm.figures["traces_per_call"] >= EACH_CALL else "most calls retrace",
        lambda arm: COUNT_PER_CALL.show(arm.figures["traces_per_call"]).removesuffix(COUNT_PER_CALL.per),
        " traces per call",
    ),
    Rule(
        "no GPU",
        _uses_no_gpu,
        lambda arm: "no GPU memory is used",
        _show("gpu_memory"),
    ),
    Rule(
        "waits",
        _waits,
        lambda arm: "calls wait",
        lambda arm: f"{format_time(arm.figures['cpu'])} of CPU time in {format_time(arm.time_ms or 0.0)}",
    ),
    Rule(
        "fewer cores",
        _uses_fewer_cores,
        lambda arm: "fewer cores are busy",
        lambda arm: f"{_count_cores(arm):.1f}",
        " cores",
    ),
    Rule(
        "grows",
        lambda arms: "leak" in arms.more,
        lambda arm: "memory grows with each call",
        _show("leak"),
    ),
    Rule(
        "slows down",
        lambda arms: bool(arms.slower.drift and arms.slower.drift.rise > 0 and not arms.faster.drift),
        lambda arm: "each call is slower than the one before",
        lambda arm: f"later calls take {math.expm1(arm.drift.rise):.0%} longer" if arm.drift else "settles",
    ),
)


def find_companions(evaluation: Evaluation) -> tuple[Companion, ...]:
    """Return the facts that go with the differences of a run, starting with those of the most cases."""
    names = short_names(arm.case for arm in evaluation.arms)
    found: dict[tuple[str, str, str], list[DifferingArms]] = {}
    rules = {rule.name: rule for rule in RULES}
    for arms in _find_differing(evaluation):
        slow, fast = arms.slower, arms.faster
        across = slow.target != fast.target
        who = (str(slow.target), str(fast.target)) if across else (names[slow.case.label], names[fast.case.label])
        for rule in RULES:
            if rule.holds(arms):
                found.setdefault((rule.name, *who), []).append(arms)
    companions = [
        _build_companion(rules[rule], slower, faster, of_rule, names)
        for (rule, slower, faster), of_rule in found.items()
    ]
    return (*sorted(companions, key=lambda each: -len(each.cases)), *_find_published(evaluation))


def describe_companions(companions: Iterable[Companion]) -> Iterator[str]:
    """Yield one line per fact; targets for which it holds against the same baseline share a line."""
    lines: dict[tuple[str, str], list[Companion]] = {}
    for each in companions:
        lines.setdefault((each.fact, each.faster), []).append(each)
    for first, *others in lines.values():
        yield f"goes with: {_join(first, [first.place, *(each.place for each in others if each.place)])}"


def _join(companion: Companion, places: Sequence[str]) -> str:
    figures = f": {companion.figures}" if companion.figures else ""
    return f"{companion.fact}{' in ' if companion.place else ''}{' and '.join(places)}{figures}"


def _find_published(evaluation: Evaluation) -> Iterable[Companion]:
    """Return claims that were reproduced and are about the same step of a built-in workload between the same targets.

    A run of claims has a report of its claims already.
    """
    if evaluation.plan.claims:
        return ()
    names = short_names(arm.case for arm in evaluation.arms)
    known: dict[str, Sequence[Claim]] = {}
    found: dict[tuple[str, str, str], Companion] = {}
    for comparison in evaluation.comparisons:
        workload, ordered = comparison.pair.workload, _order(comparison)
        if ordered is None:
            continue
        if workload not in known:
            known[workload] = _find_reproduced(workload, evaluation.manifest)
        same = (each for each in known[workload] if any(_is_same_step(comparison, one) for one in each.expectations))
        if claim := next(same, None):
            slow, fast = ordered
            across = slow.target != fast.target
            slower, faster = (str(each.target) if across else names[each.case] for each in ordered)
            text = f"{claim.name}, a report that was reproduced: {claim.title}"
            if better := _name_better(claim, slow, fast):
                text += f"; {better} is faster there"
            first = found.get((claim.name, slower, faster))
            cases = (*first.cases, slow.case) if first else (slow.case,)
            found[claim.name, slower, faster] = Companion("published", slower, faster, cases, text, is_across=across)
    return found.values()


def _find_reproduced(name: str, manifest: Manifest) -> Sequence[Claim]:
    """Return the claims about a workload that were reproduced, if it is built in and was measured as it is now."""
    workloads = all_workloads()
    if name not in workloads or manifest.sources.get(name) != source_hashes([workloads[name]])[name]:
        return ()
    found = all_found()
    claims = find_claims_about(name, workloads)
    return [each for each in claims if each.name in found and found[each.name].answer.startswith("reproduced")]


def _is_same_step(comparison: Comparison, expected: Expectation) -> bool:
    """Return whether a comparison shows the effect of a claim; the releases of a run may be farther apart."""
    ours, theirs = comparison.pair, expected.pair
    if ours.kind != theirs.kind or theirs.metric != "time" or expected.effect != comparison.report_verdict:
        return False
    (our_old, our_new), (old, new) = ours.arms, theirs.arms
    if (our_old.case, our_new.case) != (old.case, new.case):
        return False
    if isinstance(theirs, CasePair):
        return our_new.target == new.target
    try:
        order = [Version(str(each.target)) for each in (our_old, old, new, our_new)]
    except InvalidVersion:
        return False
    return order == sorted(order)


def _name_better(claim: Claim, slow: ArmKey, fast: ArmKey) -> str:
    """Return a third case that the claim expects to be faster than the slower one, or ''."""
    for each in claim.expectations:
        baseline, candidate = each.pair.arms
        is_about = isinstance(each.pair, CasePair) and each.effect == "faster" and baseline.case == slow.case
        if is_about and candidate.case != fast.case:
            return candidate.case
    return ""


def _find_differing(evaluation: Evaluation) -> Iterator[DifferingArms]:
    """Yield the arms whose times differ, those whose times differ most first."""
    by_key = {arm.key: arm for arm in evaluation.arms}
    more: dict[tuple[ArmKey, ArmKey], set[Metric]] = {}
    for metric, comparisons in evaluation.metrics.items():
        for each in comparisons:
            if (ordered := _order(each)) is not None:
                more.setdefault(ordered, set()).add(metric)
    for comparison in sorted(evaluation.comparisons, key=lambda each: -each.distance):
        ordered = _order(comparison)
        if ordered is None or not by_key.keys() >= set(ordered):
            continue
        slow, fast = (by_key[key] for key in ordered)
        yield DifferingArms(
            slow,
            fast,
            cpu_verdict=comparison.cpu_verdict,
            on_gpu=evaluation.plan.device == "gpu",
            more=frozenset(more.get(ordered, ())),
        )


def _order(comparison: Comparison) -> tuple[ArmKey, ArmKey] | None:
    """Return the arms of a comparison, the one that has more of its metric first, or None if they do not differ."""
    baseline, candidate = comparison.pair.arms
    return {"slower": (candidate, baseline), "faster": (baseline, candidate)}.get(comparison.report_verdict)


def _build_companion(
    rule: Rule, slower: str, faster: str, arms: Sequence[DifferingArms], names: Mapping[str, str]
) -> Companion:
    """Return the fact with the figures of the arms whose times differ most, which come first."""
    worst, slows = arms[0], [each.slower for each in arms]
    across = worst.slower.target != worst.faster.target
    named = [names[each.case.label] if across else str(each.target) for each in slows]
    return Companion(
        rule.name,
        slower,
        faster,
        tuple(each.case.label for each in slows),
        rule.says(worst.slower),
        f"{slower} ({name_some(named, MOST_NAMED)})",
        f"{rule.figure(worst.slower)}{rule.unit} ({faster}: {rule.figure(worst.faster)})",
        across,
    )
