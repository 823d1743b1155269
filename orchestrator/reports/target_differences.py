"""What targets differ in besides TensorFlow, in one line each: the ratios include it."""

from collections.abc import Iterator

from orchestrator.model import Evaluation
from orchestrator.results.differences import DifferingFact, TargetDifference, find_differences
from orchestrator.terminal.counts import format_count

# Of many targets, a report names the first ones. Packages are named where these are all.
MOST_TARGETS, MOST_PACKAGES = 6, 4


def describe_differences(evaluation: Evaluation) -> Iterator[str]:
    found = find_differences(evaluation.plan, evaluation.manifest)
    for difference in found[:MOST_TARGETS]:
        parts = ", ".join([*map(str, difference.facts), *_packages(difference)])
        yield f"{difference.candidate} also differs from {difference.baseline} in {parts}"
    if len(found) > MOST_TARGETS:
        yield f"and {format_count(len(found) - MOST_TARGETS, 'more target')}: --format json lists what they differ in"


def _packages(difference: TargetDifference) -> list[str]:
    packages = difference.packages
    if len(packages) <= MOST_PACKAGES:
        return list(map(str, packages))
    return [format_count(len(packages), "package")]


def as_objects(evaluation: Evaluation) -> list[dict[str, object]]:
    """Return all differences as JSON has them."""
    return [
        {
            "baseline": str(difference.baseline),
            "candidate": str(difference.candidate),
            "facts": list(map(_fact, difference.facts)),
            "packages": list(map(_fact, difference.packages)),
        }
        for difference in find_differences(evaluation.plan, evaluation.manifest)
    ]


def _fact(fact: DifferingFact) -> dict[str, str]:
    return {"name": fact.name, "baseline": fact.baseline, "candidate": fact.candidate}
