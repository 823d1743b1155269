"""How long a program is measured: its usual time, and no longer than more rounds can decide something."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.actors import Part, Play, Stage, play
from tests.support.builders import NEW, OLD, case, plan
from tests.support.clock import Clock
from tests.support.heard import Told

LOOKS = (4, 6, 8, 10, 13, 16, 20)
PROGRAM = case("python train.py")


def measure(folder: Path, stage: Stage, view: Told, **changes: object) -> Play:
    asked = plan([PROGRAM], program=("python", "train.py"), **{"looks": LOOKS, "budget_s": None, **changes})
    return play(folder, asked, stage, view=view, started=0.0)


def rounds_of(played: Play) -> int:
    return next(arm.rounds for arm in played.evaluation.arms if arm.target == NEW)


def wild(number: int) -> float:
    """Rounds that scatter so much that twenty of them show nothing."""
    return 10.0 * (4.0 if number % 2 else 0.25)


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [
        (1.0, "15 min"),
        (20.0, "15 min"),
        # Four rounds take 20 minutes, and a tenth is added.
        (300.0, "22 min"),
    ],
)
def test_a_program_without_a_budget_gets_a_quarter_of_an_hour_or_four_rounds(
    tmp_path: Path, clock: Clock, seconds: float, limit: str
):
    view = Told()
    played = measure(tmp_path, clock.stage({PROGRAM.workload: seconds}), view)
    [line] = [line for line in view.lines if line.startswith("without --budget, this program is measured for ")]
    assert line.split(" for ")[1].startswith(limit)
    assert rounds_of(played) >= 4


def test_a_budget_or_a_number_of_rounds_is_kept_as_it_was_given(tmp_path: Path, clock: Clock):
    for name, changes in (("budget", {"budget_s": 7200.0}), ("rounds", {"looks": (6,)})):
        view = Told()
        measure(tmp_path / name, clock.stage({PROGRAM.workload: 1.0}), view, **changes)
        assert not any(line.startswith("without --budget") for line in view.lines)


def test_nothing_is_promised_of_a_program_that_ran_once(tmp_path: Path, clock: Clock):
    view = Told()
    measure(tmp_path, clock.stage({PROGRAM.workload: 20.0}), view)
    [line] = [line for line in view.lines if line.startswith("a round takes")]
    assert "what they can show is known after the first look" in line
    assert "differences from about" not in line


def test_a_program_that_more_rounds_cannot_decide_ends_at_a_look_and_says_so(tmp_path: Path, clock: Clock):
    played = measure(tmp_path, clock.stage({PROGRAM.workload: 20.0}, times=wild), Told())
    assert rounds_of(played) in LOOKS[:-1]
    assert "would decide nothing" in played.ending
    assert "--keep-going continues anyway" in played.ending


def test_one_that_differs_is_measured_until_it_is_decided(tmp_path: Path, clock: Clock):
    stage = clock.stage({PROGRAM.workload: 20.0}, times=lambda number: 20.0 + number % 3)
    played = measure(tmp_path, stage, Told())
    assert {each.verdict for each in played.evaluation.comparisons} == {"slower"}
    assert played.ending == ""
    assert OLD in {arm.target for arm in played.evaluation.arms}


def test_it_is_measured_on_if_the_user_says_so(tmp_path: Path, clock: Clock):
    stage = clock.stage({PROGRAM.workload: 20.0}, times=wild)
    asked = plan([PROGRAM], program=("python", "train.py"), looks=LOOKS, budget_s=None)
    played = play(tmp_path, asked, stage, view=Told(), started=0.0, keep_going=True)
    assert rounds_of(played) == LOOKS[-1]


def test_workloads_are_measured_to_the_end_of_their_looks(tmp_path: Path, clock: Clock):
    stage = Stage({("a", NEW): Part(wild)})
    played = play(tmp_path, replace(plan([case("a")], budget_s=None), looks=LOOKS), stage, view=Told(), started=0.0)
    assert rounds_of(played) == LOOKS[-1]


def test_a_program_goes_on_for_a_metric_that_the_user_asked_rounds_for(tmp_path: Path, clock: Clock):
    stage = clock.stage({PROGRAM.workload: 20.0}, times=wild)
    played = measure(tmp_path, stage, Told(), metrics=("cpu",), decides=("cpu",))
    assert {each.verdict for each in played.evaluation.metrics["cpu"]} == {"inconclusive"}
    assert "would decide nothing" not in played.ending
    assert rounds_of(played) == LOOKS[-1]
