"""Facts that go with differences of times: each rule where it holds and where it does not, and none on equal arms."""

import math
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.catalog.workloads import all_workloads, source_hashes
from orchestrator.model import Case, Drift, Evaluation
from orchestrator.reports.goes_with import RULES, describe_companions, find_companions
from tests.support.builders import (
    NEW,
    OLD,
    arm,
    case,
    case_pair,
    claim,
    comparison,
    evaluation,
    manifest,
    plan,
    version_pair,
)  # fmt: skip

CASES = tuple(case("power", n=name) for name in "abcd")
MIB = 2.0**20
# Of each rule: the slower arm and the faster one, what their comparison says besides, and the sentence.
SLOW: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    "retraces": (
        {"traces_per_call": 1.0}, {"traces_per_call": 0.04}, {},
        "every call retraces in 2.0.0 (power): 1.00 traces per call (1.0.0: 0.04)",
    ),
    "no GPU": (
        {"gpu_memory": None}, {"gpu_memory": 512 * MIB}, {"device": "gpu"},
        "no GPU memory is used in 2.0.0 (power): none (1.0.0: 512 MiB)",
    ),
    "waits": (
        {"time": 30.0, "cpu": 9.0}, {"time": 10.0, "cpu": 9.0}, {"cpu_verdict": "same"},
        "calls wait in 2.0.0 (power): 9.00 ms of CPU time in 30.0 ms (1.0.0: 9.00 ms of CPU time in 10.0 ms)",
    ),
    "fewer cores": (
        {"time": 20.0, "cpu": 20.0}, {"time": 10.0, "cpu": 19.0}, {"cpu_verdict": "same"},
        "fewer cores are busy in 2.0.0 (power): 1.0 cores (1.0.0: 1.9)",
    ),
    "grows": (
        {"leak": 8192.0}, {"leak": None}, {"more": "leak"},
        "memory grows with each call in 2.0.0 (power): 8.0 KiB per call (1.0.0: none)",
    ),
    "slows down": (
        {"drift": Drift(rise=math.log(1.3))}, {}, {},
        "each call is slower than the one before in 2.0.0 (power): later calls take 30% longer (1.0.0: settles)",
    ),
}  # fmt: skip


def judged(
    slow: dict[str, Any], fast: dict[str, Any], said: dict[str, Any], verdict: str = "slower", cases: int = 1
) -> Evaluation:
    """NEW against OLD in one or more cases; NEW is the slower one, unless the verdict says otherwise."""
    own = CASES[:cases]
    old, new = (slow, fast) if verdict == "faster" else (fast, slow)
    arms = [arm(one, version, **figures) for one in own for version, figures in ((OLD, old), (NEW, new))]
    metrics = {}
    if metric := said.get("more"):
        metrics[metric] = tuple(comparison(replace(version_pair(one), metric=metric), None, verdict) for one in own)
    ratio = {"slower": 2.0, "faster": 0.5}.get(verdict, 1.0)
    comparisons = [
        comparison(version_pair(one), ratio + place / 100, verdict, cpu_verdict=said.get("cpu_verdict"))
        for place, one in enumerate(own)
    ]
    return evaluation(
        plan=plan(own, device=said.get("device", "cpu")), arms=tuple(arms), comparisons=tuple(comparisons),
        metrics=metrics,
    )  # fmt: skip


def test_each_rule_is_tested():
    assert list(SLOW) == [rule.name for rule in RULES]


@pytest.mark.parametrize("rule", SLOW)
def test_a_fact_goes_with_a_difference(rule: str):
    slow, fast, said, sentence = SLOW[rule]
    [found] = find_companions(judged(slow, fast, said))
    assert (found.rule, found.slower, found.faster, found.cases) == (rule, NEW, OLD, (CASES[0].label,))
    assert found.text == sentence


@pytest.mark.parametrize("rule", SLOW)
def test_it_is_told_of_the_slower_arm_whichever_of_the_two_that_is(rule: str):
    slow, fast, said, _ = SLOW[rule]
    [found] = find_companions(judged(slow, fast, said, "faster"))
    assert (found.rule, found.slower, found.faster) == (rule, OLD, NEW)


@pytest.mark.parametrize("verdict", ["same", "inconclusive"])
@pytest.mark.parametrize("rule", SLOW)
def test_no_rule_holds_where_times_are_not_shown_to_differ(rule: str, verdict: str):
    slow, fast, said, _ = SLOW[rule]
    assert find_companions(judged(slow, fast, said, verdict)) == ()


@pytest.mark.parametrize("rule", SLOW)
def test_no_rule_holds_where_only_the_faster_arm_is_so(rule: str):
    slow, fast, said, _ = SLOW[rule]
    if rule == "grows":
        found = judged(fast, slow, said)
        grown = tuple(replace(each, verdict="faster") for each in found.metrics["leak"])
        assert find_companions(replace(found, metrics={"leak": grown})) == ()
    else:
        assert find_companions(judged(fast, slow, said)) == ()


def test_a_difference_that_is_certain_only_in_its_row_has_no_such_line():
    found = judged(*SLOW["retraces"][:3])
    uncertain = tuple(replace(each, row_only=True) for each in found.comparisons)
    assert find_companions(replace(found, comparisons=uncertain)) == ()


def test_several_cases_are_one_sentence_with_the_figures_of_the_largest_difference():
    slow, fast, said, _ = SLOW["retraces"]
    found = judged(slow, fast, said, cases=4)
    [line] = describe_companions(find_companions(found))
    assert line == (
        "goes with: every call retraces in 2.0.0 (power d, power c and 2 more): 1.00 traces per call (1.0.0: 0.04)"
    )
    assert find_companions(found)[0].cases == tuple(each.label for each in reversed(CASES))


def test_calls_that_retrace_often_are_not_said_to_do_so_each_time():
    [found] = find_companions(judged({"traces_per_call": 0.6}, {"traces_per_call": 0.0}, {}))
    assert "most calls retrace in 2.0.0 (power): 0.60 traces per call (1.0.0: 0.00)" in found.text


def test_a_comparison_inside_a_version_names_the_cases():
    arms = (arm(CASES[0], NEW, traces_per_call=0.0), arm(CASES[1], NEW, traces_per_call=1.0))
    pair = case_pair(*CASES[:2])
    found = evaluation(plan=plan(CASES[:2]), arms=arms, comparisons=(comparison(pair, 9.0, "slower"),))
    [line] = describe_companions(find_companions(found))
    assert line == "goes with: every call retraces in power b (2.0.0): 1.00 traces per call (power a: 0.00)"


def test_targets_that_a_fact_holds_for_share_a_line():
    slow, fast, _, _ = SLOW["retraces"]
    versions = (OLD, NEW, "2.13.0")
    arms = tuple(arm(CASES[0], version, **(fast if version == OLD else slow)) for version in versions)
    comparisons = tuple(comparison(version_pair(CASES[0], OLD, new), 2.0, "slower") for new in versions[1:])
    found = find_companions(evaluation(plan=plan(CASES[:1], versions), arms=arms, comparisons=comparisons))
    assert [each.slower for each in found] == [NEW, "2.13.0"]
    assert list(describe_companions(found)) == [
        "goes with: every call retraces in 2.0.0 (power) and 2.13.0 (power): 1.00 traces per call (1.0.0: 0.04)"
    ]


def test_a_report_with_several_steps_is_named_once():
    found = find_companions(measured(UNCOMPILED, "2.0.0", "2.1.4"))
    again = tuple(replace(each, slower="2.2.3") for each in found)
    assert list(describe_companions((*found, *again))) == [f"goes with: {found[0].text}"]


@pytest.mark.parametrize("cpu", [None, "inconclusive", "slower"])
def test_nothing_waits_unless_its_cpu_time_is_known_to_be_the_same(cpu: str | None):
    slow, fast, _, _ = SLOW["waits"]
    assert find_companions(judged(slow, fast, {"cpu_verdict": cpu})) == ()


def test_figures_that_are_missing_hold_for_no_rule():
    nothing = {"traces_per_call": None, "cpu": None, "leak": None, "gpu_memory": None}
    assert find_companions(judged(nothing, nothing, {"cpu_verdict": "same", "device": "gpu"})) == ()


UNCOMPILED = case("predict", call="predict", state="uncompiled", model="none")


def measured(one: Case, old: str, new: str, verdict: str = "slower", **changes: Any) -> Evaluation:
    """A built-in case, as it is now, in two releases."""
    sources = source_hashes([all_workloads()[one.workload]])
    return evaluation(
        plan=plan([one], (old, new), **changes),
        manifest=manifest((old, new), sources=sources),
        arms=(arm(one, old), arm(one, new)),
        comparisons=(comparison(version_pair(one, old, new), 9.0 if verdict == "slower" else 0.1, verdict),),
    )


@pytest.mark.parametrize(("old", "new"), [("2.0.0", "2.1.4"), ("2.0.0", "2.2.3"), ("1.14.0", "2.13.0")])
def test_a_report_that_was_reproduced_is_named_where_its_step_lies_between_the_releases(old: str, new: str):
    [found] = find_companions(measured(UNCOMPILED, old, new))
    assert (found.rule, found.slower, found.faster, found.cases) == ("published", new, old, (UNCOMPILED.label,))
    assert found.text == (
        "uncompiled-predict-2-1, a report that was reproduced: predict of a model that was never compiled becomes much "
        "slower in TensorFlow 2.1"
    )


@pytest.mark.parametrize(
    ("old", "new", "verdict", "changes"),
    [
        # The step is before these releases, or goes the other way.
        ("2.2.3", "2.13.0", "slower", {}),
        ("2.0.0", "2.1.4", "faster", {}),
        ("2.1.4", "2.0.0", "slower", {}),
        ("2.0.0", "2.1.4", "same", {}),
        # Its claims have a report already.
        ("2.0.0", "2.1.4", "slower", {"claims": (claim(),)}),
        # A changed version may be slower for another reason.
        ("2.0.0", "onednn-off", "slower", {}),
    ],
)
def test_another_step_names_no_report(old: str, new: str, verdict: str, changes: dict[str, Any]):
    assert find_companions(measured(UNCOMPILED, old, new, verdict, **changes)) == ()


def test_a_workload_of_the_same_name_that_is_another_one_names_no_report():
    found = measured(UNCOMPILED, "2.0.0", "2.1.4")
    other = replace(found.manifest, sources={"predict": 64 * "0"})
    assert find_companions(replace(found, manifest=other)) == ()


def test_what_was_reported_to_help_is_named():
    slow, plain = case("scalar_loop", style="function"), case("scalar_loop", style="python")
    arms = (arm(plain, "2.1.4"), arm(slow, "2.1.4"))
    found = evaluation(
        plan=plan([plain, slow], ("2.1.4", "2.2.3")),
        manifest=manifest(("2.1.4",), sources=source_hashes([all_workloads()["scalar_loop"]])),
        arms=arms, comparisons=(comparison(case_pair(plain, slow, "2.1.4"), 200.0, "slower"),),
    )  # fmt: skip
    [published] = find_companions(found)
    assert published.text.startswith("scalar-loop-slow, a report that was reproduced: a loop over scalars")
    assert published.text.endswith("; scalar_loop[style=jit] is faster there")
