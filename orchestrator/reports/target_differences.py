"""Lines on what targets differ in besides TensorFlow, because the ratios include these differences."""

from collections.abc import Iterator

from orchestrator.model import Evaluation
from orchestrator.results.differences import find_differences
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.strict_json import pick

# A report names at most this many targets, and the packages of a target only if there are at most this many.
MOST_TARGETS, MOST_PACKAGES = 6, 4


def describe_differences(evaluation: Evaluation) -> Iterator[str]:
    found = find_differences(evaluation.plan, evaluation.manifest)
    for difference in found[:MOST_TARGETS]:
        count = len(difference.packages)
        packages = difference.packages if count <= MOST_PACKAGES else [format_count(count, "package")]
        parts = ", ".join(map(str, (*difference.facts, *packages)))
        against = "" if difference.baseline == evaluation.plan.targets[0] else f" against {difference.baseline}"
        yield f"Also changed in {difference.candidate}{against}: {parts}"
    if len(found) > MOST_TARGETS:
        yield f"and {format_count(len(found) - MOST_TARGETS, 'more target')}: --format json lists what they differ in"


def differences_as_objects(evaluation: Evaluation) -> list[dict[str, object]]:
    """Return all differences as JSON has them."""
    fact = "name baseline candidate"
    return [
        {
            **pick(difference, "baseline candidate"),
            "facts": [pick(each, fact) for each in difference.facts],
            "packages": [pick(each, fact) for each in difference.packages],
        }
        for difference in find_differences(evaluation.plan, evaluation.manifest)
    ]
