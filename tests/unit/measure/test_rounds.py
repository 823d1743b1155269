"""The order of a whole run, read from what its workers were told; in the style of hyperfine's execution order tests."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest

from orchestrator.model import Calibrated, Disturbed, Ended, Lost
from tests.support.actors import Part, Play, Stage, play
from tests.support.builders import NEW, OLD, case, case_pair, plan, version_pair

A, B = case("a"), case("b")
THIRD = "3.0.0"


def steady(ms: float) -> Callable[[int], float]:
    """Quiet: a twentieth of a percent up and down."""
    return lambda number: ms * (1.0005 if number % 2 else 0.9995)


def noisy(ms: float) -> Callable[[int], float]:
    """Too noisy for any verdict: a factor of two and a half up and down."""
    return lambda number: ms * (2.5 if number % 2 else 0.4)


SLOW, NOISY = Part(steady(20)), Part(noisy(10))


def test_pilots_come_first_then_rounds_of_mirrored_orders_and_alternating_bursts(tmp_path: Path):
    """Two versions, two cases, two rounds: every order that the workers got."""
    stage = Stage()
    play(tmp_path, plan([A, B], looks=(2,), seed=0), stage)
    expected = """\
        0 a: open:1 burst:1 close:1 open:2 burst:2 close:2
        0 b: open:1 burst:1 close:1 open:2 burst:2 close:2
        1 b: open:1 open:2 burst:1 burst:2 burst:2 burst:1 burst:1 burst:2 burst:2 burst:1 close:1 close:2
        1 a: open:2 open:1 burst:2 burst:1 burst:1 burst:2 burst:2 burst:1 burst:1 burst:2 close:2 close:1
        2 b: open:2 open:1 burst:2 burst:1 burst:1 burst:2 burst:2 burst:1 burst:1 burst:2 close:2 close:1
        2 a: open:1 open:2 burst:1 burst:2 burst:2 burst:1 burst:1 burst:2 burst:2 burst:1 close:1 close:2
        """
    assert stage.visits() == dedent(expected).splitlines()


def test_in_every_run_arms_of_a_case_stand_together_and_second_rounds_are_mirrors(tmp_path: Path):
    stage = Stage()
    play(tmp_path, plan([A, B], (OLD, NEW, THIRD), looks=(8,), seed=9), stage)
    for one in (A, B):
        orders = {
            number: [
                event.version
                for event in stage.log
                if (event.round, event.case, event.kind) == (number, one.label, "open")
            ]
            for number in range(1, 9)
        }
        assert all(sorted(order) == [OLD, NEW, THIRD] for order in orders.values())
        assert all(orders[number + 1] == orders[number][::-1] for number in range(1, 9, 2))
    assert len(stage.visits()) == 2 + 8 * 2, "a visit was torn apart"


def test_cases_that_are_compared_stand_together_in_every_round(tmp_path: Path):
    """All arms of both are open at once, and their bursts take turns."""
    stage = Stage()
    play(tmp_path, plan([A, B], pairs=(version_pair(A), case_pair(A, B)), looks=(4,), seed=0), stage)
    for number in range(1, 5):
        told = [event for event in stage.log if event.round == number]
        kinds = [event.kind for event in told]
        assert kinds == sorted(kinds, key=["open", "burst", "close"].index)
        arms = [(event.case, event.version) for event in told if event.kind == "burst"]
        assert len(set(arms[:4])) == 4
        assert arms[4:8] == arms[3::-1]


def test_a_replicate_with_a_worker_of_its_own_stands_alone(tmp_path: Path):
    stage = Stage()
    pairs = (version_pair(A), case_pair(A, B))
    play(tmp_path, plan([A, B], pairs=pairs, looks=(2,), seed=0, isolation="process"), stage)
    assert {len({event.case for event in visit}) for visit in stage.openings()} == {1}


def test_the_seed_of_the_plan_fixes_every_order(tmp_path: Path):
    visits = []
    for name, seed in (("one", 9), ("same", 9), ("other", 10)):
        stage = Stage()
        play(tmp_path / name, plan([A, B], looks=(8,), seed=seed), stage)
        visits.append(stage.visits())
    assert visits[0] == visits[1] != visits[2]


@pytest.mark.parametrize("slow", [OLD, NEW])
def test_one_effort_is_set_by_the_pilot_and_is_the_same_for_all_arms(tmp_path: Path, slow: str):
    """In the pilot each arm makes as many calls as its time allows; ever after all make what was journaled."""
    stage = Stage({("a", slow): Part(lambda number: 20.0)})
    played = play(tmp_path, plan([A], looks=(2,)), stage)
    (calibrated,) = [entry for entry in played.run.entries() if isinstance(entry, Calibrated)]
    bursts = [event for event in stage.log if event.kind == "burst"]
    pilot = {event.version: event.calls for event in bursts if event.round == 0}
    assert pilot == {version: 15 if version == slow else 30 for version in (OLD, NEW)}
    assert {event.calls for event in bursts if event.round} == {calibrated.calls}
    assert len([event for event in bursts if event.round]) == 2 * 2 * calibrated.bursts


def test_the_pilot_takes_no_part_in_any_verdict(tmp_path: Path):
    stage = Stage({("a", NEW): Part(lambda number: 10.0 if number else 1000.0)})
    (contrast,) = play(tmp_path, plan([A], looks=(6,)), stage).comparison.contrasts
    assert (contrast.verdict, contrast.rounds, contrast.ratio) == ("same", 6, 1.0)


def test_an_arm_that_refused_is_never_opened_again_and_the_others_go_on(tmp_path: Path):
    stage = Stage({("a", NEW): Part(refuses="no such op")})
    played = play(tmp_path, plan([A, B], looks=(3,)), stage)
    assert stage.opened("a", NEW) == [0]
    assert stage.opened("a", OLD) == stage.opened("b", NEW) == [0, 1, 2, 3]
    refused = [entry for entry in played.run.entries() if isinstance(entry, Ended) and entry.outcome == "refused"]
    assert [(entry.version, entry.case, entry.reason) for entry in refused] == [(NEW, "a", "no such op")]
    assert [arm.outcome for arm in played.comparison.arms] == ["measured", "refused", "measured", "measured"]


@pytest.mark.parametrize("order", ["open", "burst", "close"])
def test_an_arm_that_dies_leaves_the_others_in_the_same_visit(tmp_path: Path, order: str):
    stage = Stage({("a", NEW): Part(dies=(order, 2))})
    played = play(tmp_path, plan([A, B], (OLD, NEW, THIRD), looks=(4,)), stage)
    assert stage.opened("a", NEW) == [0, 1, 2]
    assert stage.opened("a", OLD) == stage.opened("a", THIRD) == [0, 1, 2, 3, 4]
    assert stage.opened("b", NEW) == [0, 1, 2, 3, 4]
    outcomes = {arm.key: (arm.outcome, arm.rounds) for arm in played.comparison.arms}
    assert outcomes["a", NEW] == ("died", 1)
    assert {outcomes[arm] for arm in outcomes if arm != ("a", NEW)} == {("measured", 4)}
    (death,) = [entry for entry in played.run.entries() if isinstance(entry, Ended) and entry.outcome == "died"]
    assert (death.round, death.how, death.reason, death.log) == (2, "exit", "ended with exit code 3", "x")


@pytest.mark.parametrize("order", ["open", "burst", "close"])
def test_a_worker_that_dies_costs_its_arm_and_another_takes_its_place(tmp_path: Path, order: str):
    stage = Stage({("a", NEW): Part(takes_its_worker_along=(order, 2))})
    played = play(tmp_path, plan([A, B], looks=(4,)), stage)
    assert stage.opened("a", NEW) == [0, 1, 2]
    assert stage.opened("b", NEW) == [0, 1, 2, 3, 4]
    (death,) = [entry for entry in played.run.entries() if isinstance(entry, Ended) and entry.outcome == "died"]
    assert (death.case, death.how, death.reason) == ("a", "worker", "its worker died: killed by SIGKILL")
    names = [stream.path.name for stream in played.run.streams()]
    assert names == ["1.0.0-1.arrow", "2.0.0-1.arrow", "2.0.0-2.arrow"]
    rounds = {arm.key: arm.rounds for arm in played.comparison.arms}
    assert rounds == {("a", OLD): 4, ("a", NEW): 1, ("b", OLD): 4, ("b", NEW): 4}


def killing(number: int) -> Part:
    return Part(noisy(10), takes_its_worker_along=("open", number))


def test_a_version_whose_worker_keeps_dying_is_lost_and_the_others_go_on(tmp_path: Path):
    cases = [case(name) for name in "abcd"]
    stage = Stage({(name, NEW): killing(number) for number, name in enumerate("abc", 1)})
    played = play(tmp_path, plan(cases, (OLD, NEW, THIRD), looks=(5,)), stage)
    (lost,) = [entry for entry in played.run.entries() if isinstance(entry, Lost)]
    assert (lost.version, lost.reason) == (NEW, "it died 3 times")
    assert max(event.round for event in stage.log if event.version == NEW) == 3
    assert stage.opened("d", OLD) == stage.opened("d", THIRD) == [0, 1, 2, 3, 4, 5]


def test_a_version_whose_worker_does_not_start_is_lost_before_the_pilot(tmp_path: Path):
    stage = Stage(broken=(NEW,))
    played = play(tmp_path, plan([A], (OLD, NEW, THIRD), looks=(2,)), stage)
    assert stage.opened("a", THIRD) == [0, 1, 2]
    (lost,) = [entry for entry in played.run.entries() if isinstance(entry, Lost)]
    assert (lost.version, lost.stage) == (NEW, "start")
    assert [arm.outcome for arm in played.comparison.arms] == ["measured", "died", "measured"]


def test_a_stream_that_its_worker_did_not_close_holds_all_that_was_measured(tmp_path: Path):
    played = play(tmp_path, plan([A], looks=(2,)), Stage(rude=(NEW,)))
    assert [stream.path.name for stream in played.run.streams()] == ["1.0.0-1.arrow", "2.0.0-1.arrow"]
    assert {arm.rounds for arm in played.comparison.arms} == {2}


def test_a_case_leaves_the_rotation_at_the_look_that_decides_it(tmp_path: Path):
    """`a` is clearly slower after six rounds; `b` stays noisy to the last."""
    stage = Stage({("a", NEW): SLOW, ("b", NEW): NOISY})
    played = play(tmp_path, plan([A, B], looks=(6, 10, 15)), stage)
    assert max(stage.opened("a", NEW)) == 6
    assert max(stage.opened("b", NEW)) == 15
    assert [(found.verdict, found.rounds) for found in played.comparison.contrasts] == [
        ("slower", 6),
        ("inconclusive", 15),
    ]


def test_a_case_with_one_undecided_contrast_stays_with_all_its_arms(tmp_path: Path):
    stage = Stage({("a", NEW): SLOW, ("a", THIRD): NOISY})
    play(tmp_path, plan([A], (OLD, NEW, THIRD), looks=(6, 10)), stage)
    assert max(stage.opened("a", NEW)) == max(stage.opened("a", THIRD)) == 10


def test_a_run_ends_as_soon_as_nothing_is_left_to_decide(tmp_path: Path):
    stage = Stage({("a", NEW): SLOW})
    assert play(tmp_path, plan([A], looks=(6, 10, 15, 20)), stage).ending == ""
    assert max(event.round for event in stage.log) == 6


def test_what_can_no_more_be_decided_is_not_measured_to_the_end(tmp_path: Path):
    """A contrast needs both of its arms: with one refused, dead or lost, more rounds show nothing."""
    looks = (2, 4, 20)
    stages = {
        "refused": Stage({("a", NEW): Part(refuses="no such op")}),
        "dead": Stage({("a", OLD): NOISY, ("a", NEW): Part(dies=("burst", 3))}),
        "lost": Stage({("a", OLD): NOISY}, broken=(NEW,)),
    }
    last = {}
    for name, stage in stages.items():
        play(tmp_path / name, plan([A], looks=looks), stage)
        last[name] = max(event.round for event in stage.log)
    assert last == {"refused": 2, "dead": 4, "lost": 2}


def test_a_case_that_all_versions_refuse_has_no_rounds(tmp_path: Path):
    stage = Stage({("a", version): Part(refuses="no") for version in (OLD, NEW)})
    assert play(tmp_path, plan([A]), stage).ending == ""
    assert {event.round for event in stage.log} == {0}


def test_the_budget_ends_the_run_but_not_before_two_rounds(tmp_path: Path):
    """Two rounds are the least that an interval can be drawn from."""
    stage = Stage({("a", NEW): NOISY})
    begun = time.monotonic() - 70
    played = play(tmp_path, plan([A], budget_s=60.0), stage, started=begun)
    assert played.ending == "the budget of 60 s ended the run after 2 rounds"
    assert max(event.round for event in stage.log) == 2
    assert played.comparison.contrasts[0].rounds == 2


def test_a_budget_that_the_pilot_has_used_up_twice_over_ends_the_run_with_nothing_invented(tmp_path: Path):
    """Calls of minutes: the pilot alone may take longer than anybody asked for."""
    stage = Stage({("a", NEW): NOISY})
    played = play(tmp_path, plan([A], budget_s=60.0), stage, started=time.monotonic() - 1000)
    assert played.ending == "the budget of 60 s ended the run after 0 rounds"
    (contrast,) = played.comparison.contrasts
    assert (contrast.verdict, contrast.ratio) == ("inconclusive", None)
    assert contrast.reason == "the run ended before it was measured"


def test_a_case_that_ends_after_one_round_has_a_reason_and_no_ratio(tmp_path: Path):
    stage = Stage({("a", NEW): Part(dies=("burst", 2))})
    (contrast,) = play(tmp_path, plan([A]), stage).comparison.contrasts
    assert (contrast.verdict, contrast.ratio, contrast.mde) == ("inconclusive", None, None)
    assert contrast.reason == "ended with exit code 3"


def test_a_budget_that_is_not_used_up_changes_nothing(tmp_path: Path):
    stage = Stage({("a", NEW): NOISY})
    assert play(tmp_path, plan([A], looks=(3,), budget_s=1e6), stage).ending == ""
    assert max(event.round for event in stage.log) == 3


class Clock:
    """Time that passes only when a replicate of a round is opened; the pilot takes none."""

    def __init__(self) -> None:
        self.now = 0.0

    def stage(self, seconds: dict[str, float]) -> Stage:
        """What a visit of each case takes; the times of its arms scatter too much for a verdict."""
        stage = Stage()

        def part(each: float) -> Part:
            def ms(number: int) -> float:
                self.now += each if number and stage.log[-1].kind == "open" else 0.0
                return noisy(10)(number)

            return Part(ms)

        stage.parts.update({(name, NEW): part(each) for name, each in seconds.items()})
        return stage


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("orchestrator.measure.rounds.time", SimpleNamespace(monotonic=lambda: made.now))
    return made


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.machine.host.Witness.disturbance", lambda witness, own_s: "somebody else")


def rounds_of(stage: Stage, *names: str) -> dict[str, int]:
    return {name: len(set(stage.opened(name, NEW)) - {0}) for name in names}


def repeated(played: Play) -> list[tuple[str, int]]:
    disturbed = [entry for entry in played.run.entries() if isinstance(entry, Disturbed)]
    return [(entry.case, entry.round) for entry in disturbed if entry.redone]


def test_nothing_is_repeated_while_the_first_look_needs_the_budget(tmp_path: Path, clock: Clock, busy: None):
    """Six rounds of ten seconds fit into a minute only if none is made twice."""
    stage = clock.stage({"a": 5.0, "b": 5.0})
    played = play(tmp_path, plan([A, B], budget_s=64.0), stage, started=0.0)
    assert repeated(played) == []
    assert rounds_of(stage, "a", "b") == {"a": 6, "b": 6}
    kept = Counter(entry.case for entry in played.run.entries() if isinstance(entry, Disturbed))
    assert kept == {"a": 6, "b": 6}


def test_what_the_first_look_leaves_of_the_budget_is_for_repetitions(tmp_path: Path, clock: Clock, busy: None):
    stage = clock.stage({"a": 5.0, "b": 5.0})
    played = play(tmp_path, plan([A, B], looks=(6,), budget_s=66.0), stage, started=0.0)
    assert len(repeated(played)) == 1
    assert rounds_of(stage, "a", "b") == {"a": 6, "b": 6}
    assert clock.now == pytest.approx(65.0)


def test_no_repetition_ends_beyond_the_budget(tmp_path: Path, clock: Clock, busy: None):
    """Beyond the first look, too: the tenth round is the next that may be repeated."""
    stage = clock.stage({"a": 10.0})
    played = play(tmp_path, plan([A], looks=(2, 20), budget_s=105.0), stage, started=0.0)
    assert repeated(played) == [("a", 1)]
    assert clock.now <= 105.0


def test_a_round_leaves_out_what_the_budget_does_not_hold(tmp_path: Path, clock: Clock):
    stage = clock.stage({"a": 10.0, "b": 10.0, "c": 10.0})
    cases = [A, B, case("c")]
    played = play(tmp_path, plan(cases, budget_s=115.0), stage, started=0.0)
    assert played.ending == "the budget of 115 s ended the run during round 4"
    assert sorted(rounds_of(stage, "a", "b", "c").values()) == [3, 4, 4]
    assert clock.now == pytest.approx(110.0)
    assert {found.rounds for found in played.comparison.contrasts} == {3, 4}


def test_a_case_that_is_cheap_has_the_time_in_which_a_dear_one_does_not_fit(tmp_path: Path, clock: Clock):
    stage = clock.stage({"a": 30.0, "b": 2.0})
    play(tmp_path, plan([A, B], budget_s=100.0), stage, started=0.0)
    assert rounds_of(stage, "a", "b") == {"a": 3, "b": 4}


def test_two_rounds_of_every_case_may_take_more_than_the_budget(tmp_path: Path, clock: Clock):
    names = ("a", "b", "c")
    stage = clock.stage(dict.fromkeys(names, 10.0))
    played = play(tmp_path, plan([case(name) for name in names], budget_s=5.0), stage, started=0.0)
    assert played.ending == "the budget of 5 s ended the run after 2 rounds"
    assert rounds_of(stage, *names) == dict.fromkeys(names, 2)


@pytest.mark.parametrize("seed", range(6))
def test_no_case_is_left_out_for_one_that_takes_long(tmp_path: Path, clock: Clock, seed: int):
    """Whichever comes first: its ten rounds would hold a hundred of the others."""
    names = "abcdefghij"
    stage = clock.stage({name: 60.0 if name == "a" else 1.0 for name in names})
    played = play(tmp_path, plan([case(name) for name in names], budget_s=140.0, seed=seed), stage, started=0.0)
    assert min(rounds_of(stage, *names).values()) == 2
    assert {arm.outcome for arm in played.comparison.arms} == {"measured"}


def test_a_second_round_that_takes_too_long_is_not_begun(tmp_path: Path, clock: Clock):
    names = "abcdefghij"
    stage = clock.stage(dict.fromkeys(names, 20.0))
    played = play(tmp_path, plan([case(name) for name in names], budget_s=10.0), stage, started=0.0)
    assert rounds_of(stage, *names) == dict.fromkeys(names, 1)
    assert played.ending == "the budget of 10 s ended the run after 1 round"


def test_isolated_every_replicate_has_a_worker_of_its_own(tmp_path: Path):
    """A stream a replicate; none of the workers outlives its replicate."""
    stage = Stage({("a", NEW): NOISY})
    played = play(tmp_path, plan([A], looks=(3,), isolation="process"), stage)
    names = {stream.path.name for stream in played.run.streams()}
    assert names == {f"{version}-{part}.arrow" for version in (OLD, NEW) for part in range(1, 5)}
    assert played.comparison.contrasts[0].rounds == 3
    assert stage.forks == [False] * 8


def test_isolated_a_death_costs_its_arm_alone_however_often(tmp_path: Path):
    cases = [case(name) for name in "abcd"]
    stage = Stage({(name, NEW): killing(number) for number, name in enumerate("abcd", 1)})
    played = play(tmp_path, plan(cases, looks=(5,), isolation="process"), stage)
    assert not any(isinstance(entry, Lost) for entry in played.run.entries())
    outcomes = {arm.key: (arm.outcome, arm.rounds) for arm in played.comparison.arms}
    assert [outcomes[name, NEW] for name in "abcd"] == [("died", number - 1) for number in range(1, 5)]
    assert {outcomes[name, OLD] for name in "abcd"} == {("measured", 5)}


def test_without_a_budget_a_fifth_of_the_rounds_until_then_is_repeated(tmp_path: Path, busy: None):
    """A machine that is never left alone."""
    played = play(tmp_path, plan([A], looks=(20,)), Stage({("a", NEW): NOISY}))
    disturbed = [entry for entry in played.run.entries() if isinstance(entry, Disturbed)]
    assert [entry.round for entry in disturbed] == list(range(1, 21))
    assert [entry.round for entry in disturbed if entry.redone] == [1, 10, 15, 20]
