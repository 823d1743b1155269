"""Turns a request into a plan: selectors into cases, cases into pairs, rounds into orders. Pure."""

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator.catalog.selectors import Selector, expand, parse_selector
from orchestrator.errors import NothingSelected
from orchestrator.model import CONTROL, Arm, Case, Pair, Params, Plan, Workload

# Rounds after which a run is judged, and the error that these looks share.
LOOKS = (6, 10, 15, 20)
# Most claims are of effects that three rounds show beyond doubt; the time that those leave of a suite's budget goes to
# claims that two things are the same, which take many.
LOOKS_AT_CLAIMS = (3, *LOOKS)
ALPHA = 0.05
# So many versions are shown as a trend.
TREND_FROM = 5

Item = TypeVar("Item")


def select_cases(asked: Sequence[str], suite: Sequence[str], workloads: dict[str, Workload]) -> tuple[Case, ...]:
    """Return the requested cases, or those of the suite without a request, each once, in the order named.

    A parameter that `asked` leaves free takes every value that it has in the suite's cases of that workload, or all its
    values if the suite lacks the workload.
    """
    defaults = [parse_selector(text, workloads) for text in suite]
    if not asked:
        return _unique(case for selector in defaults for case in expand(selector, workloads[selector.workload]))
    cases: list[Case] = []
    for text in asked:
        selector = parse_selector(text, workloads)
        workload = workloads[selector.workload]
        usual = [case for other in defaults if other.workload == workload.name for case in expand(other, workload)]
        bounds = {
            param: tuple(value for value in values if not usual or any((param, value) in case.params for case in usual))
            for param, values in workload.params.items()
        }
        chosen = expand(Selector(workload.name, {**bounds, **selector.values}), workload)
        if not chosen:
            raise NothingSelected(f"{text}: {workload.name} leaves that combination of parameters out; see its file")
        cases.extend(chosen)
    return _unique(cases)


def _unique(cases: Iterable[Case]) -> tuple[Case, ...]:
    return tuple(dict.fromkeys(cases))


def plan_pairs(cases: Sequence[Case], versions: Sequence[str], workloads: dict[str, Workload]) -> tuple[Pair, ...]:
    """Return every ratio that the run reports.

    Each version is compared with the first and, within each version, each case with its workload's baseline case.
    """
    pairs = [_version_pair(case, versions[0], version) for case in cases for version in versions[1:]]
    present = set(cases)
    for case in cases:
        for param, base in workloads[case.workload].contrasts.items():
            values = dict(case.params)
            baseline = Case(case.workload, tuple({**values, param: base}.items()))
            if values[param] == base or baseline not in present:
                continue
            shared: Params = tuple((name, value) for name, value in case.params if name != param)
            pairs.extend(
                Pair(
                    kind="case", version=version, baseline=baseline.label, candidate=case.label,
                    case=None, workload=case.workload, params=shared,
                )
                for version in versions
                if not version.endswith(CONTROL)
            )  # fmt: skip
    return tuple(pairs)


def in_order(versions: Iterable[str]) -> tuple[str, ...]:
    """Return the versions from the oldest to the newest, wherever the baseline is, without its second arm."""
    own = [version for version in versions if not version.endswith(CONTROL)]
    try:
        return tuple(sorted(own, key=Number))
    except InvalidVersion:
        return tuple(own)


def neighbour_pairs(plan: Plan, arms: Iterable[Arm]) -> tuple[Pair, ...]:
    """Pair each version of a trend with the one before it, among those that have a time."""
    versions = in_order(plan.versions)
    # Of two, it would be the contrast that there is.
    if plan.claims or len(versions) < 3:
        return ()
    timed = {(arm.case, arm.version) for arm in arms if arm.median_ms is not None}
    return tuple(
        _version_pair(case, earlier, later)
        for case in plan.cases
        for earlier, later in itertools.pairwise(version for version in versions if (case, version) in timed)
    )


def reference_pairs(plan: Plan, arms: Iterable[Arm]) -> tuple[Pair, ...]:
    """Pair every version with the oldest that has a time, for the trend's cases whose baseline has none."""
    versions = in_order(plan.versions)
    if plan.claims or len(versions) < 3:
        return ()
    timed = {(arm.case, arm.version) for arm in arms if arm.median_ms is not None}
    pairs = []
    for case in plan.cases:
        first, *others = [version for version in versions if (case, version) in timed] or [""]
        if (case, plan.versions[0]) not in timed:
            pairs += [_version_pair(case, first, later) for later in others]
    return tuple(pairs)


def _version_pair(case: Case, baseline: str, candidate: str) -> Pair:
    return Pair(
        kind="version", version=None, baseline=baseline, candidate=candidate,
        case=case, workload=case.workload, params=case.params,
    )  # fmt: skip


def linked(cases: Sequence[Case], pairs: Iterable[Pair]) -> tuple[tuple[Case, ...], ...]:
    """Group the cases that are compared with each other, directly or indirectly.

    Their arms run side by side in a round, like the versions of one case.
    """
    groups = {case.label: [case] for case in cases}
    for pair in pairs:
        one, other = (groups.get(label) for label, _ in pair.arms)
        if one is not None and other is not None and one is not other:
            one.extend(other)
            groups.update((case.label, one) for case in other)
    return tuple(tuple(group) for group in {id(group): group for group in groups.values()}.values())


def alternating(order: Sequence[Item], bursts: Callable[[Item], int]) -> list[Item]:
    """Spread each item's bursts evenly over the visit; items with equally many bursts go back and forth."""
    places = [
        ((number + 0.5) / bursts(item), place if number % 2 == 0 else -place, item)
        for place, item in enumerate(order)
        for number in range(bursts(item))
    ]
    return [item for _, _, item in sorted(places, key=lambda entry: entry[:2])]


def round_order(items: Sequence[Item], seed: int, case: str, round_number: int) -> list[Item]:
    """Return the order of a round: random, or in every second round the mirror of the round before.

    This way, each item is early as often as it is late.
    """
    draw = random.Random(f"{seed}/{case}/{(round_number + 1) // 2}")
    order = list(items)
    draw.shuffle(order)
    return order if round_number % 2 else order[::-1]


def looks_left(looks: Sequence[int], taken: Iterable[int], rounds: int) -> tuple[int, ...]:
    """Return the planned looks that more rounds may still take.

    Each look spends its share of the error. A look that a budget or an interrupt caused where none was planned takes
    the place of the next planned one.
    """
    unspent = len(looks) - len(set(taken))
    ahead = [look for look in looks if look > rounds]
    return tuple(ahead[-unspent:]) if unspent > 0 else ()
