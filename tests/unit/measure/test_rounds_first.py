"""Visits for a first call alone: how many there are, in which order, what they cost, and what they show."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from orchestrator.machine.host import DisturbanceMonitor
from orchestrator.measure import pacing
from orchestrator.model import Calibrated, Metric
from orchestrator.results.evaluation import gather
from orchestrator.stats.calibrate import FIRST_CALLS
from orchestrator.stats.looks import FEWEST_ROUNDS
from tests.support.actors import Event, Part, Play, Stage, play
from tests.support.builders import NEW, OLD, case, plan
from tests.support.clock import Clock
from tests.support.heard import Heard

A, B = case("a"), case("b")
# The first call of a round and of a replicate, as its version's worker opened them.
First = Callable[[int, int], float]


def stage_of(clock: Clock, firsts: dict[str, First], open_s: float = 0.01, names: Sequence[str] = "ab") -> Stage:
    """Replicates that take this long to open and to answer, with these first calls by version."""
    stage = Stage()

    def ms(number: int) -> float:
        if stage.log[-1].kind == "open":
            clock.now += open_s
        return 10.0

    stage.parts.update(
        {(name, version): Part(ms, first_ms=firsts[version]) for name in names for version in (OLD, NEW)}
    )
    return stage


def constant(number: int, before: int) -> float:
    return 50.0


def scattered(seed: int, factor: float = 1.0, spread: float = 0.2) -> First:
    draw = random.Random(seed)
    return lambda number, before: 50.0 * factor * draw.lognormvariate(0, spread)


def measure(
    folder: Path,
    stage: Stage,
    looks: tuple[int, ...] = (6,),
    metrics: tuple[Metric, ...] = ("first",),
    **changes: object,
) -> Play:
    return play(folder, plan([A, B], looks=looks, metrics=metrics, **changes), stage, started=0.0)


def opened_once(stage: Stage) -> Counter[tuple[int, str, str]]:
    """How often each arm was opened for its first call alone, by round."""
    return Counter(
        (event.round, event.case, event.version) for event in stage.log if event.kind == "open" and event.once
    )


def test_early_rounds_visit_every_arm_again_for_its_first_call(tmp_path: Path, clock: Clock):
    stage = stage_of(clock, dict.fromkeys((OLD, NEW), constant))
    measure(tmp_path, stage)
    early = range(1, FEWEST_ROUNDS + 1)
    arms = [(number, name, version) for number in early for name in "ab" for version in (OLD, NEW)]
    assert opened_once(stage) == dict.fromkeys(arms, FIRST_CALLS - 1)


@pytest.mark.parametrize("metric", ["time", "memory", "cpu"])
def test_rounds_have_no_such_visits_where_nothing_compares_first_calls(tmp_path: Path, clock: Clock, metric: Metric):
    stage = stage_of(clock, dict.fromkeys((OLD, NEW), constant))
    measure(tmp_path, stage, metrics=(metric,))
    assert not opened_once(stage)


@pytest.mark.parametrize("isolation", ["process", "container"])
def test_they_need_a_fork(tmp_path: Path, clock: Clock, isolation: str):
    stage = stage_of(clock, dict.fromkeys((OLD, NEW), constant))
    measure(tmp_path, stage, looks=(2,), isolation=isolation)
    assert not opened_once(stage)


def test_a_first_call_that_costs_as_much_as_a_visit_is_made_once(tmp_path: Path, clock: Clock):
    """Bursts of 0.12 s and an opening of 10 s: such visits would double the round."""
    stage = stage_of(clock, dict.fromkeys((OLD, NEW), constant), open_s=10.0)
    played = measure(tmp_path, stage, looks=(2,))
    assert not opened_once(stage)
    assert {entry.once for entry in played.run.entries() if isinstance(entry, Calibrated)} == {0}


def test_rounds_that_a_first_call_keeps_open_all_have_them(tmp_path: Path, clock: Clock):
    """The user has asked for its verdict; times are decided after four rounds."""
    firsts = {OLD: scattered(1, spread=1.0), NEW: scattered(2, spread=1.0)}
    stage = stage_of(clock, firsts)
    played = measure(tmp_path, stage, looks=(4, 6, 8), decides=("first",))
    assert {number for number, _, _ in opened_once(stage)} == set(range(1, 9))
    assert {comparison.verdict for comparison in played.evaluation.comparisons} == {"same"}


@pytest.mark.parametrize(("decides", "rounds"), [((), 4), (("first",), 8)])
def test_an_open_first_call_keeps_a_case_only_if_it_was_asked_for(
    tmp_path: Path, clock: Clock, decides: tuple[Metric, ...], rounds: int
):
    firsts = {OLD: scattered(1, spread=1.0), NEW: scattered(2, spread=1.0)}
    played = measure(tmp_path, stage_of(clock, firsts), looks=(4, 6, 8), decides=decides)
    assert {arm.rounds for arm in played.evaluation.arms} == {rounds}
    assert {comparison.verdict for comparison in played.evaluation.metrics["first"]} == {"inconclusive"}


def test_whole_visits_of_a_round_take_the_place_of_visits_of_one_call(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pacing, "visits_per_round", lambda *given: FIRST_CALLS)
    stage = stage_of(clock, dict.fromkeys((OLD, NEW), constant))
    measure(tmp_path, stage, looks=(2,))
    assert not opened_once(stage)


def test_which_visits_are_made_never_depends_on_what_first_calls_took(tmp_path: Path, clock: Clock):
    """So none can be chosen by its value: their number and their order are fixed before, and all of them count."""

    def visits(name: str, **firsts: First) -> tuple[list[Event], Play]:
        stage = stage_of(clock, {OLD: firsts["old"], NEW: firsts["new"]})
        return stage.log, measure(tmp_path / name, stage, seed=3)

    (tmp_path / "calm").mkdir()
    (tmp_path / "wild").mkdir()
    calm, _ = visits("calm", old=constant, new=constant)
    wild, played = visits("wild", old=scattered(1, spread=2.0), new=scattered(2, 9.0, spread=2.0))
    assert wild == calm
    opened = Counter((event.case, event.version) for event in wild if event.kind == "open" and event.round)
    # The pilot was the first round, and opened its files cold.
    counted = Counter((each.case, str(each.target)) for each in gather(played.run).openings)
    assert counted == opened


def test_arms_take_turns_in_being_early(tmp_path: Path, clock: Clock):
    stage = stage_of(clock, dict.fromkeys((OLD, NEW), constant))
    measure(tmp_path, stage)
    order = [event.version for event in stage.log if event.kind == "open" and event.once and event.case == "a"]
    early = Counter(order[::2])
    assert set(order[:2]) == {OLD, NEW}
    assert abs(early[OLD] - early[NEW]) <= 2


def found(folder: Path, clock: Clock, factor: float, seed: int) -> str:
    stage = stage_of(clock, {OLD: scattered(seed, spread=0.08), NEW: scattered(seed + 1, factor, spread=0.08)})
    folder.mkdir()
    (comparison, _) = measure(folder, stage, looks=(4, 6)).evaluation.metrics["first"]
    return comparison.verdict


@pytest.mark.parametrize(("factor", "least", "most"), [(1.5, 6, 8), (1.0, 0, 1)])
def test_a_first_call_that_takes_half_as_long_again_is_found_and_an_equal_one_is_not(
    tmp_path: Path, clock: Clock, factor: float, least: int, most: int
):
    """Replicates whose ratio scatters by 11 %, in cases that their times end after four rounds."""
    verdicts = Counter(found(tmp_path / str(seed), clock, factor, 10 * seed) for seed in range(8))
    assert least <= verdicts["slower"] + verdicts["faster"] <= most
    assert verdicts["faster"] <= (factor == 1)


def test_a_visit_that_was_repeated_takes_no_part_in_first_calls_either(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    causes = iter(["", "", "", "somebody else"])
    monkeypatch.setattr(DisturbanceMonitor, "disturbance", lambda witness, meanwhile: next(causes, ""))
    stage = stage_of(clock, dict.fromkeys((OLD, NEW), constant))
    gathered = gather(measure(tmp_path, stage).run)
    assert len(gathered.endings.redone) == 2
    assert not gathered.endings.redone & {each.number for each in gathered.openings}


def test_the_budget_and_the_plan_count_them(tmp_path: Path, clock: Clock):
    """Opening takes all of the time that passes here."""
    said: list[str] = []

    stage = stage_of(clock, dict.fromkeys((OLD, NEW), constant), open_s=0.05)
    asked = plan([A, B], looks=(20,), metrics=("first",), budget_s=15.0)
    play(tmp_path, asked, stage, view=Heard(said), started=0.0)
    assert sum(opened_once(stage).values()) > 0
    assert clock.now <= 15.1
    # Four arms of 0.37 s each, and another opening of each.
    assert any("a round takes about 1.7 s" in line for line in said), said


def test_a_percentile_that_a_case_cannot_show_is_announced_with_the_calls_it_needs(tmp_path: Path, clock: Clock):
    """Calls of 0.2 s: five in a round. Quick ones that do not scatter make enough."""
    said: list[str] = []

    stage = Stage({("a", OLD): Part(lambda number: 200.0), ("a", NEW): Part(lambda number: 200.0)})
    asked = plan([A, B], looks=(4, 6), metrics=("p99",))
    play(tmp_path, asked, stage, view=Heard(said), started=0.0)
    (line,) = [line for line in said if "p99" in line]
    assert line == "p99 needs about 1,000 calls in a round to show 5%; a makes 5"
