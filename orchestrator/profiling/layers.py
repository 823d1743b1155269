"""Search for the first Keras layer that returns something else in another version. Pure."""

import math
from collections.abc import Sequence

from orchestrator.model.profile import LayerOutput
from orchestrator.results.sketches import Distance, find_distance, read_sketch, show_share


def find_first_differing(baseline: Sequence[LayerOutput], candidate: Sequence[LayerOutput]) -> str:
    """Return a sentence that names the first layer of the candidate whose output differs from that in the baseline."""
    for place, (old, new) in enumerate(zip(baseline, candidate, strict=False), 1):
        where = f"{new.name} ({new.type}), layer {place} of {len(candidate)}"
        if old.type != new.type:
            return f"different layers are called: {where}, in place of {old.name} ({old.type})"
        found = _compare(old.output, new.output)
        if found.exceeds:
            by = f"by {show_share(found.share)}" if math.isfinite(found.share) else f"({found.where})"
            return f"the first layer whose output differs is {where}: {by}, {_describe_weights(old, new)}"
    if len(baseline) != len(candidate):
        return f"different layers are called: {len(candidate)} in place of {len(baseline)}"
    return f"all {len(candidate)} layers return the same within tolerance; what differs comes after them"


def _describe_weights(old: LayerOutput, new: LayerOutput) -> str:
    if old.weights is None or new.weights is None:
        return "its weights are not known"
    found = _compare(old.weights, new.weights)
    return "from different weights" if found.exceeds else "from equal weights"


def _compare(old: str, new: str) -> Distance:
    one, other = read_sketch(old), read_sketch(new)
    if one is None or other is None:
        return Distance(math.inf, where="its sketch cannot be read")
    return find_distance(one, other)
