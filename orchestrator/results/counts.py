"""What keeps counts from being compared: two replicates of each arm that agree decide, however busy the machine is."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator.metrics.spec import MetricSpec
from orchestrator.model import ArmKey, Pair, Replicate, Target

# Counts of an arm agree if none is larger than another by more than this share.
APART = 0.002
FEWEST = 2
# A comparison without a verdict keeps its ratio.
INCONCLUSIVE: Final[Mapping[str, Any]] = {"verdict": "inconclusive", "size": None}


def find_disagreement(
    spec: MetricSpec,
    pair: Pair,
    replicates: Mapping[ArmKey, Sequence[Replicate]],
    stated: Mapping[Target, Mapping[str, Any]],
) -> str:
    """Return why the counts of two arms have no verdict, or ''; a figure that is read only once always has one."""
    if spec.read_next is None:
        return ""
    facts = [stated.get(arm.target, {}) for arm in pair.arms]
    minors = [str(each.get("python", "")).rpartition(".")[0] for each in facts]
    if spec.by_python and minors[0] != minors[1]:
        return f"Python {minors[0]} and {minors[1]} count calls in other ways"
    for arm, stated_here in zip(pair.arms, facts, strict=True):
        if spec.of_tensorflow and (backend := stated_here.get("backend")):
            return f"{arm.target} computes with {backend}, whose operations are not counted"
        counted = [
            (first, later)
            for each in replicates.get(arm, ())
            if (first := spec.figure(each)) is not None and (later := spec.read_next(each)) is not None
        ]
        if len(counted) < FEWEST:
            return f"{len(counted)} of {FEWEST} replicates were counted in {arm.target}"
        least, most = min(map(min, counted)), max(map(max, counted))
        if most > least * (1 + APART):
            how = "grow from call to call" if all(later > first for first, later in counted) else "vary"
            return f"counts {how} in {arm.target}: {spec.show(least)} to {spec.show(most)}"
        if not most:
            return f"a call in {arm.target} runs none"
    return ""
