"""What `bench/detect` makes of rounds that are known."""

import json
import math
import random
from dataclasses import replace

import pytest

from bench import arena, detect
from bench.detect import BODIES, SLOWDOWNS, TARGETS, WINDOW, DetectionTarget, Judged, Outcome, Recorded
from bench.figures import judge
from orchestrator.model import Case, Replicate
from orchestrator.plan.pairs import LOOKS
from tests.support.builders import plan, target, version_pair

MATMUL, TRAIN = arena.MATMUL, arena.TRAIN


def replicate(case: Case, version: str, number: int, cpu_ns: float, waits: float = 0.0) -> Replicate:
    facts = dict.fromkeys(Replicate._fields, 1) | {"rise": 0.0, "percentiles": ()}
    time_ns = cpu_ns * (1 + waits)
    own = {"case": case.label, "round": number, "time_ns": time_ns, "bursts": (math.log(time_ns),)}
    own |= {"cpu_ns": cpu_ns, "cpu_bursts": (math.log(cpu_ns),)}
    return Replicate(**(facts | own | {"target": target(version)}))


def recorded(windows: int = 1, offset: float = 0.0, waits: float = 0.0) -> Recorded:
    """Rounds with little noise; arm b computes or waits longer by a share, though it should not."""
    draw = random.Random(18)
    replicates = tuple(
        replicate(
            case,
            name,
            number,
            1e7 * (1 + slowdown + offset * (name == "equal-2")) * math.exp(draw.gauss(0, 0.001)),
            waits * (name == "equal-2"),
        )
        for case in BODIES.values()
        for name, slowdown in SLOWDOWNS.items()
        for number in range(1, windows * WINDOW + 1)
    )
    pairs = tuple(pair for case in BODIES.values() for pair in detect.pairs_of(case))
    measured = plan(list(BODIES.values()), tuple(SLOWDOWNS), pairs=pairs, looks=(windows * WINDOW,))
    return Recorded("as found", measured, replicates)


def test_every_pair_with_an_arm_that_is_not_slowed_is_judged_in_every_window():
    alike = sum(not slowdown for slowdown in SLOWDOWNS.values())
    judged = [each for each in detect.judge_run(recorded(windows=2)) if each.body == "train"]
    assert sum(each.slowdown == 0 for each in judged) == 2 * math.comb(alike, 2)
    assert sum(each.slowdown == 0.05 for each in judged) == 2 * alike
    assert {each.verdict for each in judged if each.slowdown == 0} == {"same"}
    assert {each.verdict for each in judged if each.slowdown > 0} == {"slower"}
    assert all(each.covered for each in judged)


def test_later_windows_have_the_looks_of_the_first():
    endings = list(detect.judge_pair(recorded(windows=2), version_pair(MATMUL, "equal-1", "slow-05")))
    assert [ending.rounds for ending in endings] == [LOOKS[0], LOOKS[0]]


def test_an_offset_of_an_arm_is_an_error_that_is_seen():
    judged = detect.judge_run(recorded(offset=0.08))
    assert sum(each.verdict != "same" for each in judged if each.slowdown == 0) == 3 * len(BODIES)


def test_the_same_rounds_are_judged_by_cpu_time_as_well():
    outcome = Outcome.of(recorded(waits=0.08), 60.0)
    alike = [[one.verdict for one in found if one.slowdown == 0] for found in (outcome.judged, outcome.judged_by_cpu)]
    assert [sum(verdict != "same" for verdict in verdicts) for verdicts in alike] == [3 * len(BODIES), 0]
    assert {one.verdict for one in outcome.judged_by_cpu if one.slowdown > 0} == {"slower"}
    assert Outcome.load(outcome.dump()) == outcome


def test_only_the_times_of_arms_that_do_not_differ_are_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(detect, "RECORDED", tmp_path / "recorded.json")
    detect.record([Outcome.of(recorded(), 60.0)])
    runs = json.loads((tmp_path / "recorded.json").read_text())
    assert [run["case"] for run in runs] == [MATMUL.label, TRAIN.label]
    assert {run["condition"] for run in runs} == {"as found"}
    assert [len(arm) for run in runs for arm in run["arms"]] == [WINDOW] * 8
    assert all(math.log(0.9e7) < level < math.log(1.1e7) for run in runs for arm in run["arms"] for level in arm)


def test_runs_that_verdicts_may_have_ended_are_not_recorded():
    run = recorded()
    assert not Outcome.of(replace(run, plan=replace(run.plan, looks=LOOKS)), 60.0).levels


def test_what_a_run_showed_is_read_as_it_was_written():
    outcome = Outcome.of(recorded(), 60.0)
    assert Outcome.load(json.loads(json.dumps(outcome.dump()))) == outcome


def judged(body: str, right: int, wrong: int) -> list[Judged]:
    def ending(verdict: str) -> Judged:
        return Judged(body, 0.05, verdict, 1.02, 1.08, 10)

    return [ending("slower")] * right + [ending("inconclusive")] * wrong


@pytest.mark.parametrize(
    ("matmul", "train", "met"),
    [
        # The estimate of all is what counts, however few there are,
        ((45, 5), (46, 4), "met"),
        ((44, 6), (45, 5), "**missed by 1 point**"),
        # unless one body for itself excludes the target.
        ((100, 0), (83, 17), "**missed by 0.23 points**"),
    ],
)
def test_a_target_is_met_when_the_estimate_meets_it_and_no_body_contradicts_it(matmul, train, met):
    target = DetectionTarget("5 % slower, called slower", (0.05,), ("slower",), 0.90, most=False)
    assert judge(target.figure("as found", [*judged("matmul", *matmul), *judged("train", *train)])) == met


def test_targets_stand_beside_their_counts_with_exact_limits():
    figure = TARGETS[1].figure("as found", [*judged("matmul", 45, 5), *judged("train", 50, 0)])
    assert figure.name == "as found: 5 % slower, called slower"
    assert figure.value == 0.95
    assert "together 95 of 100, 88.7% to 98.4%" in figure.detail
    assert "train 50 of 50, 92.9% to 100.0%" in figure.detail


def test_a_body_without_a_run_is_shown_as_nothing():
    figure = TARGETS[1].figure("as found", judged("matmul", 49, 1))
    assert "train 0 of 0" in figure.detail
    assert judge(figure) == "met"
