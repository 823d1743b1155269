"""The order of a whole run, read from what its workers were told; in the style of hyperfine's execution order tests."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.measure.rounds import describe_decision
from orchestrator.model import Disturbed, Ended, Lost, Metric, VerdictName
from tests.support.actors import Part, Play, Stage, play
from tests.support.builders import NEW, OLD, case, case_pair, comparison, plan, version_pair
from tests.support.heard import Heard

A, B = case("a"), case("b")
THIRD = "3.0.0"


def even(ms: float) -> Callable[[int], float]:
    """View: a twentieth of a percent up and down."""
    return lambda number: ms * (1.0005 if number % 2 else 0.9995)


def noisy(ms: float) -> Callable[[int], float]:
    """Too noisy for any verdict: a factor of two and a half up and down."""
    return lambda number: ms * (2.5 if max(number, 1) % 2 else 0.4)


SLOW, NOISY = Part(even(20)), Part(noisy(10))


def visit(number: int, case: str, *order: int, bursts: int = 8) -> str:
    """All arms open at once, and their bursts take turns."""
    kinds = (("open", order), ("burst", order * bursts), ("close", order))
    return f"{number} {case}: " + " ".join(f"{kind}:{version}" for kind, versions in kinds for version in versions)


@pytest.mark.parametrize(
    ("metric", "verdict", "words"),
    [
        ("time", "same", "time of a in 2.0.0: same (1.01x)"),
        ("memory", "slower", "memory of a in 2.0.0: more (1.01x)"),
    ],
)
def test_a_decision_names_what_was_compared(metric: Metric, verdict: VerdictName, words: str):
    """A search for results decides times as well."""
    pair = replace(version_pair(A, OLD, "2.0.0"), metric=metric)
    assert describe_decision(comparison(pair, 1.01, verdict)) == words


def test_pilots_come_first_then_rounds_of_mirrored_orders_and_bursts_in_turns(tmp_path: Path):
    """Two versions, two cases, four rounds, the first of which is the pilot: every order that the workers got."""
    stage = Stage()
    play(tmp_path, plan([A, B], looks=(4,), seed=0), stage)
    assert stage.visits() == [
        visit(0, "a", 1, 2),
        visit(0, "b", 1, 2),
        visit(2, "b", 2, 1),
        visit(2, "a", 2, 1),
        visit(3, "a", 1, 2),
        visit(3, "b", 2, 1),
        visit(4, "b", 1, 2),
        visit(4, "a", 2, 1),
    ]


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
            for number in (0, *range(2, 9))
        }
        orders[1] = orders.pop(0)
        assert all(sorted(order) == [OLD, NEW, THIRD] for order in orders.values())
        assert all(orders[number + 1] == orders[number][::-1] for number in range(1, 9, 2))
    assert len(stage.visits()) == 8 * 2, "a visit was torn apart"


def test_cases_that_are_compared_stand_together_in_every_round(tmp_path: Path):
    """All arms of both are open at once, and their bursts take turns."""
    stage = Stage()
    play(tmp_path, plan([A, B], pairs=(version_pair(A), case_pair(A, B)), looks=(4,), seed=0), stage)
    for number in (0, 2, 3, 4):
        told = [event for event in stage.log if event.round == number]
        kinds = [event.kind for event in told]
        assert kinds == sorted(kinds, key=["open", "burst", "close"].index)
        arms = [(event.case, event.version) for event in told if event.kind == "burst"]
        assert len(set(arms[:4])) == 4
        assert arms[4:8] == arms[:4]


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


@pytest.mark.parametrize("isolation", ["fork", "process"])
def test_all_workers_of_a_round_have_one_seed_and_those_of_the_next_another(tmp_path: Path, isolation: str):
    stage = Stage({("a", NEW): Part(takes_its_worker_along=("burst", 2), times=1)})
    play(tmp_path, plan([A], looks=(4,), seed=4711, isolation=isolation), stage)
    assert stage.seeds == sorted(stage.seeds)
    assert set(stage.seeds) == {4711, 4712, 4713, 4714}
    # Also the resident worker that takes a dead one's place, and those of the repeated visit.
    assert stage.seeds.count(4712) == (3 if isolation == "fork" else 4)


def test_all_arms_of_a_round_draw_the_same_numbers_and_those_of_the_next_draw_others(tmp_path: Path):
    stage = Stage()
    play(tmp_path, plan([A, B], looks=(4,), seed=2**31 - 2), stage)
    # The pilot may be the first round.
    assert stage.draws[0] == stage.draws.get(1, {2**31 - 2}) == {2**31 - 2}
    assert (stage.draws[2], stage.draws[3], stage.draws[4]) == ({2**31 - 1}, {0}, {1})


def test_an_arm_that_refused_is_never_opened_again_and_the_others_go_on(tmp_path: Path):
    stage = Stage({("a", NEW): Part(refuses="no such op")})
    played = play(tmp_path, plan([A, B], looks=(3,)), stage)
    assert stage.opened("a", NEW) == [0]
    assert stage.opened("a", OLD) == [0], "with nothing to compare it with"
    assert stage.opened("b", NEW) == [0, 2, 3]
    refused = [entry for entry in played.run.entries() if isinstance(entry, Ended) and entry.outcome == "refused"]
    assert [(entry.target, entry.case, entry.reason) for entry in refused] == [(NEW, "a", "no such op")]
    assert [arm.outcome for arm in played.evaluation.arms] == ["measured", "refused", "measured", "measured"]


@pytest.mark.parametrize("order", ["open", "burst", "close"])
def test_an_arm_that_dies_leaves_the_others_in_the_same_visit(tmp_path: Path, order: str):
    stage = Stage({("a", NEW): Part(dies=(order, 2))})
    played = play(tmp_path, plan([A, B], (OLD, NEW, THIRD), looks=(4,)), stage)
    assert stage.opened("a", NEW) == [0, 2]
    assert stage.opened("a", OLD) == stage.opened("a", THIRD) == [0, 2, 3, 4]
    assert stage.opened("b", NEW) == [0, 2, 3, 4]
    outcomes = {arm.key: (arm.outcome, arm.rounds) for arm in played.evaluation.arms}
    assert outcomes["a", NEW] == ("died", 1)
    assert {outcomes[arm] for arm in outcomes if arm != ("a", NEW)} == {("measured", 4)}
    (death,) = [entry for entry in played.run.entries() if isinstance(entry, Ended) and entry.outcome == "died"]
    assert (death.round, death.how, death.reason, death.log) == (2, "exit", "ended with exit code 3", "x")
    assert (death.failure, death.external) == ("workload", False)


def test_of_cases_that_find_their_container_full_the_first_has_filled_it(tmp_path: Path):
    """Containers are new in every round, and so is their memory."""

    def full(number: int) -> Part:
        return Part(noisy(10), dies=("open", number), how="raised", reason="OSError: [Errno 28] x")

    stage = Stage({("a", NEW): full(2), ("b", NEW): full(2), ("c", NEW): full(3)})
    played = play(tmp_path, plan([A, B, case("c")], looks=(4,), engine="docker"), stage)
    deaths = [entry for entry in played.run.entries() if isinstance(entry, Ended) and entry.outcome == "died"]
    assert [(death.failure, death.external) for death in deaths] == [
        ("workload", False), ("disk", True), ("workload", False),
    ]  # fmt: skip
    assert deaths[1].reason == f"OSError: [Errno 28] x; {deaths[0].case} had filled the /tmp of their container"
    assert deaths[2].case == "c"


def deaths_of(played: Play) -> list[Ended]:
    return [entry for entry in played.run.entries() if isinstance(entry, Ended) and entry.outcome == "died"]


@pytest.mark.parametrize("engine", ["venv", "docker"])
@pytest.mark.parametrize("order", ["open", "burst", "close"])
@pytest.mark.parametrize(("ms", "verdict"), [(20, "slower"), (10, "same")])
def test_a_worker_that_is_killed_once_costs_its_case_one_repeated_visit(
    tmp_path: Path, engine: str, order: str, ms: float, verdict: str
):
    stage = Stage({
        ("a", OLD): Part(even(10)),
        ("a", NEW): Part(even(ms), takes_its_worker_along=(order, 2), times=1),
    })  # fmt: skip
    played = play(tmp_path, plan([A, B], looks=(6,), engine=engine), stage)
    assert stage.opened("a", NEW) == stage.opened("a", OLD) == [0, 2, 2, 3, 4, 5, 6]
    assert stage.opened("b", NEW) == [0, 2, 3, 4, 5, 6]
    (death,) = deaths_of(played)
    assert (death.case, death.how, death.external) == ("a", "worker", True)
    assert death.reason.startswith("its worker died: killed by SIGKILL")
    (disturbed,) = [entry for entry in played.run.entries() if isinstance(entry, Disturbed)]
    assert (disturbed.case, disturbed.redone) == ("a", True)
    assert disturbed.cause == "a replicate or its worker was killed from outside"
    names = [stream.path.name for stream in played.run.worker_output.streams()]
    assert names == [f"{OLD}-{part}.arrow" for part in range(1, 7)] + [f"{NEW}-{part}.arrow" for part in range(1, 8)]
    assert {(arm.outcome, arm.rounds) for arm in played.evaluation.arms} == {("measured", 6)}
    assert {comparison.pair.case: comparison.verdict for comparison in played.evaluation.comparisons}[A] == verdict


@pytest.mark.parametrize("isolation", ["fork", "process"])
def test_a_replicate_that_is_killed_once_is_measured_again(tmp_path: Path, isolation: str):
    killed = Part(even(20), dies=("burst", 2), reason="killed by SIGTERM", times=1)
    stage = Stage({("a", OLD): Part(even(10)), ("a", NEW): killed})
    played = play(tmp_path, plan([A], looks=(6,), isolation=isolation), stage)
    assert stage.opened("a", NEW) == [0, 2, 2, 3, 4, 5, 6]
    assert [comparison.verdict for comparison in played.evaluation.comparisons] == ["slower"]


def test_an_arm_whose_worker_is_killed_in_the_pilot_has_its_pilot_again(tmp_path: Path):
    stage = Stage({("a", NEW): Part(takes_its_worker_along=("burst", 0), times=1)})
    played = play(tmp_path, plan([A], looks=(4,)), stage)
    assert stage.opened("a", NEW) == [0, 0, 2, 3, 4]
    assert {(arm.outcome, arm.rounds) for arm in played.evaluation.arms} == {("measured", 4)}


@pytest.mark.parametrize("order", ["open", "burst", "close"])
def test_a_worker_that_is_killed_twice_costs_its_arm_and_the_case_ends(tmp_path: Path, order: str):
    stage = Stage({("a", NEW): Part(takes_its_worker_along=(order, 2))})
    played = play(tmp_path, plan([A, B], looks=(4,)), stage)
    assert stage.opened("a", NEW) == stage.opened("a", OLD) == [0, 2, 2]
    assert stage.opened("b", NEW) == [0, 2, 3, 4]
    assert [(death.case, death.how, death.external) for death in deaths_of(played)] == [("a", "worker", True)] * 2
    assert not any(isinstance(entry, Lost) for entry in played.run.entries())
    outcomes = {arm.key: (arm.outcome, arm.rounds) for arm in played.evaluation.arms}
    assert outcomes["a", NEW] == ("died", 1)
    assert outcomes["b", OLD] == outcomes["b", NEW] == ("measured", 4)


def killing(number: int) -> Part:
    return Part(noisy(10), takes_its_worker_along=("open", number))


def test_a_version_whose_worker_keeps_dying_is_lost_and_the_others_go_on(tmp_path: Path):
    cases = [case(name) for name in "abcd"]
    stage = Stage({(name, NEW): killing(number) for number, name in enumerate("abc", 2)})
    played = play(tmp_path, plan(cases, (OLD, NEW, THIRD), looks=(5,)), stage)
    (lost,) = [entry for entry in played.run.entries() if isinstance(entry, Lost)]
    assert (lost.target, lost.reason) == (NEW, "it died 3 times")
    assert max(event.round for event in stage.log if event.version == NEW) == 4
    assert stage.opened("d", OLD) == stage.opened("d", THIRD) == [0, 2, 3, 4, 5]


def test_a_version_whose_worker_does_not_start_is_lost_before_the_pilot(tmp_path: Path):
    stage = Stage(broken=(NEW,))
    played = play(tmp_path, plan([A], (OLD, NEW, THIRD), looks=(2,)), stage)
    assert stage.opened("a", THIRD) == [0, 2]
    (lost,) = [entry for entry in played.run.entries() if isinstance(entry, Lost)]
    assert (lost.target, lost.stage) == (NEW, "start")
    assert [arm.outcome for arm in played.evaluation.arms] == ["measured", "died", "measured"]


def test_a_stream_that_its_worker_did_not_close_holds_all_that_was_measured(tmp_path: Path):
    played = play(tmp_path, plan([A], looks=(2,)), Stage(rude=(NEW,)))
    names = [stream.path.name for stream in played.run.worker_output.streams()]
    assert names == [f"{version}-{part}.arrow" for version in (OLD, NEW) for part in (1, 2)]
    assert {arm.rounds for arm in played.evaluation.arms} == {2}


def test_a_case_leaves_the_rotation_at_the_look_that_decides_it(tmp_path: Path):
    """`a` is clearly slower after six rounds; `b` stays noisy to the last."""
    stage = Stage({("a", NEW): SLOW, ("b", NEW): NOISY})
    played = play(tmp_path, plan([A, B], looks=(6, 10, 15)), stage)
    assert max(stage.opened("a", NEW)) == 6
    assert max(stage.opened("b", NEW)) == 15
    assert [(found.verdict, found.rounds) for found in played.evaluation.comparisons] == [
        ("slower", 6),
        ("inconclusive", 15),
    ]


def test_a_case_with_one_undecided_comparison_stays_with_all_its_arms(tmp_path: Path):
    stage = Stage({("a", NEW): SLOW, ("a", THIRD): NOISY})
    play(tmp_path, plan([A], (OLD, NEW, THIRD), looks=(6, 10)), stage)
    assert max(stage.opened("a", NEW)) == max(stage.opened("a", THIRD)) == 10


def test_a_run_ends_as_soon_as_nothing_is_left_to_decide(tmp_path: Path):
    stage = Stage({("a", NEW): SLOW})
    assert play(tmp_path, plan([A], looks=(6, 10, 15, 20)), stage).ending == ""
    assert max(event.round for event in stage.log) == 6


def test_what_can_no_more_be_decided_is_not_measured_to_the_end(tmp_path: Path):
    """A comparison needs both of its arms: with one refused, dead or lost, more rounds show nothing."""
    looks = (4, 6, 20)
    stages = {
        "refused": Stage({("a", NEW): Part(refuses="no such op")}),
        "dead": Stage({("a", OLD): NOISY, ("a", NEW): Part(dies=("burst", 5))}),
        "lost": Stage({("a", OLD): NOISY}, broken=(NEW,)),
    }
    last = {}
    for name, stage in stages.items():
        play(tmp_path / name, plan([A], looks=looks), stage)
        last[name] = max((event.round for event in stage.log), default=-1)
    assert last == {"refused": 0, "dead": 5, "lost": -1}


def test_what_one_version_can_answer_is_measured_without_the_other(tmp_path: Path):
    """Two cases that are compared with each other, a third that is not, and a version that does not start."""
    stage = Stage(broken=(OLD,))
    asked = plan([A, B, case("c")], pairs=(*map(version_pair, (A, B, case("c"))), case_pair(A, B)), looks=(4,))
    play(tmp_path, asked, stage)
    assert stage.opened("a", NEW) == stage.opened("b", NEW) == [0, 2, 3, 4]
    assert stage.opened("c", NEW) == []


def test_three_versions_of_which_one_is_lost_are_still_compared(tmp_path: Path):
    stage = Stage({("a", THIRD): NOISY}, broken=(OLD,))
    play(tmp_path, plan([A], (OLD, NEW, THIRD), looks=(4,)), stage)
    assert stage.opened("a", NEW) == stage.opened("a", THIRD) == [0, 2, 3, 4]


def test_cases_without_anything_to_compare_are_named(tmp_path: Path):
    view = Heard()
    stage = Stage({("a", NEW): Part(refuses="no such op")})
    play(tmp_path, plan([A, B], looks=(4,)), stage, view=view)
    assert "not measured any further, because nothing is left to compare: a" in view.lines


def test_a_case_that_all_versions_refuse_has_no_rounds(tmp_path: Path):
    stage = Stage({("a", version): Part(refuses="no") for version in (OLD, NEW)})
    assert play(tmp_path, plan([A]), stage).ending == ""
    assert {event.round for event in stage.log} == {0}


def test_isolated_every_replicate_has_a_worker_of_its_own(tmp_path: Path):
    """A stream a replicate; none of the workers outlives its replicate."""
    stage = Stage({("a", NEW): NOISY})
    played = play(tmp_path, plan([A], looks=(3,), isolation="process"), stage)
    names = {stream.path.name for stream in played.run.worker_output.streams()}
    assert names == {f"{version}-{part}.arrow" for version in (OLD, NEW) for part in range(1, 4)}
    assert played.evaluation.comparisons[0].rounds == 3
    assert stage.forks == [False] * 2 * 3


def test_isolated_a_death_costs_its_arm_alone_however_often(tmp_path: Path):
    cases = [case(name) for name in "abcd"]
    stage = Stage({(name, NEW): killing(number) for number, name in enumerate("abcd", 2)})
    played = play(tmp_path, plan(cases, looks=(5,), isolation="process"), stage)
    assert not any(isinstance(entry, Lost) for entry in played.run.entries())
    outcomes = {arm.key: (arm.outcome, arm.rounds) for arm in played.evaluation.arms}
    assert [outcomes[name, NEW] for name in "abcd"] == [("died", number - 1) for number in range(2, 6)]
    assert [outcomes[name, OLD] for name in "abcd"] == [("measured", number) for number in range(2, 6)]
