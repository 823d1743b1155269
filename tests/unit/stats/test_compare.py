"""From samples to contrasts: what was measured is judged, what was not says why."""

import math

import pytest

from orchestrator.model import Arm, Plan
from orchestrator.stats.compare import compare
from tests.unit.builders import NEW, OLD, arm, case, case_pair, plan, unmeasured, version_pair

CASE = case()
NOISE = (0.001, -0.001, 0.002, -0.002, 0.0005, -0.0005)


def logs(ms: float, rounds: int = 6) -> dict[int, float]:
    return {number: math.log(ms) + NOISE[number % 6] * ms / 10 for number in range(1, rounds + 1)}


def judged(asked: Plan, samples: dict, arms: list[Arm]):
    (found,) = compare(asked, samples, arms)
    return found


def test_a_contrast_is_the_candidates_time_over_the_baselines():
    samples = {(CASE.label, OLD): logs(10), (CASE.label, NEW): logs(20)}
    found = judged(plan([CASE]), samples, [arm(CASE, OLD), arm(CASE, NEW)])
    assert found.verdict == "slower"
    assert found.ratio == pytest.approx(2, rel=0.01)
    assert found.ci_low < found.ratio < found.ci_high
    assert found.seed_percent == pytest.approx(-100, abs=1)
    assert found.rounds == 6
    assert found.mde > 0
    assert found.pair == version_pair(CASE)


def test_cases_are_compared_inside_a_version():
    eager, graph = case(style="eager"), case(style="graph")
    asked = plan([eager, graph], pairs=(case_pair(eager, graph, OLD),))
    samples = {(eager.label, OLD): logs(20), (graph.label, OLD): logs(10)}
    found = judged(asked, samples, [arm(one, version) for one in (eager, graph) for version in (OLD, NEW)])
    assert (found.verdict, round(found.ratio, 2)) == ("faster", 0.5)


def test_alpha_is_split_over_the_looks_that_are_planned():
    """More looks, a wider interval, from the same data."""
    samples = {(CASE.label, OLD): logs(10), (CASE.label, NEW): logs(11)}
    arms = [arm(CASE, OLD), arm(CASE, NEW)]
    one, four = (judged(plan([CASE], looks=looks), samples, arms) for looks in ((6,), (6, 10, 15, 20)))
    assert four.ci_high - four.ci_low > one.ci_high - one.ci_low


def test_an_arm_that_was_refused_leaves_no_ratio_and_the_reason():
    arms = [arm(CASE, OLD), unmeasured(CASE, NEW, "refused", "no such op")]
    found = judged(plan([CASE]), {(CASE.label, OLD): logs(10)}, arms)
    assert (found.ratio, found.ci_low, found.ci_high, found.mde, found.seed_percent) == (None,) * 5
    assert (found.verdict, found.reason, found.rounds) == ("inconclusive", f"{NEW} refused", 0)


def test_a_single_common_round_is_no_comparison():
    samples = {(CASE.label, OLD): logs(10, 1), (CASE.label, NEW): logs(20, 6)}
    found = judged(plan([CASE]), samples, [arm(CASE, OLD), arm(CASE, NEW)])
    assert (found.ratio, found.verdict) == (None, "inconclusive")
    assert found.reason == "fewer than two rounds were measured"


def test_an_arm_that_died_midway_shows_what_it_had_and_is_never_a_verdict():
    samples = {(CASE.label, OLD): logs(10), (CASE.label, NEW): logs(20, 3)}
    arms = [arm(CASE, OLD), arm(CASE, NEW, outcome="died", reason="killed by SIGKILL")]
    found = judged(plan([CASE]), samples, arms)
    assert found.ratio == pytest.approx(2, rel=0.01)
    assert (found.verdict, found.reason) == ("inconclusive", f"{NEW} died after 3 rounds: killed by SIGKILL")


def test_there_is_one_contrast_a_pair_in_the_plans_order():
    cases = [case(style="eager"), case(style="graph")]
    asked = plan(cases, versions=("1", "2", "3"))
    arms = [arm(one, version) for one in cases for version in asked.versions]
    assert [found.pair for found in compare(asked, {}, arms)] == list(asked.pairs)
