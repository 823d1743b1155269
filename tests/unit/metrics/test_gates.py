"""What ends a command with an error: which outcomes are understood, and which comparisons have them."""

from dataclasses import replace

import pytest

from orchestrator.errors import ArmsDied, OutcomeFound, UsageError
from orchestrator.metrics.gates import find_gate_error, parse_gates
from orchestrator.model import Contrast, Metric, OutputContrast
from tests.support.builders import NEW, OLD, case, contrast, target, version_pair

OF = case()
PAIR = version_pair(OF)


def judged(ratio: float | None, verdict: str, metric: Metric = "steady") -> Contrast:
    return contrast(replace(PAIR, metric=metric), ratio, verdict)


def output(verdict: str, difference: float | None = None) -> OutputContrast:
    return OutputContrast(case=OF, baseline=target(OLD), candidate=target(NEW), verdict=verdict, difference=difference)


PLANNED = (judged(1.2, "slower"), judged(0.5, "faster"), judged(1.0, "same"), judged(1.1, "inconclusive"))
OTHERS = (
    judged(1.08, "slower", "peak_rss"), judged(1.5, "slower", "peak_rss"), judged(0.8, "faster", "peak_rss"),
    judged(2.0, "slower", "first"),
)  # fmt: skip
OUTPUTS = (output("equal"), output("differs", 0.02), output("differs"), output("not comparable"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("slower", "1 slower of 4 comparisons"),
        ("faster", "1 faster of 4 comparisons"),
        ("slower,inconclusive", "1 slower, 1 inconclusive of 4 comparisons"),
        ("slower>10", "1 slower>10 of 4 comparisons"),
        ("slower>30%", None),
        ("faster>90%", "1 faster>90% of 4 comparisons"),
        ("memory:more", "2 memory:more of 3 comparisons"),
        ("peak_rss:more", "2 peak_rss:more of 3 comparisons"),
        ("memory:more>10%", "1 memory:more>10% of 3 comparisons"),
        ("memory:less>20%", "1 memory:less>20% of 3 comparisons"),
        ("memory:less>30%", None),
        ("memory:inconclusive", None),
        ("first:slower", "1 first:slower of 1 comparisons"),
        ("time:slower", "1 time:slower of 4 comparisons"),
        ("output:differs", "2 output:differs of 4 comparisons"),
        # Another form of result differs by more than any percentage.
        ("output:differs>5%", "1 output:differs>5% of 4 comparisons"),
        ("output:inconclusive", "1 output:inconclusive of 4 comparisons"),
        ("died", None),
    ],
)
def test_an_outcome_is_found(text: str, found: str | None):
    error = find_gate_error(parse_gates(text), PLANNED, OTHERS, OUTPUTS)
    assert (str(error) if error else None) == (found and f"{found} (--fail-on {text})")
    assert error is None or isinstance(error, OutcomeFound)


def test_an_arm_that_died_goes_first():
    error = find_gate_error(parse_gates("slower,died"), PLANNED, died=2)
    assert isinstance(error, ArmsDied)
    assert str(error) == "2 arms died (--fail-on slower,died)"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("slow", "unknown outcome 'slow'; it is slower, faster, inconclusive, died"),
        ("memory:slower", "unknown outcome of memory 'slower'; it is more, less, inconclusive"),
        ("first:more", "it is slower, faster, inconclusive"),
        ("output:more", "it is differs, inconclusive"),
        (
            "colour:more",
            "there is no metric 'colour'; they are time, first, memory, leak, build, import, cpu, gpu_memory, "
            "traces, size, p50, p95, p99, output",
        ),
        ("died>5%", "died has no percentage"),
        ("slower>", "it is [METRIC:]VERDICT[>PERCENT]"),
        ("slower>-5", "it is [METRIC:]VERDICT[>PERCENT]"),
    ],
)
def test_what_is_no_outcome_is_refused(text: str, told: str):
    with pytest.raises(UsageError, match=r"^--fail-on") as refused:
        parse_gates(text)
    assert told in str(refused.value)
