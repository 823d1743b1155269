"""The pairs of arms that a run compares, and the looks at which it judges them. Pure."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator.metrics import METRICS
from orchestrator.metrics.spec import MetricSpec
from orchestrator.model import ArmKey, ArmResult, Case, CasePair, Metric, Pair, Plan, Target, TargetPair, Workload
from orchestrator.stats.limits import FEWEST_COMPARISONS, FEWEST_SHARED

# A run is judged after these numbers of rounds, and all of these looks share the error ALPHA.
LOOKS = (4, 6, 8, 10, 13, 16, 20)
# The rows of a table show together how much rounds scatter, so it can be judged earlier.
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
) -> tuple[Pair, ...]:
    """Return every ratio that the run reports.

    Each version is compared with the first and, within each version, each case with its workload's baseline case.
    `also` are other metrics by which versions are compared, and `margins` the margins that the user named for metrics.
    """
    across = [TargetPair(case=case, baseline=targets[0], candidate=target) for case in cases for target in targets[1:]]
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


def plan_program_pairs(cases: Sequence[Case], targets: Sequence[Target], metrics: Iterable[Metric]) -> tuple[Pair, ...]:
    """Return the ratios that a run of a program reports: of its whole time, and of its training steps if it has any."""
    return tuple(
        TargetPair(case=case, baseline=targets[0], candidate=target, metric=metric)
        for metric in metrics
        for case in cases
        for target in targets[1:]
    )


def metric_pairs(plan: Plan, spec: MetricSpec, arms: Collection[ArmResult]) -> tuple[TargetPair, ...]:
    """Pair the versions of each case for another metric, as their times are paired.

    A figure that all cases of a version share is compared once, in a case that both versions and most others have.
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


def opens_alone(plan: Plan) -> bool:
    """Return whether a round has single-call visits, as it does if first calls are compared and a fork is cheap."""
    compared = {*plan.metrics, *(pair.metric for pair in plan.pairs)}
    return plan.isolation == "fork" and not plan.program and any(METRICS[metric].of_openings for metric in compared)
