"""Every round has new workers: what their start costs, what their luck does, and what a start that fails leaves."""

import random
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.errors import EnvironmentFailed
from orchestrator.model import Disturbed, Ended, Lost, VerdictName
from tests.support.actors import Part, Play, Stage, play
from tests.support.builders import NEW, OLD, case, plan
from tests.support.clock import Clock, noisy

A, B = case("a"), case("b")


def slow_to_start(clock: Clock, takes: dict[str, float], start_s: float) -> Stage:
    """Let both workers of a round take so many seconds together until they are ready."""
    stage = clock.stage(takes)

    def pass_half(version: str) -> None:
        clock.now += start_s / 2

    stage.on_start = pass_half
    return stage


def visits_of(played: Play, version: str = NEW) -> Counter[int]:
    """How many replicates an arm has in each round."""
    ended = [entry for entry in played.run.entries() if isinstance(entry, Ended)]
    return Counter(entry.round for entry in ended if entry.target == version and entry.case == "a")


def test_each_round_has_new_workers_and_the_pilot_has_those_of_the_first(tmp_path: Path):
    stage = Stage()
    play(tmp_path, plan([A, B], looks=(4,)), stage)
    assert Counter(stage.doors) == {(way, version): 4 for way in ("in", "out") for version in (OLD, NEW)}
    stage = Stage()
    play(tmp_path / "kept", plan([A, B], looks=(4,)), stage, keep_workers=True)
    assert Counter(stage.doors) == {(way, version): 1 for way in ("in", "out") for version in (OLD, NEW)}


def test_only_versions_that_a_round_measures_get_a_new_worker(tmp_path: Path):
    stage = Stage({("a", NEW): Part(refuses="no such op")})
    play(tmp_path, plan([A], (OLD, NEW, "3.0.0"), looks=(4,)), stage)
    assert Counter(stage.doors)["in", NEW] == 1
    assert Counter(stage.doors)["in", OLD] == 4


def test_where_a_start_takes_longer_than_a_visit_a_round_has_several(tmp_path: Path, clock: Clock):
    """Of two seconds each, after a start of one: twice as many visits as rounds, and the pilot is one of them."""
    stage = slow_to_start(clock, {"a": 2.0}, 1.0)
    played = play(tmp_path, plan([A], looks=(4,)), stage)
    assert visits_of(played) == {0: 1, 1: 1, 2: 2, 3: 2, 4: 2}
    assert clock.now == 4 * (1 + 2 * 2)
    assert {arm.rounds for arm in played.evaluation.arms} == {4}
    (comparison,) = played.evaluation.comparisons
    assert comparison.rounds == 4


def test_visits_of_a_round_are_averaged_and_count_once(tmp_path: Path, clock: Clock):
    """What replicates of one worker share is no more certain for being measured twice."""
    stage = slow_to_start(clock, {"a": 2.0}, 1.0)
    times = iter([10.0, 12.1] * 4)
    now = [0.0]

    def ms(number: int) -> float:
        if stage.log[-1].kind == "open":
            clock.now += 2.0
            now[0] = next(times)
        return now[0]

    stage.parts["a", NEW] = Part(ms)
    played = play(tmp_path, plan([A], looks=(4,)), stage)
    (comparison,) = played.evaluation.comparisons
    assert comparison.ratio == pytest.approx(1.1)


@pytest.mark.parametrize(("slowdown", "verdict"), [(1.0, "same"), (1.1, "slower")])
@pytest.mark.parametrize("seed", range(5))
def test_a_place_in_a_visit_makes_no_version_faster(
    tmp_path: Path, clock: Clock, seed: int, slowdown: float, verdict: VerdictName
):
    """The arm that is opened last is the fastest, and rounds have several visits: each arm is last equally often."""
    versions, stage = (OLD, NEW, "3.0.0"), slow_to_start(clock, {}, 20.0)
    draw = random.Random(seed)

    def part(version: str) -> Part:
        def ms(number: int) -> float:
            clock.now += 0.5 if stage.log[-1].kind == "open" else 0.0
            last = next(event.version for event in reversed(stage.log) if event.kind == "open")
            ms = (9.0 if version == last else 10.0) * draw.lognormvariate(0, 0.005)
            return ms * slowdown if version == NEW else ms

        return Part(ms)

    stage.parts = {("a", version): part(version) for version in versions}
    played = play(tmp_path, plan([A], versions, looks=(6,), seed=seed), stage)
    orders = [[event.version for event in visit if event.kind == "open"] for visit in stage.openings()]
    assert len(orders) >= 24
    lasts = Counter(order[-1] for order in orders[: len(orders) // 6 * 6])
    assert len(set(lasts.values())) == 1
    found = {comparison.pair.arms[1].target: comparison for comparison in played.evaluation.comparisons}
    assert (found[NEW].verdict, found["3.0.0"].verdict) == (verdict, "same")
    assert found[NEW].ratio == pytest.approx(slowdown, rel=0.01)


def test_the_budget_holds_the_starts(tmp_path: Path, clock: Clock):
    stage = slow_to_start(clock, {"a": 10.0, "b": 10.0}, 4.0)
    played = play(tmp_path, plan([A, B], budget_s=102.0, looks=(4, 6, 20)), stage, started=0.0)
    assert played.ending == "the budget of 102 s ended the run after 4 rounds"
    assert clock.now == 24 + 3 * 24


def test_single_visits_bring_more_cases_to_a_verdict_than_several(tmp_path: Path, clock: Clock):
    """Four starts of a second and visits of two: 12 s with one visit in a round, 20 s with two."""
    stage = slow_to_start(clock, {"a": 2.0}, 1.0)
    played = play(tmp_path, plan([A], budget_s=13.0, looks=(4, 6)), stage, started=0.0)
    assert visits_of(played) == {0: 1, 2: 1, 3: 1, 4: 1}
    assert played.ending == "the budget of 13 s ended the run after 4 rounds"


def test_a_first_round_that_the_pilot_is_no_part_of_has_all_its_visits(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    causes = iter(["somebody else"])
    monkeypatch.setattr(
        "orchestrator.machine.host.DisturbanceMonitor.disturbance", lambda witness, meanwhile: next(causes, "")
    )
    played = play(tmp_path, plan([A], looks=(4,)), slow_to_start(clock, {"a": 2.0}, 1.0))
    assert visits_of(played) == {0: 1, 1: 2, 2: 2, 3: 2, 4: 2}


def test_a_disturbed_visit_is_repeated_in_its_turn(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    causes = iter(["", "somebody else"])
    monkeypatch.setattr(
        "orchestrator.machine.host.DisturbanceMonitor.disturbance", lambda witness, meanwhile: next(causes, "")
    )
    stage = slow_to_start(clock, {"a": 2.0}, 1.0)
    played = play(tmp_path, plan([A], looks=(4,)), stage)
    assert visits_of(played) == {0: 1, 1: 2, 2: 2, 3: 2, 4: 2}
    (disturbed,) = [entry for entry in played.run.entries() if isinstance(entry, Disturbed)]
    assert (disturbed.round, disturbed.redone) == (1, True)
    assert {arm.rounds for arm in played.evaluation.arms} == {4}


def test_a_new_worker_that_does_not_start_costs_its_version_one_round(tmp_path: Path):
    starts: Counter[str] = Counter()

    def fail_once(version: str) -> None:
        starts[version] += 1
        if (version, starts[version]) == (NEW, 3):
            raise EnvironmentFailed("no memory", target=version)

    stage = Stage({("a", NEW): Part(noisy)}, on_start=fail_once)
    played = play(tmp_path, plan([A], looks=(6,)), stage)
    assert stage.opened("a", NEW) == [0, 2, 4, 5, 6]
    assert stage.opened("a", OLD) == [0, 2, 3, 4, 5, 6]
    assert not [entry for entry in played.run.entries() if isinstance(entry, Lost)]
    (comparison,) = played.evaluation.comparisons
    assert comparison.rounds == 5


def test_a_version_whose_new_workers_keep_failing_is_lost(tmp_path: Path):
    starts: Counter[str] = Counter()

    def fail_later(version: str) -> None:
        starts[version] += 1
        if version == NEW and starts[version] > 3:
            raise EnvironmentFailed("no memory", target=version)

    stage = Stage({("a", NEW): Part(noisy)}, on_start=fail_later)
    played = play(tmp_path, plan([A], looks=(20,)), stage)
    (lost,) = [entry for entry in played.run.entries() if isinstance(entry, Lost)]
    assert (lost.target, lost.stage) == (NEW, "start")
    assert stage.opened("a", NEW) == [0, 2, 3]
