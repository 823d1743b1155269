"""What a budget does to a run: it is kept, and cases for which it is too short are left for later."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, cycle, repeat
from pathlib import Path

import pytest

from orchestrator.machine.host import DisturbanceMonitor
from orchestrator.measure import pacing
from orchestrator.model import Disturbed, Postponed
from orchestrator.results.endings import read_endings
from orchestrator.terminal.view import View
from tests.support.actors import Part, Play, Stage, play
from tests.support.builders import NEW, OLD, case, case_pair, plan, version_pair
from tests.support.clock import Clock, noisy
from tests.support.heard import Told

A, B = case("a"), case("b")
LOOKS = (4, 6, 8, 10, 13, 16, 20)


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody disturbs every visit, but nobody has done so before."""
    monkeypatch.setattr(DisturbanceMonitor, "disturbance", lambda witness, meanwhile: "somebody else")
    monkeypatch.setattr(pacing, "is_exception", lambda disturbed, visits: True)


def measure(
    folder: Path, stage: Stage, budget_s: float, names: str = "ab", view: View | None = None, **changes: object
) -> Play:
    asked = plan([case(name) for name in names], budget_s=budget_s, **{"looks": LOOKS, **changes})
    return play(folder, asked, stage, view=view, started=0.0)


def rounds_of(played: Play) -> dict[str, int]:
    return {arm.case.label: arm.rounds for arm in played.evaluation.arms if arm.target == NEW}


def postponed(played: Play) -> list[tuple[str, ...]]:
    return [entry.cases for entry in played.run.entries() if isinstance(entry, Postponed)]


def repeated(played: Play) -> list[tuple[str, int]]:
    disturbed = [entry for entry in played.run.entries() if isinstance(entry, Disturbed)]
    return [(entry.case, entry.round) for entry in disturbed if entry.redone]


MANY = [f"c{number:03}" for number in range(300)]


@pytest.mark.parametrize("times", [noisy, lambda number: 10.0], ids=["noisy", "same"])
def test_a_budget_that_does_not_hold_the_pilot_measures_the_first_cases_and_names_the_others(
    tmp_path: Path, clock: Clock, times: Callable[[int], float]
):
    """The pilot of all takes 150 seconds, and four rounds of a case take two."""
    stage = clock.stage(dict.fromkeys(MANY, 0.5), times=times)
    asked = plan([case(name) for name in MANY], budget_s=60.0, looks=(4, 6))
    played = play(tmp_path, asked, stage, started=0.0)
    assert clock.now <= 60.0 * 1.1
    reached = [name for name in MANY if stage.opened(name, NEW)]
    # In the order of the plan, whatever was measured.
    assert reached == MANY[: len(reached)]
    assert 10 < len(reached) < 60
    judged = {name for name, rounds in rounds_of(played).items() if rounds >= 4}
    assert len(judged) >= len(reached) - 3
    assert read_endings(played.run).postponed == set(MANY) - judged
    reasons = {comparison.pair.case.label: comparison.reason for comparison in played.evaluation.comparisons}
    assert {reasons[name] for name in set(MANY) - judged} == {
        "postponed: too few rounds fit into the budget; --resume measures it"
    }


def test_the_line_about_many_postponed_cases_names_a_few_and_counts_the_others(tmp_path: Path, clock: Clock):
    view = Told()
    stage = clock.stage(dict.fromkeys(MANY, 0.5))
    asked = plan([case(name) for name in MANY], budget_s=60.0, looks=(4,))
    play(tmp_path, asked, stage, view=view, started=0.0)
    [line] = [line for line in view.lines if line.startswith("postponed")]
    assert " and 2" in line
    assert line.endswith(" more cases; --resume measures them")


def test_cases_that_the_pilot_did_not_reach_follow_when_the_others_are_decided(tmp_path: Path, clock: Clock):
    """Forty rounds of 0.5 seconds and a look at the fourth, which decides all that has that many."""
    stage = clock.stage(dict.fromkeys(MANY[:40], 0.5), times=lambda number: 10.0)
    asked = plan([case(name) for name in MANY[:40]], budget_s=60.0, looks=(4, 20))
    play(tmp_path, asked, stage, started=0.0)
    assert clock.now <= 60.0 * 1.1
    first = {name for name in MANY if stage.opened(name, NEW)[:2] == [0, 2]}
    late = {name for name in MANY if stage.opened(name, NEW)[:1] == [0]} - first
    assert first
    assert late
    assert max(first) < min(late)


def test_a_budget_that_is_not_used_up_changes_nothing(tmp_path: Path, clock: Clock):
    stage = clock.stage({"a": 1.0, "b": 1.0})
    played = measure(tmp_path, stage, 1e6)
    assert (played.ending, postponed(played)) == ("", [])
    assert rounds_of(played) == {"a": 20, "b": 20}


def test_a_budget_is_kept(tmp_path: Path, clock: Clock):
    """The pilot, which is the first round, and four more of twenty seconds."""
    played = measure(tmp_path, clock.stage({"a": 10.0, "b": 10.0}), 105.0)
    assert played.ending == "the budget of 105 s ended the run after 5 rounds"
    assert clock.now == pytest.approx(100.0)
    assert rounds_of(played) == {"a": 5, "b": 5}
    assert postponed(played) == []


def test_the_last_round_leaves_out_what_the_budget_does_not_hold(tmp_path: Path, clock: Clock):
    played = measure(tmp_path, clock.stage({"a": 10.0, "b": 10.0}), 112.0)
    assert played.ending == "the budget of 112 s ended the run during round 6"
    assert clock.now == pytest.approx(110.0)
    assert sorted(rounds_of(played).values()) == [5, 6]
    assert {comparison.rounds for comparison in played.evaluation.comparisons} == {5, 6}
    assert postponed(played) == []


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("budget_s", [40.0, 90.0, 150.0, 333.0])
def test_whatever_the_cases_take_the_budget_is_kept(tmp_path: Path, clock: Clock, budget_s: float, seed: int):
    """Once the pilot is done, which here takes 38 seconds; and rounds may take longer than it."""
    names = "abcde"
    takes = dict(zip(names, (1.0, 2.0, 5.0, 10.0, 20.0), strict=True))
    stage = clock.stage({name: lambda number, s=s: s * (1.1 if number else 1.0) for name, s in takes.items()})
    played = measure(tmp_path, stage, budget_s, names, seed=seed)
    assert clock.now <= max(1.1 * budget_s, 38.0)
    few = {name for name, rounds in rounds_of(played).items() if rounds < 4}
    assert few == read_endings(played.run).postponed


def test_cases_that_would_get_too_few_rounds_are_postponed_the_longest_first(tmp_path: Path, clock: Clock):
    played = measure(tmp_path, clock.stage({"a": 30.0, "b": 2.0, "c": 20.0}), 82.0, "acb")
    assert postponed(played) == [("a", "c")]
    assert rounds_of(played) == {"a": 1, "b": 16, "c": 1}
    assert played.ending == "the budget of 82 s ended the run after 16 rounds"
    reasons = {comparison.pair.case.label: comparison.reason for comparison in played.evaluation.comparisons}
    so_far = "2.5x so far (1 round; 3 more needed for a verdict)"
    assert (
        reasons["a"] == reasons["c"] == f"postponed: too few rounds fit into the budget; --resume measures it; {so_far}"
    )
    assert "postponed" not in reasons["b"]
    assert {arm.outcome for arm in played.evaluation.arms} == {"measured"}


def test_what_the_budget_is_good_for_and_what_it_postpones_is_said_after_the_pilot(tmp_path: Path, clock: Clock):
    view = Told()
    measure(tmp_path, clock.stage({"a": 30.0, "b": 2.0}), 60.0, view=view)
    weighed, left_out = view.lines
    assert weighed.startswith(
        "a round takes about 34 s: 1 fits into the budget of 60 s; a verdict needs 4: 1 of 2 cases come first"
    )
    assert left_out == "postponed, because the budget is too short for them: a; --resume measures them"


def test_each_round_names_what_it_visited_also_the_first_if_it_was_the_pilot(tmp_path: Path, clock: Clock):
    view = Told()
    measure(tmp_path, clock.stage({"a": 30.0, "b": 2.0}), 40.0, view=view)
    assert view.rounds == [(number, 1) for number in (1, 2, 3, 4, 5)]
    assert view.left_s == [pytest.approx(left_s) for left_s in (8.0, 6.0, 4.0, 2.0, 0.0)]


def test_no_case_has_fewer_calls_where_the_budget_holds_enough_rounds(tmp_path: Path, clock: Clock):
    for name, budget_s in (("short", 20.0), ("long", 1e6)):
        measure(tmp_path / name, stage := clock.stage({"a": 1.0, "b": 1.0}), budget_s)
        clock.now = 0.0
        bursts = Counter(event.round for event in stage.log if event.kind == "burst" and event.case == "a")
        assert set(bursts.values()) == {16}


def test_a_case_that_was_postponed_is_measured_where_there_is_time_after_all(tmp_path: Path, clock: Clock):
    """The pilot of `a` took twenty seconds, and each of its rounds one."""
    stage = clock.stage({"a": lambda number: 1.0 if number else 20.0, "b": 20.0})
    played = measure(tmp_path, stage, 125.0)
    assert postponed(played) == [("b",)]
    assert stage.opened("b", NEW)[:2] == [0, 3], "the first round of `a` showed that there is time"
    assert rounds_of(played)["b"] >= 4
    assert read_endings(played.run).postponed == set()
    assert clock.now <= 125.0 * 1.1


def test_a_case_that_was_begun_and_cannot_be_judged_is_postponed_again(tmp_path: Path, clock: Clock):
    """Its rounds take three times as long as its pilot."""
    stage = clock.stage({"a": lambda number: 60.0 if number else 20.0, "b": 1.0})
    played = measure(tmp_path, stage, 100.0)
    assert rounds_of(played)["a"] == 2
    assert postponed(played) == [("a",)]
    assert rounds_of(played)["b"] > 4


def test_the_time_of_a_death_is_not_what_a_visit_takes(tmp_path: Path, clock: Clock):
    """A worker that is ended at its deadline, and the start of another, are in the time of one visit."""
    took = chain([60.0], repeat(1.0))
    stage = clock.stage({"a": lambda number: next(took) if number == 2 else 1.0})
    stage.parts["a", NEW] = replace(stage.parts["a", NEW], takes_its_worker_along=("burst", 2), times=1)
    asked = plan([A], (OLD, NEW, "3.0.0"), looks=LOOKS, budget_s=100.0)
    stage.parts["a", "3.0.0"] = Part(noisy)
    played = play(tmp_path, asked, stage, started=0.0)
    assert postponed(played) == []
    assert {arm.target: arm.rounds for arm in played.evaluation.arms} == {OLD: 20, NEW: 20, "3.0.0": 20}


@pytest.mark.parametrize("isolation", ["fork", "process"])
def test_cases_that_are_compared_are_postponed_together_unless_each_has_its_own_worker(
    tmp_path: Path, clock: Clock, isolation: str
):
    pairs = (version_pair(A), version_pair(B), case_pair(A, B))
    stage = clock.stage({"a": 30.0, "b": 2.0})
    played = measure(tmp_path, stage, 60.0, pairs=pairs, isolation=isolation)
    assert postponed(played) == [("a", "b") if isolation == "fork" else ("a",)]


def test_a_pilot_that_takes_all_of_the_budget_ends_the_run_with_nothing_invented(tmp_path: Path, clock: Clock):
    """Calls of minutes: the pilot alone may take longer than anybody asked for."""
    played = measure(tmp_path, clock.stage({"a": 500.0}), 60.0, "a")
    assert played.ending == "the budget of 60 s ended the run after 1 round"
    (comparison,) = played.evaluation.comparisons
    assert (comparison.verdict, comparison.rounds, comparison.ci_low) == ("inconclusive", 1, None)
    assert postponed(played) == [("a",)]


def test_nothing_is_repeated_while_the_first_look_needs_the_budget(tmp_path: Path, clock: Clock, busy: None):
    """A pilot and four rounds of a hundred seconds fit only if none is made twice."""
    played = measure(tmp_path, clock.stage({"a": 50.0, "b": 50.0}), 549.0)
    assert repeated(played) == []
    assert rounds_of(played) == {"a": 4, "b": 4}
    kept = Counter(entry.case for entry in played.run.entries() if isinstance(entry, Disturbed))
    assert kept == {"a": 4, "b": 4}


def test_what_the_first_look_leaves_of_the_budget_is_for_repetitions(tmp_path: Path, clock: Clock, busy: None):
    played = measure(tmp_path, clock.stage({"a": 50.0, "b": 50.0}), 560.0, looks=(4,))
    assert len(repeated(played)) == 1
    assert rounds_of(played) == {"a": 4, "b": 4}
    assert clock.now == pytest.approx(550.0)


def test_no_repetition_ends_beyond_the_budget(tmp_path: Path, clock: Clock, busy: None):
    """Beyond the first look, too: the tenth round is the next that may be repeated."""
    played = measure(tmp_path / "long", clock.stage({"a": 10.0}), 135.0, "a")
    assert repeated(played) == [("a", 1), ("a", 10)]
    assert clock.now == pytest.approx(130.0)
    clock.now = 0.0
    played = measure(tmp_path / "short", clock.stage({"a": 10.0}), 125.0, "a")
    assert repeated(played) == [("a", 1)]
    assert clock.now == pytest.approx(120.0)


def test_without_a_budget_a_fifth_of_the_rounds_until_then_is_repeated(tmp_path: Path, busy: None):
    """A machine that is never left alone."""
    played = play(tmp_path, plan([A], looks=(20,)), Stage({("a", NEW): Part(noisy)}))
    disturbed = [entry for entry in played.run.entries() if isinstance(entry, Disturbed)]
    assert [entry.round for entry in disturbed] == list(range(1, 21))
    assert [entry.round for entry in disturbed if entry.redone] == [1, 10, 15, 20]


@pytest.mark.parametrize(
    ("disturbed", "repeated_rounds"),
    [("never", []), ("at times", [4]), ("in all but the pilot", [1]), ("always", [])],
)
def test_what_disturbs_most_visits_disturbs_none_of_them_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disturbed: str, repeated_rounds: list[int]
):
    """A machine that is never quiet is measured as it is; repetitions would take the time of rounds."""
    hits = {
        "never": repeat(""),
        "at times": cycle(("", "", "", "", "somebody else")),
        "in all but the pilot": chain([""], repeat("somebody else")),
        "always": repeat("somebody else"),
    }[disturbed]
    monkeypatch.setattr(DisturbanceMonitor, "disturbance", lambda witness, meanwhile: next(hits))
    stage = Stage({("a", NEW): Part(lambda number: noisy(number) if number else 0.1)})
    played = play(tmp_path, plan([A], looks=(6,)), stage)
    assert [number for _, number in repeated(played)] == repeated_rounds


def test_what_a_look_decides_is_shown_once(tmp_path: Path, clock: Clock):
    shown: list[tuple[int, int]] = []

    class Deciding(Told):
        def look_done(self, number: int, new: Sequence[str], decided: int, comparisons: int) -> None:
            shown.append((number, len(new)))

    measure(tmp_path, clock.stage({"a": 1.0, "b": 1.0}), 1e6, view=Deciding())
    assert [number for number, _ in shown] == list(LOOKS)
    assert sum(new for _, new in shown) <= 2
