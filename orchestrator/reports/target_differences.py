"""Describes how targets differ apart from TensorFlow, because the ratios include these differences."""

from collections.abc import Iterator

from orchestrator.model import Evaluation
from orchestrator.results.differences import find_differences
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.strict_json import pick

# A report names at most this many targets.
MOST_TARGETS = 6


def describe_differences(evaluation: Evaluation) -> Iterator[str]:
    found = find_differences(evaluation.plan, evaluation.manifest)
    named = []
    for difference in found[:MOST_TARGETS]:
        parts = ", ".join(map(str, (*difference.facts, *difference.named_packages)))
        against = "" if difference.baseline == evaluation.plan.targets[0] else f" against {difference.baseline}"
        named.append(f"in {difference.candidate}{against}: {parts}")
    if named:
        yield f"Also changed {'; '.join(named)}"
    if len(found) > MOST_TARGETS:
        yield f"and {format_count(len(found) - MOST_TARGETS, 'more target')}: --format json lists their differences"


def differences_as_objects(evaluation: Evaluation) -> list[dict[str, object]]:
    """Return all differences in the form of the JSON report."""
    fact = "name baseline candidate"
    return [
        {
            **pick(difference, "baseline candidate"),
            "facts": [pick(each, fact) for each in difference.facts],
            "packages": [pick(each, fact) for each in difference.packages],
        }
        for difference in find_differences(evaluation.plan, evaluation.manifest)
    ]
