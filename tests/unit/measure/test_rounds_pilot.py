"""The pilot: what it fixes for every arm, and when it is the first round."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.contract import PILOT_ROUND
from orchestrator.machine.host import DisturbanceMonitor, Interference
from orchestrator.measure.pilot import describe_remedy, describe_rounds, prolong, typical_spread
from orchestrator.measure.round_range import RoundRange
from orchestrator.model import BESIDE, Calibrated, Ended, Load, Metric, Prolonged
from orchestrator.plan.pairs import FURTHER_LOOKS
from orchestrator.plan.pairs import LOOKS as USUAL_LOOKS
from orchestrator.stats.calibrate import Pilot
from tests.support.actors import Part, Play, Stage, play
from tests.support.builders import MS, NEW, OLD, case, case_pair, plan, version_pair
from tests.support.clock import Clock
from tests.support.heard import Heard

A, B = case("a"), case("b")


def efforts(played: Play) -> dict[tuple[str, str | None], Calibrated]:
    return {(entry.case, entry.target): entry for entry in played.run.entries() if isinstance(entry, Calibrated)}


def counting(played: Play) -> set[bool]:
    return {entry.counts for entry in efforts(played).values()}


def test_each_arm_has_its_own_calls_and_bursts_over_the_same_visit(tmp_path: Path):
    stage = Stage({("a", OLD): Part(lambda number: 2.0), ("a", NEW): Part(lambda number: 250.0)})
    played = play(tmp_path, plan([A], looks=(3,)), stage)
    of_old, of_new = efforts(played)["a", OLD], efforts(played)["a", NEW]
    assert (of_old.warmup, of_old.bursts, of_old.calls) == (0, 8, 4)
    assert (of_new.warmup, of_new.bursts, of_new.calls) == (0, 4, 1)
    for visit in stage.openings():
        bursts = [event.version for event in visit if event.kind == "burst"]
        assert (bursts.count(OLD), bursts.count(NEW)) == (8, 4)
        for version in (OLD, NEW):
            assert {bursts[:6].count(version), bursts[6:].count(version)} == {bursts.count(version) // 2}
    rounds = [event for event in stage.log if event.kind == "burst" and event.round]
    assert {(event.version, event.calls) for event in rounds} == {(OLD, 4), (NEW, 1)}


def test_a_pilot_that_did_what_a_round_does_is_the_first_round(tmp_path: Path):
    stage = Stage({("a", NEW): Part(lambda number: 20.0)})
    played = play(tmp_path, plan([A], looks=(6,)), stage)
    assert counting(played) == {True}
    assert stage.opened("a", NEW) == [0, 2, 3, 4, 5, 6]
    (comparison,) = played.evaluation.comparisons
    assert (comparison.verdict, comparison.rounds, comparison.ratio) == ("slower", 6, pytest.approx(2.0))
    assert {arm.rounds for arm in played.evaluation.arms} == {6}


def test_a_pilot_with_another_effort_takes_no_part_in_any_verdict(tmp_path: Path):
    """Its calls are so short that a burst ends before it is long enough."""
    stage = Stage({("a", NEW): Part(lambda number: 10.0 if number else 0.1)})
    played = play(tmp_path, plan([A], looks=(6,)), stage)
    assert counting(played) == {False}
    assert stage.opened("a", NEW) == [0, 1, 2, 3, 4, 5, 6]
    (comparison,) = played.evaluation.comparisons
    assert (comparison.verdict, comparison.rounds, comparison.ratio) == ("same", 6, pytest.approx(1.0))


class Settling:
    """An arm whose pilot takes long at first: its rounds have a warm-up."""

    def __init__(self) -> None:
        self.orders = 0

    def __call__(self, number: int) -> float:
        self.orders += 1
        return 30.0 if self.orders < 4 else 10.0


def test_a_pilot_of_an_arm_that_needs_a_warm_up_does_not_count(tmp_path: Path):
    played = play(tmp_path, plan([A], looks=(2,)), Stage({("a", NEW): Part(Settling())}))
    found = efforts(played)
    assert found["a", NEW].warmup == found["a", OLD].warmup == 2, "both, or the one that needs none would seem slower"
    assert counting(played) == {False}
    assert {arm.rounds for arm in played.evaluation.arms} == {2}


@pytest.mark.parametrize(("metric", "counts"), [("time", True), ("memory", True), ("first", False), ("build", False)])
def test_a_pilot_is_no_round_where_the_first_opening_is_compared(tmp_path: Path, metric: Metric, counts: bool):
    """It may find files and caches cold that every later round finds warm."""
    pairs = (version_pair(A), replace(version_pair(A), metric=metric))
    played = play(tmp_path, plan([A], pairs=pairs, looks=(3,)), Stage())
    assert counting(played) == {counts}


def test_a_pilot_that_was_disturbed_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    causes = iter(["somebody else"])
    monkeypatch.setattr(DisturbanceMonitor, "disturbance", lambda witness, meanwhile: next(causes, ""))
    played = play(tmp_path, plan([A, B], looks=(2,)), stage := Stage())
    assert {entry.case: entry.counts for entry in efforts(played).values()} == {"a": False, "b": True}
    assert (stage.opened("a", NEW), stage.opened("b", NEW)) == ([0, 1, 2], [0, 2])


def test_an_arm_that_dies_in_the_pilot_leaves_the_others_their_first_round(tmp_path: Path):
    stage = Stage({("a", NEW): Part(dies=("burst", PILOT_ROUND))})
    played = play(tmp_path, plan([A], (OLD, NEW, "3.0.0"), looks=(4,)), stage)
    assert stage.opened("a", NEW) == [0]
    assert set(efforts(played)) == {("a", OLD), ("a", "3.0.0")}
    assert {arm.target: arm.rounds for arm in played.evaluation.arms} == {OLD: 4, NEW: 0, "3.0.0": 4}


def test_an_arm_that_lost_its_worker_beside_another_gets_an_effort_before_the_next_round(tmp_path: Path):
    """The visit that gives it one is no round for anyone, and takes nothing from what counted before."""
    stage = Stage({("a", NEW): Part(takes_its_worker_along=("burst", PILOT_ROUND))})
    asked = plan([A, B], pairs=(version_pair(A), version_pair(B), case_pair(A, B)), looks=(4,))
    played = play(tmp_path, asked, stage)
    beside = [entry for entry in played.run.entries() if isinstance(entry, Ended) and entry.how == BESIDE]
    assert [(entry.case, entry.target, entry.round) for entry in beside] == [("b", NEW, PILOT_ROUND)] * 2
    assert stage.opened("b", NEW) == [0, 0, 0, 2, 3, 4]
    assert efforts(played)["b", NEW].counts is False
    rounds = {arm.key: arm.rounds for arm in played.evaluation.arms}
    assert rounds == {("a", OLD): 1, ("a", NEW): 0, ("b", OLD): 4, ("b", NEW): 3}
    assert played.evaluation.broken == ()


class SomeStarts:
    """The versions of a stage that do not start: what each attempt comes to, in order; later ones succeed."""

    def __init__(self, *fails: bool) -> None:
        self.fails = iter(fails)

    def __contains__(self, version: object) -> bool:
        return next(self.fails, False)


def test_a_pilot_in_which_nothing_was_measured_is_no_round(tmp_path: Path):
    """With one worker per replicate, none of the second case's started; its pilot is made before the next round."""
    stage = Stage(broken=SomeStarts(False, False, True, True))
    played = play(tmp_path, plan([A, B], looks=(4,), isolation="process"), stage)
    assert (stage.opened("a", NEW), stage.opened("b", NEW)) == ([0, 2, 3, 4], [0, 2, 3, 4])
    assert {case: entry.counts for (case, _), entry in efforts(played).items()} == {"a": True, "b": False}
    assert [arm.rounds for arm in played.evaluation.arms] == [4, 4, 3, 3]


def test_what_others_did_in_each_visit_is_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    meanwhile = Interference(foreign_cores=1.5, steal_share=0.02, cpus=64, waiting_share=0.1, idle_share=0.9)
    monkeypatch.setattr(DisturbanceMonitor, "meanwhile", lambda witness, own_s: meanwhile)
    asked = plan([A, B], pairs=(version_pair(A), case_pair(A, B)), looks=(2,))
    played = play(tmp_path, asked, Stage())
    loads = [entry for entry in played.run.entries() if isinstance(entry, Load)]
    facts = {"foreign": 1.5, "steal": 0.02, "cpus": 64, "idle": 0.9, "waiting": 0.1}
    assert loads == [Load(cases=("b", "a"), round=number, **facts) for number in (0, 2)]


def test_a_visit_too_short_for_the_counters_leaves_no_load(tmp_path: Path):
    played = play(tmp_path, plan([A], looks=(2,)), Stage())
    assert not any(isinstance(entry, Load) for entry in played.run.entries())


def sentence(
    fit: int,
    round_s: float = 30.0,
    spread: float = 0.05,
    budget_s: float | None = 300.0,
    looks: tuple[int, ...] = USUAL_LOOKS,
    remedy: str = "",
) -> str:
    rounds = RoundRange(cases=(A,), looks=looks, budget_s=budget_s, seed=1)
    return describe_rounds(rounds, fit, round_s, spread, 0.05, remedy)


def test_after_the_pilot_the_budget_is_weighed():
    assert sentence(9) == (
        "a round takes about 30 s: 9 fit into the budget of 300 s; they show differences from about 8% on; "
        "--budget 10m would show 5%"
    )


def test_after_the_pilot_a_run_without_a_budget_has_times():
    assert sentence(0, round_s=60.0, budget_s=None) == (
        "a round takes about 60 s: 4 rounds about 4.0 min, 20 rounds about 20 min"
    )
    assert sentence(0, budget_s=None, looks=(6,)) == "a round takes about 30 s: 6 rounds about 3.0 min"


def test_rounds_that_show_the_margin_need_no_other_budget():
    enough = sentence(6, spread=0.01)
    assert enough.startswith("a round takes about 30 s: 6 fit into the budget of 300 s; they show differences from")
    assert "--budget" not in enough
    assert sentence(200, 0.5, spread=0.01).startswith("a round takes about 0.5 s: all 20 fit into the budget of 300 s")


def test_a_budget_is_promised_nothing_that_the_last_round_does_not_hold():
    """A run ends with its last look, whatever it may cost."""
    assert sentence(6, spread=0.2).endswith("% on")
    assert sentence(20, spread=0.3).endswith("% on")


def test_a_slowdown_beyond_a_factor_of_two_has_no_figure():
    assert sentence(5, spread=0.5).endswith("5 fit into the budget of 300 s; they show not even a factor of two")


@pytest.mark.parametrize(("fit", "count"), [(0, "0 fit"), (1, "1 fits"), (3, "3 fit")])
def test_too_few_rounds_promise_nothing_but_what_would_be_enough(fit: int, count: str):
    said = sentence(fit, budget_s=60.0, remedy=": use another")
    assert said == f"a round takes about 30 s: {count} into the budget of 60 s; a verdict needs 4: use another"


def test_where_fewer_rounds_were_asked_for_than_a_verdict_needs_no_budget_is_enough():
    said = sentence(2, looks=(2,), remedy=": use another")
    assert said == "a round takes about 30 s: all 2 fit into the budget of 300 s"


@pytest.mark.parametrize(
    ("spread", "fit", "last"),
    [
        (0.03, 60, 20),
        (0.065, 60, 32),
        (0.065, 32, 32),
        # Rounds that do not show it either are not worth the time, nor are those that the budget does not hold.
        (0.065, 31, 20),
        (0.065, 9, 20),
        (0.2, 60, 20),
    ],
)
def test_as_many_further_rounds_are_planned_as_show_the_margin(spread: float, fit: int, last: int):
    rounds = RoundRange(cases=(A,), looks=USUAL_LOOKS, budget_s=300.0, seed=1)
    looks = (*USUAL_LOOKS, *FURTHER_LOOKS)
    assert prolong(rounds, 40, fit, spread, 0.05).looks == tuple(look for look in looks if look <= last)
    assert prolong(rounds, 0, fit, spread, 0.05) == rounds


@pytest.mark.parametrize(("most", "last"), [(40, 32), (0, 20)])
def test_a_noisy_run_says_and_records_before_its_second_round_that_it_may_last_longer(
    tmp_path: Path, clock: Clock, most: int, last: int
):
    stage, opened = Stage(), Counter[str]()

    def swaying(version: str, of_rounds: float) -> Part:
        """Bursts of a replicate are apart by 16 %; from round to round the time is now longer and now shorter."""

        def ms(number: int) -> float:
            if stage.log[-1].kind == "open":
                clock.now += 1.0
            opened[version] += 1
            return 10.0 * math.exp(0.079 * (-1) ** opened[version] + of_rounds * (-1) ** number)

        return Part(ms)

    stage.parts = {("a", OLD): swaying(OLD, 0.0), ("a", NEW): swaying(NEW, 0.09)}
    asked = plan([A], looks=USUAL_LOOKS, budget_s=300.0, most_rounds=most)
    said = Heard()
    played = play(tmp_path, asked, stage, view=said, started=0.0)
    recorded = [entry for entry in played.run.entries() if isinstance(entry, Prolonged)]
    assert [entry.looks[-1] for entry in recorded] == ([last] if most else [])
    assert played.evaluation.plan.looks[-1] == last
    announced = "up to 32 rounds: 20 of such noise would not show 5%"
    assert said.lines.count(announced) == bool(most)
    entries = list(played.run.entries())
    if recorded:
        before = [entry.round for entry in entries[: entries.index(recorded[0])] if isinstance(entry, Ended)]
        assert set(before) <= {PILOT_ROUND, 1}
    assert played.run.read_plan() == asked


@pytest.mark.parametrize(
    ("cases", "first", "only", "told"),
    [
        (1, 0, [], ", about 2 min 10 s: use --budget 4m"),
        (2, 0, [], ", about 2 min 10 s for all cases: use --budget 4m"),
        (2, 0, ["a[x=1]"], ", about 2 min 10 s for all cases: use --budget 4m, or -c 'a[x=1]'"),
        (3, 1, [], ": 1 of 3 cases come first and get them; all take about 2 min 10 s: use --budget 4m"),
    ],
)
def test_a_budget_that_is_too_short_has_a_remedy(cases: int, first: int, only: list[str], told: str):
    assert describe_remedy(130.0, cases, first, only) == told


def test_two_arms_differ_by_what_their_bursts_and_their_rounds_do():
    quiet = Pilot(0.1, ((10 * MS,),) * 8)
    visit = SimpleNamespace(timed={0: SimpleNamespace(pilot=quiet)})
    assert typical_spread([visit], 1) == typical_spread([visit], 5) == pytest.approx(0.02 * 2**0.5)
    noisy = SimpleNamespace(timed={0: SimpleNamespace(pilot=Pilot(0.1, ((9 * MS,), (11 * MS,)) * 4))})
    assert typical_spread([noisy], 1) > typical_spread([noisy], 4) > typical_spread([visit], 1)
    assert typical_spread([], 1) == 0.0


def test_an_arm_whose_leak_is_compared_makes_enough_calls_to_tell_and_others_do_not(tmp_path: Path):
    leak = replace(version_pair(A), metric="leak")
    stage = Stage({(name, version): Part(lambda number: 1.0) for name in "ab" for version in (OLD, NEW)})
    played = play(tmp_path, plan([A, B], pairs=(leak, version_pair(A), version_pair(B)), looks=(3,)), stage)
    calls = {key: each.bursts * each.calls for key, each in efforts(played).items()}
    assert all(calls["a", version] >= 250 > calls["b", version] for version in (OLD, NEW))
