"""The pairs of arms that a run compares, and the looks at which it judges them. Pure."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator.metrics import METRICS
from orchestrator.metrics.spec import MetricSpec
from orchestrator.model import (
    ArmKey,
    ArmResult,
    Case,
    CasePair,
    Metric,
    Pair,
    Pairing,
    Plan,
    Target,
    TargetPair,
    Workload,
)
from orchestrator.stats.limits import FEWEST_COMPARISONS, FEWEST_SHARED

# A run is judged after these numbers of rounds, and all of these looks share the error ALPHA.
LOOKS = (4, 6, 8, 10, 13, 16, 20)
# Together, the rows of a table show how much rounds scatter, so a table can be judged earlier.
TABLE_LOOKS = (FEWEST_SHARED, *LOOKS)
# A run has these further looks if the pilot shows that 20 rounds are too few, and if its budget allows more.
FURTHER_LOOKS = (25, 32, 40)
ALPHA = 0.05
# A trend is shown if there are at least this many versions.
TREND_FROM = 5


def plan_pairs(
    cases: Sequence[Case],
    targets: Sequence[Target],
    workloads: dict[str, Workload],
    also: Iterable[Metric] = (),
    margins: Mapping[Metric, float] | None = None,
    pairing: Pairing = "first",
) -> tuple[Pair, ...]:
    """Return every ratio that the run reports.

    Versions are compared with the first or as `pairing` says and, within each version, each case with its workload's
    baseline case. `also` are other metrics by which versions are compared, and `margins` the margins that the user
    named for metrics.
    """
    across = list(_pair_targets(cases, targets, "time", pairing))
    pairs: list[Pair] = list(across)
    for metric in also:
        margin = (margins or {}).get(metric, METRICS[metric].margin)
        pairs += [replace(pair, metric=metric, margin=margin) for pair in across]
    present = set(cases)
    for case in cases:
        for baseline in baselines_of(case, workloads[case.workload], present):
            pairs.extend(
                CasePair(target=target, baseline=baseline, candidate=case) for target in targets if not target.control
            )
    return tuple(pairs)


def baselines_of(case: Case, workload: Workload, present: Collection[Case]) -> Iterator[Case]:
    """Yield the cases that a case is compared with inside each target."""
    values = dict(case.params)
    for param, base in workload.comparisons.items():
        baseline = Case(case.workload, tuple({**values, param: base}.items()))
        if values[param] != base and baseline in present:
            yield baseline


def plan_program_pairs(
    cases: Sequence[Case], targets: Sequence[Target], metrics: Iterable[Metric], pairing: Pairing = "first"
) -> tuple[Pair, ...]:
    """Return the ratios that a run of a program reports: of its whole time, and of its training steps if it has any."""
    return tuple(pair for metric in metrics for pair in _pair_targets(cases, targets, metric, pairing))


def _pair_targets(
    cases: Sequence[Case], targets: Sequence[Target], metric: Metric, pairing: Pairing
) -> Iterator[TargetPair]:
    """Yield the pairs of targets of each case; a control is compared with the first target only."""
    own = [target for target in targets if not target.control]
    found = [(targets[0], target) for target in targets if target.control]
    if pairing == "first":
        found = [(targets[0], target) for target in targets[1:]]
    elif pairing == "neighbours":
        found += itertools.pairwise(own)
    else:
        found += itertools.combinations(own, 2)
    for case in cases:
        for baseline, candidate in found:
            yield TargetPair(case=case, baseline=baseline, candidate=candidate, metric=metric)


def find_baselines(plan: Plan) -> Mapping[Target, Target]:
    """Return the target that each one is compared with in the main table; the pairs of claims form no table."""
    found: dict[Target, Target] = {}
    for pair in plan.pairs if not plan.claims else ():
        if isinstance(pair, TargetPair):
            found.setdefault(pair.candidate, pair.baseline)
    return {target: found.get(target, plan.targets[0]) for target in plan.targets[1:]}


def find_further_baselines(plan: Plan) -> list[Target]:
    """Return the targets that others are compared with in addition to that of the main table."""
    main = find_baselines(plan)
    pairs = (pair for pair in plan.pairs if isinstance(pair, TargetPair) and not plan.claims)
    return list(dict.fromkeys(pair.baseline for pair in pairs if pair.baseline != main[pair.candidate]))


def find_pairing(plan: Plan) -> Pairing:
    """Return how the targets of a plan are paired."""
    if find_further_baselines(plan):
        return "all"
    return "neighbours" if set(find_baselines(plan).values()) - {plan.targets[0]} else "first"


def metric_pairs(plan: Plan, spec: MetricSpec, arms: Collection[ArmResult]) -> tuple[TargetPair, ...]:
    """Pair the versions of each case for another metric, as their times are paired.

    A figure that all cases of a version share is compared once, in a case that both versions and most other versions
    have.
    """
    across = dict.fromkeys(pair for pair in plan.pairs if isinstance(pair, TargetPair) and pair.across)
    margin = plan.margins.get(spec.name, spec.margin)
    pairs = tuple(replace(pair, metric=spec.name, margin=margin) for pair in across)
    if not spec.of_targets:
        return pairs
    known = {arm.key for arm in arms if arm.outcome == "measured" and spec.name in arm.figures}
    targets = Counter(label for label, _ in known)
    by_targets: dict[tuple[Target, Target], list[TargetPair]] = defaultdict(list)
    for pair in pairs:
        by_targets[pair.baseline, pair.candidate].append(pair)
    return tuple(
        max(of_both, key=lambda pair: (known.issuperset(pair.arms), targets[pair.case.label]))
        for of_both in by_targets.values()
    )


def in_order(targets: Iterable[Target]) -> tuple[Target, ...]:
    """Return the versions from oldest to newest, wherever the baseline is, without the control arm."""
    own = [target for target in targets if not target.control]
    try:
        return tuple(sorted(own, key=lambda target: Number(target.name)))
    except InvalidVersion:
        return tuple(own)


def is_trend(plan: Plan) -> bool:
    """Return whether a run has enough versions for a trend; versions with changes have none."""
    return not plan.definitions and len(in_order(plan.targets)) >= TREND_FROM


def neighbour_pairs(plan: Plan, arms: Iterable[ArmResult]) -> tuple[TargetPair, ...]:
    """Pair each version of a trend with the one before it, among those that have a time."""
    targets = in_order(plan.targets)
    # Two versions are compared with each other anyway.
    if plan.claims or plan.definitions or len(targets) < 3:
        return ()
    timed = {(arm.case, arm.target) for arm in arms if arm.time_ms is not None}
    return tuple(
        TargetPair(case=case, baseline=earlier, candidate=later)
        for case in plan.cases
        for earlier, later in itertools.pairwise(target for target in targets if (case, target) in timed)
    )


def reference_pairs(plan: Plan, arms: Iterable[ArmResult]) -> tuple[TargetPair, ...]:
    """Pair every version with the oldest that has a time, for the trend's cases whose baseline has none."""
    targets = in_order(plan.targets)
    if plan.claims or plan.definitions or len(targets) < 3:
        return ()
    timed = {(arm.case, arm.target) for arm in arms if arm.time_ms is not None}
    pairs = []
    for case in plan.cases:
        of_case = [target for target in targets if (case, target) in timed]
        if (case, plan.targets[0]) not in timed:
            pairs += [TargetPair(case=case, baseline=of_case[0], candidate=later) for later in of_case[1:]]
    return tuple(pairs)


def choose_looks(pairs: Iterable[Pair]) -> tuple[int, ...]:
    """Return the looks of a run that compares these pairs."""
    families = Counter(pair.metric for pair in pairs)
    return TABLE_LOOKS if max(families.values(), default=0) >= FEWEST_COMPARISONS else LOOKS


def looks_left(looks: Sequence[int], rounds: int) -> tuple[int, ...]:
    """Return the planned looks that are still to come after this many rounds."""
    return tuple(look for look in looks if look > rounds)


def find_linked(plan: Plan) -> Mapping[str, list[tuple[ArmKey, ...]]]:
    """Return, by case, the arms that a comparison or a claim needs together; a case may be planned in one arm alone."""
    together: list[tuple[ArmKey, ...]] = [pair.arms for pair in plan.pairs]
    together += [arms for claim in plan.claims for arms in claim.linked]
    planned = Counter(arm.case for arm in plan.arms())
    together += [(arm.key,) for arm in plan.arms() if planned[arm.case] == 1]
    linked: dict[str, list[tuple[ArmKey, ...]]] = defaultdict(list)
    for arms in together:
        for label in {arm.case for arm in arms}:
            linked[label].append(arms)
    return linked


def group_linked(cases: Sequence[Case], pairs: Iterable[Pair]) -> tuple[tuple[Case, ...], ...]:
    """Group the cases that are compared with each other, directly or indirectly.

    Their arms run side by side in a round, like the versions of one case.
    """
    groups = {case.label: [case] for case in cases}
    for pair in pairs:
        group, other = (groups.get(label) for label, _ in pair.arms)
        if group is not None and other is not None and group is not other:
            group.extend(other)
            groups.update((case.label, group) for case in other)
    return tuple(tuple(group) for group in {id(group): group for group in groups.values()}.values())


def has_single_call_visits(plan: Plan) -> bool:
    """Return whether a round has single-call visits, as it does if first calls are compared and a fork is cheap."""
    compared = {*plan.metrics, *(pair.metric for pair in plan.pairs)}
    return plan.isolation == "fork" and not plan.program and any(METRICS[metric].of_openings for metric in compared)
