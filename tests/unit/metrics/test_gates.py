"""What ends a command with an error: which outcomes are understood, and which comparisons have them."""

from dataclasses import replace
from typing import Literal

import pytest

from orchestrator.errors import ArmsDied, NothingSelected, OutcomeFound, UsageError
from orchestrator.metrics.gates import (
    GatedComparisons,
    check_compared,
    choose_for_gates,
    describe_uncounted,
    find_gate_error,
    parse_gates,
)
from orchestrator.model import Comparison, Metric, OutputComparison
from tests.support.builders import NEW, OLD, case, comparison, target, version_pair

OF = case()
PAIR = version_pair(OF)


def judged(ratio: float | None, verdict: str, metric: Metric = "time") -> Comparison:
    return comparison(replace(PAIR, metric=metric), ratio, verdict)


def output(verdict: str, difference: float | None = None) -> OutputComparison:
    return OutputComparison(
        case=OF, baseline=target(OLD), candidate=target(NEW), verdict=verdict, difference=difference
    )


def differing(difference: float, verdict: str, metric: Metric) -> Comparison:
    return comparison(
        replace(PAIR, metric=metric),
        None,
        verdict,
        difference=difference,
        difference_low=difference - 9,
        difference_high=difference + 9,
    )


PLANNED = (judged(1.2, "slower"), judged(0.5, "faster"), judged(1.0, "same"), judged(1.1, "inconclusive"))
OTHERS = (
    judged(1.08, "slower", "memory"), judged(1.5, "slower", "memory"), judged(0.8, "faster", "memory"),
    judged(2.0, "slower", "first"), differing(6 * 1024.0, "slower", "leak"), differing(900.0, "same", "leak"),
    differing(-2048.0, "faster", "leak"), differing(3.0, "slower", "traces"),
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
        ("memory:more>10%", "1 memory:more>10% of 3 comparisons"),
        ("memory:less>20%", "1 memory:less>20% of 3 comparisons"),
        ("memory:less>30%", None),
        ("memory:inconclusive", None),
        ("first:slower", "1 first:slower of 1 comparison"),
        ("time:slower", "1 time:slower of 4 comparisons"),
        ("leak:more", "1 leak:more of 3 comparisons"),
        ("leak:more>4KiB", "1 leak:more>4KiB of 3 comparisons"),
        ("leak:more>5000", "1 leak:more>5000 of 3 comparisons"),
        ("leak:more>8KiB", None),
        ("leak:less>1KiB", "1 leak:less>1KiB of 3 comparisons"),
        ("leak:less>4KiB", None),
        ("traces:more>2", "1 traces:more>2 of 1 comparison"),
        ("traces:more>3", None),
        ("output:differs", "2 output:differs of 4 comparisons"),
        # Another form of result differs by more than any percentage.
        ("output:differs>5%", "1 output:differs>5% of 4 comparisons"),
        ("output:inconclusive", "1 output:inconclusive of 4 comparisons"),
        ("died", None),
    ],
)
def test_an_outcome_is_found(text: str, found: str | None):
    error = find_gate_error(parse_gates(text), GatedComparisons(planned=PLANNED, others=OTHERS, outputs=OUTPUTS))
    assert (str(error) if error else None) == (found and f"{found} (--fail-on {text})")
    assert error is None or isinstance(error, OutcomeFound)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("inconclusive", "2 inconclusive of 5 comparisons"),
        ("time:inconclusive", "3 time:inconclusive of 6 comparisons"),
        ("memory:inconclusive", "2 memory:inconclusive of 5 comparisons"),
        ("output:inconclusive", "4 output:inconclusive of 7 comparisons"),
        # Of which nothing at all was made.
        ("leak:inconclusive", "1 leak:inconclusive of 4 comparisons"),
    ],
)
def test_a_comparison_that_could_not_be_made_is_inconclusive(text: str, found: str):
    missing = {None: 1, "time": 2, "memory": 2, "output": 3, "leak": 1}
    gated = GatedComparisons(planned=PLANNED, others=OTHERS, outputs=OUTPUTS, missing=missing)
    error = find_gate_error(parse_gates(text), gated)
    assert isinstance(error, OutcomeFound)
    assert str(error) == f"{found} (--fail-on {text})"


def test_a_gate_without_a_comparison_has_nothing_to_judge():
    unmade = (replace(judged(None, "inconclusive"), reason="it needs TensorFlow 2"),)
    nothing = (replace(output("not comparable"), reason="its calls return nothing that has a value"),)
    gated = GatedComparisons(planned=unmade, outputs=nothing, missing={"leak": 2, "memory": 1}, why_missing="")
    for text, why in {
        "slower": "none of 1 comparison could be made: it needs TensorFlow 2",
        "output:differs": "none of 1 comparison could be made: its calls return nothing that has a value",
        "leak:more": "none of 2 comparisons could be made: cases whose calls take 0.1 s or more make too few calls",
        "memory:more": "none of 1 comparison could be made",
        "step:slower": "no comparison by step was planned",
        "step:inconclusive": "no comparison by step was planned",
    }.items():
        error = find_gate_error(parse_gates(text), gated)
        assert isinstance(error, NothingSelected)
        assert str(error) == f"--fail-on {text} had nothing to judge: {why}"
    # Three rounds have a ratio, and say nothing.
    few = (replace(judged(2.0, "inconclusive"), ci_low=None, ci_high=None, reason="3 rounds are too few to tell"),)
    assert "3 rounds are too few" in str(find_gate_error(parse_gates("slower"), GatedComparisons(planned=few)))
    assert find_gate_error(parse_gates("slower"), GatedComparisons(planned=(judged(1.0, "inconclusive"),))) is None


def test_an_incomplete_answer_goes_before_an_outcome_and_tells_both():
    gated = GatedComparisons(planned=PLANNED, missing={"leak": 2}, died=2)
    error = find_gate_error(parse_gates("slower,leak:more"), gated)
    assert isinstance(error, NothingSelected)
    first, second = str(error).splitlines()
    assert first.startswith("--fail-on leak:more had nothing to judge")
    assert second == "1 slower of 4 comparisons (--fail-on slower,leak:more)"
    assert isinstance(find_gate_error(parse_gates("slower,leak:more,died"), gated), ArmsDied)


def test_an_exploratory_verdict_counts_only_where_it_is_asked_for():
    planned = (judged(1.0, "same"), replace(judged(1.5, "slower"), exploratory=True))
    others = (replace(judged(1.5, "slower", "memory"), exploratory=True),)
    gated = GatedComparisons(planned=planned, others=others)
    for text in ("slower", "memory:more"):
        assert find_gate_error(parse_gates(text), gated) is None
        error = find_gate_error(parse_gates(f"{text},exploratory"), gated)
        assert isinstance(error, OutcomeFound)
        assert str(error).endswith(f"(--fail-on {text},exploratory)")
    # At the last look that had an error to spend, it was open.
    assert "1 inconclusive of 2" in str(find_gate_error(parse_gates("inconclusive"), gated))
    assert find_gate_error(parse_gates("exploratory,inconclusive"), gated) is None


def test_an_arm_that_died_goes_first():
    error = find_gate_error(parse_gates("slower,died"), GatedComparisons(planned=PLANNED, died=2))
    assert isinstance(error, ArmsDied)
    assert str(error) == "2 arms died (--fail-on slower,died)"


USUAL = ("first", "memory", "output")


def choose(
    text: str,
    named: tuple[str, ...] | None = None,
    *,
    program: bool = False,
    gpu: bool = False,
    judge: Literal["wall", "cpu"] = "wall",
) -> tuple[str, ...]:
    usual = ("memory",) if program else USUAL
    return choose_for_gates(parse_gates(text), usual, named, program=program, gpu=gpu, judge=judge)


def test_what_a_gate_needs_is_compared_as_well_if_it_costs_nothing():
    assert choose("slower,died,time:faster,memory:more,first:slower,output:differs") == ()
    assert choose("build:slower,build:inconclusive,traces:more") == ("build", "traces")
    assert choose("gpu_memory:more", gpu=True) == ("gpu_memory",)
    assert choose("cpu:slower,step:slower", program=True) == ("cpu",)
    assert choose("leak:more", named=("leak",)) == ()
    assert choose("slower,time:slower,memory:more", judge="cpu") == ()


@pytest.mark.parametrize(
    ("text", "how", "told"),
    [
        ("memory:more", {"named": ("traces",)}, "the run does not compare memory; name it: --metric traces,memory"),
        ("output:differs", {"named": ("time",)}, "the run does not compare output; name it: --metric output"),
        ("leak:more", {}, "name it, which takes more calls: --metric first,memory,output,leak"),
        ("slower,p99:slower", {}, "name it, which takes more calls: --metric first,memory,output,p99"),
        ("first:slower", {"program": True}, "a program after -- has no first; leave it out"),
        ("output:differs", {"program": True, "named": ("output",)}, "a program after -- has no output"),
        ("leak:more", {"program": True}, "a program after -- has no leak"),
        ("gpu_memory:more", {}, "a run on a CPU has no gpu_memory"),
        ("energy:more", {}, "a run on a CPU has no energy"),
        ("gpu_memory:more", {"named": ("gpu_memory",)}, "a run on a CPU has no gpu_memory"),
        ("step:slower", {}, "only a program after -- has steps of fit"),
        ("step:slower", {"program": True, "judge": "cpu"}, "with --judge cpu a run does not compare step, and a gate"),
        ("cpu:slower", {"judge": "cpu"}, "with --judge cpu a run does not compare cpu, and a gate without a metric is"),
    ],
)
def test_a_gate_that_the_run_cannot_answer_is_refused(text: str, how: dict[str, object], told: str):
    with pytest.raises(UsageError, match=r"^--fail-on ") as refused:
        choose(text, **how)
    assert told in str(refused.value)


def test_a_gate_about_what_a_finished_run_does_not_compare_is_refused():
    check_compared(parse_gates("slower,time:slower,step:slower,died,memory:more"), ("memory",), "it lacks", "")
    with pytest.raises(UsageError) as refused:
        check_compared(parse_gates("leak:more"), ("time", "memory"), "runs/1 does not compare", "take {metrics}")
    assert str(refused.value) == "--fail-on leak:more: runs/1 does not compare leak; take memory,leak"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("slow", "unknown outcome 'slow'; choose from slower, faster, inconclusive, died, exploratory"),
        ("memory:slower", "unknown outcome of memory 'slower'; choose from more, less, inconclusive"),
        ("first:more", "choose from slower, faster, inconclusive"),
        ("output:more", "choose from differs, inconclusive"),
        (
            "colour:more",
            "unknown metric 'colour'; choose from time, first, memory, leak, build, import, cpu, gpu_memory, "
            "energy, traces, traces_per_call, calls, ops, size, p50, p95, p99, output",
        ),
        ("leak:more>5%", "after > write an amount such as 4KiB"),
        ("traces:more>4KiB", "after > write an amount such as 2"),
        ("memory:more>4KiB", "after > write a percentage such as 10%"),
        ("slower>x", "after > write a percentage such as 10%"),
        ("died>5%", "died has no amount"),
        ("slower>", "expected [METRIC:]VERDICT[>AMOUNT]"),
        ("slower>-5", "expected [METRIC:]VERDICT[>AMOUNT]"),
        ("exploratory", "combine exploratory with a verdict, e.g. slower,exploratory"),
        ("memory:exploratory", "unknown outcome of memory 'exploratory'"),
        ("died,exploratory", "combine exploratory with a verdict"),
    ],
)
def test_what_is_no_outcome_is_refused(text: str, told: str):
    with pytest.raises(UsageError, match=r"^--fail-on") as refused:
        parse_gates(text)
    assert told in str(refused.value)


def in_row_only(verdict: str, metric: Metric = "time", **more: object) -> Comparison:
    return replace(judged(1.5, verdict, metric), row_only=True, **more)


@pytest.mark.parametrize(
    ("text", "error", "uncounted"),
    [
        ("slower", None, "1 slower"),
        ("slower>40%", None, "1 slower>40%"),
        ("slower>60%", None, ""),
        ("faster", None, "1 faster"),
        ("slower,memory:more", None, "1 slower, 2 memory:more"),
        ("inconclusive", "2 inconclusive of 4 comparisons", ""),
        ("slower,inconclusive", "2 inconclusive of 4 comparisons", "1 slower"),
        ("died,output:differs", None, ""),
    ],
)
def test_a_row_that_is_not_certain_in_the_report_does_not_count_and_is_named(text: str, error: str, uncounted: str):
    gated = GatedComparisons(
        planned=(judged(1.0, "same"), in_row_only("slower"), in_row_only("faster"), in_row_only("same", size="slight")),
        others=(in_row_only("slower", "memory"), in_row_only("slower", "memory")),
        outputs=(output("equal"),),
        judged_together=56,
    )
    found = find_gate_error(parse_gates(text), gated)
    assert (str(found) if found else None) == (error and f"{error} (--fail-on {text})")
    note = describe_uncounted(parse_gates(text), gated)
    if uncounted:
        assert note.startswith(
            f"--fail-on does not count {uncounted}: each is certain in its row, but not among all 56 "
        )
    else:
        assert note == ""


def test_an_exploratory_row_is_left_out_for_that_reason_alone():
    gated = GatedComparisons(planned=(in_row_only("slower", exploratory=True),), judged_together=56)
    assert describe_uncounted(parse_gates("slower"), gated) == ""
    assert find_gate_error(parse_gates("slower,exploratory"), gated) is None
    assert "does not count 1 slower:" in describe_uncounted(parse_gates("slower,exploratory"), gated)
