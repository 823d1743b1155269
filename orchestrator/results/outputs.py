"""Comparison of the results of two versions by sketches, against the differences between replicates of one version.

The results of the first and of the fifth call are compared, because an update of weights shows only in a later call.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from orchestrator.model import ArmKey, OutputCall, OutputComparison, OutputVerdict, Plan, Replicate, TargetPair
from orchestrator.results.sketches import Distance, Sketch, find_distance, read_sketch, show_share

# Each round has different seeds, so a single one does not show what depends on them.
FEWEST_ROUNDS = 2
VARYING = (
    "replicates of {target} already differ from each other{size}: give its model the same weights with "
    "compat.fix_weights, or seed what is random"
)
# The call whose verdict comes first here decides.
WORST: Sequence[OutputVerdict] = ("differs", "not comparable", "equal within tolerance", "equal")
# These are the distinct sketches of one call of an arm.
Sketches = Sequence[Sketch | None]


def find_output_pairs(plan: Plan) -> tuple[TargetPair, ...]:
    """Return the pairs of versions whose results are compared: those whose times are, and those that claims name."""
    planned = (pair for pair in plan.pairs if isinstance(pair, TargetPair) and pair.across)
    claimed = (returns.compared for claim in plan.claims for returns in claim.returns)
    return tuple(dict.fromkeys((*planned, *claimed)))


def compare_outputs(plan: Plan, replicates: Iterable[Replicate]) -> tuple[OutputComparison, ...]:
    """Compare the results of every version of a case with those of its baseline, if both were measured."""
    texts: dict[ArmKey, tuple[dict[str | None, None], dict[str | None, None]]] = {}
    rounds: dict[ArmKey, set[int]] = {}
    for replicate in sorted(replicates, key=lambda each: each.number):
        of_first, of_fifth = texts.setdefault(replicate.arm, ({}, {}))
        of_first[replicate.output] = None
        # Not every replicate makes five calls.
        if replicate.fifth_output is not None:
            of_fifth[replicate.fifth_output] = None
        rounds.setdefault(replicate.arm, set()).add(replicate.round)
    by_arm = {arm: [[*map(read_sketch, of_call)] for of_call in of_arm] for arm, of_arm in texts.items()}
    compared = []
    for pair in find_output_pairs(plan):
        if not by_arm.keys() >= set(pair.arms):
            continue
        found = _compare(pair, *(by_arm[key] for key in pair.arms))
        if found.verdict == "differs" and min(len(rounds[key]) for key in pair.arms) < FEWEST_ROUNDS:
            # The seed of a single round may have caused it.
            reason = "a single round does not tell a difference from chance"
            found = replace(found, verdict="not comparable", reason=reason)
        compared.append(found)
    return tuple(compared)


def _compare(pair: TargetPair, baseline: Sequence[Sketches], candidate: Sequence[Sketches]) -> OutputComparison:
    """Return the finding about the call in which the versions are farther apart; the first one if they are equal."""
    calls: tuple[OutputCall, OutputCall] = ("first", "fifth")
    unknown = OutputComparison(
        case=pair.case, baseline=pair.baseline, candidate=pair.candidate, verdict="not comparable"
    )
    found = [
        _compare_call(replace(unknown, call=call), old, new)
        for call, old, new in zip(calls, baseline, candidate, strict=True)
    ]
    worst = min(found, key=lambda each: (WORST.index(each.verdict), -_size(each)))
    if worst.call == "fifth" and worst.verdict in ("differs", "not comparable"):
        return replace(worst, reason=": ".join(filter(None, ("in the fifth call", worst.reason))))
    return worst


def _size(output: OutputComparison) -> float:
    if output.difference is None:
        return math.inf if output.verdict == "differs" else 0.0
    return output.difference


def _compare_call(unknown: OutputComparison, baseline: Sketches, candidate: Sketches) -> OutputComparison:
    known = [[sketch for sketch in of_arm if sketch] for of_arm in (baseline, candidate)]
    if any(not own or len(own) < len(of_arm) for own, of_arm in zip(known, (baseline, candidate), strict=True)):
        return replace(unknown, reason="its results were not kept")
    if not any(sketch.says_something for own in known for sketch in own):
        given = next((sketch.no_result for own in known for sketch in own if sketch.no_result), "")
        return replace(unknown, reason=given or "its calls return nothing that has a value")
    floors = [
        max((find_distance(own[0], each) for each in own[1:]), key=lambda each: each.excess, default=Distance())
        for own in known
    ]
    for target, floor in zip((unknown.baseline, unknown.candidate), floors, strict=True):
        if floor.exceeds:
            size = f" by {show_share(floor.share)}" if math.isfinite(floor.share) else f" ({floor.where})"
            return replace(unknown, reason=VARYING.format(target=target, size=size))
    found, floor_share = find_distance(known[0][0], known[1][0]), max(floor.share for floor in floors)
    # Replicates that differ by nearly as much as is allowed may differ twice as much from those of another version.
    differs = found.share > max(found.allowed, 2 * floor_share)
    if found.unknown and not differs:
        return replace(unknown, reason=found.unknown)
    finite = math.isfinite(found.share)
    return replace(
        unknown,
        verdict="differs" if differs else "equal" if found.identical else "equal within tolerance",
        difference=found.share if finite else None,
        ulps=found.ulps if finite else None,
        floor=floor_share,
        changed=found.changed,
        compared=found.compared,
        complete=found.complete,
        reason="; ".join(filter(None, (found.where, _describe_values(found, differs)))),
    )


def _describe_values(found: Distance, differs: bool) -> str:
    """Return how many values differ, or how they were compared if not all of them are kept."""
    if found.identical or (found.complete and not differs) or found.compared < 2:
        return ""
    if not differs:
        return f"beyond {found.compared:,} values compared by sums"
    of = f"{found.compared:,} {'' if found.complete else 'sampled '}values"
    return f"{found.changed:,} of {of} differ" if found.changed else f"none of {of} differs, others do"


def describe_output(verdict: str, difference: float | None, reason: str) -> str:
    """Return what is known of two results, such as `results differ by 2%`."""
    if verdict != "differs":
        return f"results {verdict}{f': {reason}' if reason else ''}"
    by = f" by {show_share(difference)}" if difference is not None else ""
    return f"results differ{by}{f' ({reason})' if reason else ''}"
