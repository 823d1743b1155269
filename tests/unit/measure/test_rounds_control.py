"""The control arm: the baseline against itself, told on top where it is not the same."""

from pathlib import Path

from orchestrator.model import Target
from orchestrator.plan.pairs import plan_pairs
from tests.support.actors import Part, Stage, play
from tests.support.builders import NEW, OLD, case, plan, targets, workload

A = case("a")
TWICE = Target(OLD, control=True)


def test_control_is_compared_with_the_baseline_and_with_nothing_inside_a_version() -> None:
    one, other = case("w", mode="eager"), case("w", mode="graph")
    known = {"w": workload("w", params={"mode": ("eager", "graph")}, comparisons={"mode": "eager"})}
    pairs = plan_pairs([one, other], targets((OLD, TWICE, NEW)), known)
    assert {pair.candidate for pair in pairs if pair.kind == "target"} == {TWICE, NEW}
    assert {pair.target for pair in pairs if pair.kind == "case"} == {OLD, NEW}


def test_a_sound_machine_has_nothing_to_say_of_its_control(tmp_path: Path) -> None:
    played = play(tmp_path, plan([A], (OLD, TWICE, NEW), looks=(6,)), Stage())
    assert not [warning for warning in played.evaluation.warnings if "control" in warning.lower()]
    verdicts = {comparison.pair.candidate: comparison.verdict for comparison in played.evaluation.comparisons}
    assert verdicts[TWICE] == "same"


def test_a_failed_control_is_the_first_thing_told(tmp_path: Path) -> None:
    stage = Stage({("a", TWICE): Part(lambda number: 20.0 + number / 100)})
    played = play(tmp_path, plan([A], (OLD, TWICE, NEW), looks=(6,)), stage)
    assert played.evaluation.warnings[0].startswith("THE CONTROL ARM FAILED in 1 of 1 cases: 1.0.0 against itself")


def test_an_undecided_control_is_told_as_noise(tmp_path: Path) -> None:
    stage = Stage({("a", TWICE): Part(lambda number: 10.0 * (2.5 if number % 2 else 0.4))})
    played = play(tmp_path, plan([A], (OLD, TWICE, NEW), looks=(6,)), stage)
    assert played.evaluation.warnings[0].startswith("the control arm is not shown to be the same in 1 of 1 cases")
