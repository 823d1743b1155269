"""The property of a case that a nightly run or a search follows: a metric, or whether its results are equal."""

from typing import Annotated, Final

from orchestrator.metrics import METRICS, describe_verdict
from orchestrator.model import Judge, OneOf

TIME: Final = "time"
RESULTS: Final = "output"
# Sizes of environments need no rounds.
SIZE: Final = "size"
FOLLOWED = (*METRICS, RESULTS)
# A nightly run or a search follows a metric of a case, or what its calls return.
Followed = Annotated[str, OneOf(FOLLOWED)]


def from_name(name: str) -> Followed:
    """Return the followed property with this name; raise ValueError if it is unknown."""
    if name not in FOLLOWED:
        raise ValueError(f"it follows {name!r}, which this version of tfcompare does not know")
    return name


def describe_followed(metric: Followed, judge: Judge = "wall") -> str:
    """Describe what is followed: `time per step`, which may be `CPU time per step`, `peak memory` or `results`."""
    if metric == TIME and judge == "cpu":
        metric = "cpu"
    return "results" if metric == RESULTS else METRICS[metric].about


def describe_change(metric: Followed, verdict: str) -> str:
    """Return a verdict in the words of what is followed: `slower`, `more`, or `differs`."""
    if metric != RESULTS:
        return describe_verdict(metric, verdict)
    return {"slower": "differs", "faster": "differs", "same": "equal", "inconclusive": "not comparable"}[verdict]


def phrase_comparison(metric: Followed, verdict: str) -> str:
    """Complete a sentence about a version that has changed: `is slower than`, `needs more memory than`."""
    if metric == RESULTS:
        return "returns different results from"
    spec = METRICS[metric]
    return f"{spec.more if verdict == 'slower' else spec.less} than"
