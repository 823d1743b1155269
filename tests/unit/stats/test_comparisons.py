"""From samples to comparisons: what was measured is judged, what was not says why."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from orchestrator.metrics.gates import parse_gates
from orchestrator.model import ArmKey, ArmResult, Drift, Plan
from orchestrator.plan.pairs import LOOKS
from orchestrator.stats.comparisons import (
    DIFFERENCE_ERROR,
    FALSE_DISCOVERIES,
    TOO_IDLE,
    Rises,
    compare_figures,
    judge_pairs,
    of_many,
)
from orchestrator.stats.looks import Stretch, make_schedule
from orchestrator.stats.paired import Estimate, hodges_lehmann, sign_flip_p
from tests.support.builders import NEW, OLD, arm, case, case_pair, plan, target, unmeasured, version_pair

CASE = case()
NOISE = (0.001, -0.001, 0.002, -0.002, 0.0005, -0.0005)


def logs(ms: float, rounds: int = 6) -> dict[int, float]:
    return {number: math.log(ms) + NOISE[number % 6] * ms / 10 for number in range(1, rounds + 1)}


def judged(asked: Plan, samples: dict, arms: list[ArmResult]):
    (found,) = judge_pairs(asked, samples, arms)
    return found


@pytest.mark.parametrize(
    ("candidate", "verdict", "size"),
    [(100.0, "same", None), (103.0, "same", "slight"), (106.0, "slower", "beyond"), (94.0, "faster", "beyond")],
)
def test_figures_without_noise_are_judged_at_once(candidate: float, verdict: str, size: str | None):
    found = compare_figures(version_pair(CASE), 100.0, candidate, 0.05)
    assert (found.verdict, found.size, found.ratio) == (verdict, size, candidate / 100)
    assert (found.ci_low, found.ci_high) == (found.ratio, found.ratio)
    assert (found.pair, found.reason) == (version_pair(CASE), "")


def test_a_comparison_is_the_candidates_time_over_the_baselines():
    samples = {(CASE.label, OLD, "time"): logs(10), (CASE.label, NEW, "time"): logs(20)}
    found = judged(plan([CASE]), samples, [arm(CASE, OLD), arm(CASE, NEW)])
    assert found.verdict == "slower"
    assert found.ratio == pytest.approx(2, rel=0.01)
    assert found.ci_low < found.ratio < found.ci_high
    assert found.seed_percent == pytest.approx(-100, abs=1)
    assert found.rounds == 6
    assert found.mde > 0
    assert found.pair == version_pair(CASE)


def test_a_call_at_a_first_look_is_shown_without_its_luck_and_gates_take_what_is_shown():
    rounds = (0.12, 0.09, 0.13, 0.09)
    samples = {
        (CASE.label, OLD, "time"): dict.fromkeys(range(1, 5), 0.0),
        (CASE.label, NEW, "time"): dict(enumerate(rounds, 1)),
    }
    found = judged(plan([CASE], looks=LOOKS), samples, [arm(CASE, OLD), arm(CASE, NEW)])
    assert (found.verdict, found.size, found.rounds) == ("slower", "clear", 4)
    assert math.exp(Estimate(rounds).theta) == pytest.approx(1.113, abs=0.001)
    assert found.ratio == pytest.approx(1.093, abs=0.002)
    assert 1 < found.ci_low < 1.006
    assert found.seed_percent == pytest.approx(-100 * (found.ratio - 1))
    (smaller, larger) = parse_gates("slower>8%,slower>10%")
    assert smaller.matches(found)
    assert not larger.matches(found)


def judge_rows(rows, looks):
    cases = [case(row=str(number)) for number in range(len(rows))]
    samples = {}
    for of_row, rounds in zip(cases, rows, strict=True):
        samples[of_row.label, OLD, "time"] = dict.fromkeys(range(1, len(rounds) + 1), 0.0)
        samples[of_row.label, NEW, "time"] = dict(enumerate(rounds, 1))
    arms = [arm(of_row, version) for of_row in cases for version in (OLD, NEW)]
    return judge_pairs(plan(cases, looks=looks), samples, arms)


CALM, WILD = (0.12, 0.09, 0.13, 0.09), (0.3, -0.2, 0.26, -0.1)


def test_a_row_that_is_calm_by_luck_needs_more_than_its_rounds_say():
    first, *others = judge_rows([CALM, *[WILD] * 7], (4,))
    (alone,) = judge_rows([CALM], (4,))
    assert alone.verdict == "slower"
    assert {each.verdict for each in (first, *others)} == {"inconclusive"}
    # Its rounds scatter as they do, and the interval is of all of them.
    assert first.spread == alone.spread
    assert first.mde > alone.mde


@pytest.mark.parametrize(("rows", "verdict"), [(7, "inconclusive"), (8, "slower")])
def test_three_rounds_are_judged_where_eight_rows_know_how_much_rounds_scatter(rows: int, verdict: str):
    found = judge_rows([(0.52, 0.49, 0.5)] * rows, (3, 4, 6))
    assert {each.verdict for each in found} == {verdict}
    assert {each.missing for each in found} == {0 if verdict == "slower" else 1}


def test_rows_of_other_metrics_are_no_help():
    pairs = [version_pair(case(row=str(number))) for number in range(8)]
    pairs[-1] = replace(pairs[-1], metric="memory")
    samples = {
        (*arm_key, pair.metric): dict(enumerate(rounds, 1))
        for pair in pairs
        for arm_key, rounds in zip(pair.arms, ((0.0, 0.0, 0.0), (0.52, 0.49, 0.5)), strict=True)
    }
    cases = [pair.case for pair in pairs]
    asked = plan(cases, pairs=tuple(pairs), looks=(3, 4, 6))
    found = judge_pairs(asked, samples, [arm(each, version) for each in cases for version in (OLD, NEW)])
    assert {each.verdict for each in found} == {"inconclusive"}


def test_cases_are_compared_inside_a_version():
    eager, graph = case(style="eager"), case(style="graph")
    asked = plan([eager, graph], pairs=(case_pair(eager, graph, OLD),))
    samples = {(eager.label, OLD, "time"): logs(20), (graph.label, OLD, "time"): logs(10)}
    found = judged(asked, samples, [arm(one, version) for one in (eager, graph) for version in (OLD, NEW)])
    assert (found.verdict, round(found.ratio, 2)) == ("faster", 0.5)


def test_alpha_is_split_over_the_looks_that_are_planned():
    """More looks, a wider interval, from the same data."""
    samples = {(CASE.label, OLD, "time"): logs(10), (CASE.label, NEW, "time"): logs(11)}
    arms = [arm(CASE, OLD), arm(CASE, NEW)]
    one, four = (judged(plan([CASE], looks=looks), samples, arms) for looks in ((6,), (6, 10, 15, 20)))
    assert four.ci_high - four.ci_low > one.ci_high - one.ci_low


def test_an_arm_that_was_refused_leaves_no_ratio_and_the_reason():
    arms = [arm(CASE, OLD), unmeasured(CASE, NEW, "refused", "no such op")]
    found = judged(plan([CASE]), {(CASE.label, OLD, "time"): logs(10)}, arms)
    assert (found.ratio, found.ci_low, found.ci_high, found.mde, found.seed_percent) == (None,) * 5
    assert (found.verdict, found.reason, found.rounds) == ("inconclusive", "no such op", 0)


def test_a_single_common_round_has_a_ratio_and_no_verdict():
    samples = {(CASE.label, OLD, "time"): logs(10, 1), (CASE.label, NEW, "time"): logs(20, 6)}
    found = judged(plan([CASE]), samples, [arm(CASE, OLD), arm(CASE, NEW)])
    assert (found.ratio, found.rounds, found.missing) == (pytest.approx(2, rel=0.02), 1, 3)
    assert (found.verdict, found.ci_low, found.pilot_ratio) == ("inconclusive", None, None)
    assert found.reason == f"{found.ratio:.3g}x so far (1 round; 3 more needed for a verdict)"


@pytest.mark.parametrize("ms", [20.0, 10.0])
def test_before_the_first_round_there_is_the_ratio_of_the_pilot(ms: float):
    arms = [arm(CASE, OLD, time=10.0, rounds=0), arm(CASE, NEW, time=ms, rounds=0)]
    found = judged(plan([CASE]), {}, arms)
    assert (found.ratio, found.rounds, found.missing, found.pilot_ratio) == (None, 0, 4, ms / 10)
    assert found.reason == f"{ms / 10:.3g}x in the pilot (4 rounds needed for a verdict)"


def test_an_arm_that_died_midway_shows_what_it_had_and_is_never_a_verdict():
    samples = {(CASE.label, OLD, "time"): logs(10), (CASE.label, NEW, "time"): logs(20, 3)}
    arms = [arm(CASE, OLD), arm(CASE, NEW, outcome="died", reason="killed by SIGKILL")]
    found = judged(plan([CASE]), samples, arms)
    assert found.ratio == pytest.approx(2, rel=0.01)
    assert (found.verdict, found.reason) == ("inconclusive", f"{NEW} died after 3 rounds: killed by SIGKILL")


def test_there_is_one_comparison_a_pair_in_the_plans_order():
    cases = [case(style="eager"), case(style="graph")]
    asked = plan(cases, versions=("1", "2", "3"))
    arms = [arm(one, version) for one in cases for version in asked.targets]
    assert [found.pair for found in judge_pairs(asked, {}, arms)] == list(asked.pairs)


def pair_of(old: dict[int, float], new: dict[int, float], **changes) -> tuple[dict, list[ArmResult]]:
    arms = [arm(CASE, OLD), arm(CASE, NEW, **changes)]
    return {(CASE.label, OLD, "time"): old, (CASE.label, NEW, "time"): new}, arms


def test_calls_of_nanoseconds_are_never_a_verdict():
    samples, arms = pair_of(logs(10), logs(20), time=0.00005)
    found = judged(plan([CASE]), samples, arms)
    assert found.verdict == "inconclusive"
    assert "too short to be timed one by one" in found.reason


def test_a_call_of_many_short_steps_is_long_enough():
    """A pass over a dataset says how many elements it had, and each of them takes less than a reading of the clock."""
    whole = {"time": 0.001, "steps": 1_000_000.0}
    samples, arms = pair_of(logs(10), logs(20), **whole)
    assert judged(plan([CASE]), samples, arms).verdict == "slower"
    samples, arms = pair_of(logs(10), logs(20), **{**whole, "steps": 2.0})
    assert "too short to be timed one by one" in judged(plan([CASE]), samples, arms).reason


def rises(old: float, new: float) -> Rises:
    """In every replicate, the later calls differ by about this much from the earlier ones."""
    of_arms = {
        ArmKey(CASE.label, target(version)): {number: rise + NOISE[number % 6] for number in range(1, 7)}
        for version, rise in ((OLD, old), (NEW, new))
    }
    return {"time": of_arms}


def test_a_drift_of_the_ratio_as_large_as_the_effect_takes_the_verdict_away():
    samples, arms = pair_of(logs(10), logs(11))
    [found] = judge_pairs(plan([CASE]), samples, arms, rises=rises(0.0, 0.2))
    assert (found.verdict, found.size) == ("inconclusive", None)
    assert found.reason.startswith("the ratio has no steady state: later calls take +22")
    assert found.ratio == pytest.approx(1.1, rel=0.01)


def test_arms_that_drift_alike_leave_the_verdict():
    samples, arms = pair_of(logs(10), logs(11), drift=Drift(rise=0.2))
    [found] = judge_pairs(plan([CASE]), samples, arms, rises=rises(0.2, 0.2))
    assert (found.verdict, found.reason) == ("slower", "")


def test_a_drift_of_the_ratio_that_is_small_beside_the_effect_leaves_the_verdict():
    samples, arms = pair_of(logs(10), logs(20))
    assert judge_pairs(plan([CASE]), samples, arms, rises=rises(0.0, 0.05))[0].verdict == "slower"


def test_a_drift_of_the_ratio_forbids_same():
    samples, arms = pair_of(logs(10), logs(10))
    assert judge_pairs(plan([CASE]), samples, arms, rises=rises(0.0, 0.06))[0].verdict == "inconclusive"


def test_a_few_rounds_that_something_hit_neither_carry_nor_hide_a_verdict():
    """Eighteen rounds of twenty agree on the same, two say many times as long."""
    baseline = dict.fromkeys(range(1, 21), 0.0)
    candidate = {number: 0.01 * (number % 3 - 1) for number in baseline} | {20: 6.0, 19: 5.0}
    samples, arms = pair_of(baseline, candidate)
    assert judged(plan([CASE]), samples, arms).verdict == "same"
    candidate |= {number: value + 0.2 for number, value in candidate.items()} | {20: -6.0, 19: -5.0}
    samples, arms = pair_of(baseline, candidate)
    assert judged(plan([CASE]), samples, arms).verdict == "slower"


@pytest.mark.parametrize("rounds", [2, 3])
def test_few_rounds_give_a_ratio_and_neither_interval_nor_verdict(rounds: int):
    samples, arms = pair_of(logs(10, rounds), logs(20, rounds))
    found = judged(plan([CASE]), samples, arms)
    assert found.ratio == pytest.approx(2, rel=0.01)
    assert (found.ci_low, found.ci_high, found.mde, found.spread) == (None,) * 4
    needed = f"{found.ratio:.3g}x so far ({rounds} rounds; {4 - rounds} more needed for a verdict)"
    assert (found.verdict, found.reason, found.missing) == ("inconclusive", needed, 4 - rounds)


def test_a_certain_difference_inside_the_margin_is_slight_and_shown_as_such():
    for ms, words in ((10.2, "slightly slower"), (9.8, "slightly faster"), (10.0, "same")):
        samples, arms = pair_of(logs(10), logs(ms))
        found = judged(plan([CASE]), samples, arms)
        assert (found.verdict, found.shown_verdict) == ("same", words)
        assert (found.size == "slight") is (words != "same")


@pytest.mark.parametrize(
    ("judge", "metric", "times"),
    [("cpu", "time", {"time": 0.004}), ("wall", "cpu", {"cpu": 0.004}), ("wall", "cpu", {"cpu": None})],
)
def test_calls_that_mostly_wait_are_not_judged_by_their_cpu_time(judge: str, metric: str, times: dict):
    pair = replace(version_pair(CASE), metric=metric)
    samples = {(*key, metric): logs(ms) for key, ms in zip(pair.arms, (10, 20), strict=True)}
    arms = [arm(CASE, version, **times) for version in (OLD, NEW)]
    [found] = judge_pairs(plan([CASE], pairs=(pair,), judge=judge), samples, arms)
    assert (found.verdict, found.reason) == ("inconclusive", TOO_IDLE)


def test_one_of_many_comparisons_needs_more_than_one_alone():
    """The same data: a verdict alone, and none among fifty cases in which nothing differs."""
    wanted, *others = [case(style=str(number)) for number in range(50)]
    shift = {1: 0.14, 2: 0.04, 3: 0.12, 4: 0.06, 5: 0.11, 6: 0.07}
    flat = {number: 0.06 * (-1) ** number for number in shift}
    zero = dict.fromkeys(shift, 0.0)
    samples = {(wanted.label, target(OLD), "time"): zero, (wanted.label, target(NEW), "time"): shift}
    samples |= {
        (one.label, target(version), "time"): zero if version == OLD else flat
        for one in others
        for version in (OLD, NEW)
    }
    arms = [arm(one, version) for one in (wanted, *others) for version in (OLD, NEW)]
    alone = judge_pairs(plan([wanted]), samples, arms)
    among = judge_pairs(plan([wanted, *others]), samples, arms)
    assert alone[0].verdict == "slower"
    assert among[0].verdict == "inconclusive"
    assert among[0].reason.startswith("not significant after correcting for 50 comparisons")


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_the_share_of_false_discoveries_is_controlled_as_scipy_does(count: int):
    draw = np.random.default_rng(count)
    for ps in (draw.uniform(0, 1, count), draw.uniform(0, 0.01, count), np.full(count, 0.5), np.ones(count)):
        assert of_many(ps.tolist()) == pytest.approx(stats.false_discovery_control(ps).tolist())


def test_of_none_there_is_nothing_to_adjust():
    assert of_many([]) == []


def test_the_sign_flip_p_is_added_where_it_is_asked_for():
    samples, arms = pair_of(logs(10), logs(10.2))
    differences = tuple(samples[CASE.label, NEW, "time"][n] - samples[CASE.label, OLD, "time"][n] for n in logs(1))
    [plain] = judge_pairs(plan([CASE]), samples, arms)
    [flipped] = judge_pairs(plan([CASE]), samples, arms, flip=True)
    assert (plain.sign_flip_p, flipped.sign_flip_p) == (None, sign_flip_p(differences))
    assert replace(flipped, sign_flip_p=None) == plain
    assert plain.second_ratio == pytest.approx(math.exp(hodges_lehmann(differences)))
    [nothing] = judge_pairs(plan([CASE]), {}, [unmeasured(CASE, OLD, "died", "x"), arm(CASE, NEW)], flip=True)
    assert nothing.sign_flip_p is None


def test_rounds_that_only_one_arm_has_move_no_look():
    """The candidate died after its sixth round; the baseline went on."""
    both, _ = pair_of(logs(10), logs(10.5))
    longer, arms = pair_of(logs(10, 13), logs(10.5))
    assert judged(plan([CASE]), longer, arms) == judged(plan([CASE]), both, arms)


def test_a_pair_has_its_own_margin():
    asked = plan([CASE])
    wide = replace(asked, pairs=tuple(replace(pair, margin=0.5) for pair in asked.pairs))
    samples, arms = pair_of(logs(10), logs(12))
    assert (judged(asked, samples, arms).verdict, judged(wide, samples, arms).verdict) == ("slower", "same")


def test_another_metric_is_doubted_neither_for_short_calls_nor_for_a_drift():
    asked = plan([CASE])
    memory = replace(asked, pairs=tuple(replace(pair, metric="memory") for pair in asked.pairs))
    samples = {(CASE.label, OLD, "memory"): logs(10), (CASE.label, NEW, "memory"): logs(20)}
    arms = [arm(CASE, OLD), arm(CASE, NEW, time=0.00005)]
    [found] = judge_pairs(memory, samples, arms, rises=rises(0.0, 2.0))
    assert (found.verdict, found.reason) == ("slower", "")


@pytest.mark.parametrize(("count", "different", "rounds"), [(10, 1, 6), (10, 2, 4), (30, 2, 6), (30, 4, 4)])
def test_the_interval_is_as_wide_as_the_numbers_of_comparisons_and_of_differences_ask(
    count: int, different: int, rounds: int
):
    cases = [case(style=str(number)) for number in range(count)]
    asked = plan(cases)
    samples = {
        (one.label, target(version), "time"): logs(20 if version == NEW and place < different else 10, rounds)
        for place, one in enumerate(cases)
        for version in (OLD, NEW)
    }
    arms = [arm(one, version) for one in cases for version in (OLD, NEW)]
    found = judge_pairs(asked, samples, arms)
    assert [each.verdict for each in found].count("slower") == different
    schedule = make_schedule([Stretch(asked.looks)])
    level = schedule.level(rounds, min(DIFFERENCE_ERROR, FALSE_DISCOVERIES * different / count))
    differences = tuple(logs(20)[number] - logs(10)[number] for number in range(1, rounds + 1))
    half_width = Estimate(differences).half_width(level)
    assert math.log(found[0].ci_high / found[0].ratio) == pytest.approx(half_width)


def test_what_is_open_for_its_own_noise_says_so_and_not_that_there_are_many():
    noisy = {number: math.log(10) + 0.4 * NOISE[number % 6] / 0.002 for number in range(1, 7)}
    samples, arms = pair_of(logs(10), noisy)
    found = judged(plan([CASE]), samples, arms)
    assert found.verdict == "inconclusive"
    assert found.reason.startswith("too noisy: 6 rounds")


@pytest.mark.parametrize(
    ("ms", "rise", "verdict"),
    [
        # A difference is doubted by a drift that could take it below half the margin, sameness by one that could take
        # it beyond the margin.
        (11.0, 0.06, "slower"),
        (11.0, 0.08, "inconclusive"),
        (9.0, -0.07, "faster"),
        (9.0, -0.09, "inconclusive"),
        (10.0, 0.04, "same"),
        (10.0, 0.055, "inconclusive"),
        (10.2, 0.024, "same"),
        (10.2, 0.035, "inconclusive"),
    ],
)
def test_a_drift_is_weighed_against_what_the_verdict_rests_on(ms: float, rise: float, verdict: str):
    samples, arms = pair_of(logs(10), logs(ms))
    assert judge_pairs(plan([CASE]), samples, arms, rises=rises(0.0, rise))[0].verdict == verdict


def test_what_is_open_anyway_keeps_its_own_reason_whatever_drifts():
    samples, arms = pair_of(logs(10, 2), logs(20, 2))
    [found] = judge_pairs(plan([CASE]), samples, arms, rises=rises(0.0, 2.0))
    assert found.reason == found.so_far
