"""Linked cases that do not all fit are measured in sittings, each of them with what its cases are compared with."""

from pathlib import Path

import pytest

from orchestrator.machine.host import DisturbanceMonitor
from orchestrator.measure.capacity import Capacity
from orchestrator.model import Calibrated, Disturbed, Ended
from tests.support.actors import Part, Play, Stage, play
from tests.support.builders import NEW, OLD, case, case_pair, plan, version_pair

CASES = tuple(case("many", k=str(number)) for number in range(5))
PAIRS = (*map(version_pair, CASES), *(
    case_pair(CASES[0], other, version) for other in CASES[1:] for version in (OLD, NEW)
))  # fmt: skip
ASKED = plan(CASES, pairs=PAIRS, looks=(4,))
# One case takes longer than the other, and a version longer than the other.
PARTS = {
    (one.label, version): Part(lambda number, ms=ms * factor: ms * (1 + 0.01 * number))
    for one, ms in zip(CASES, (10.0, 11.0, 12.0, 13.0, 14.0), strict=True)
    for version, factor in ((OLD, 1.0), (NEW, 1.5))
}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr("orchestrator.measure.rounds.read_capacity", lambda plan, started: Capacity(4, 2, "memory"))
    return Stage(dict(PARTS))


def ratios(played: Play) -> dict[tuple[str, ...], float]:
    return {
        tuple(f"{arm.case}/{arm.target}" for arm in comparison.pair.arms): round(comparison.ratio or 0, 6)
        for comparison in played.evaluation.comparisons
    }


def test_no_more_arms_are_open_at_once_than_fit_and_ratios_are_the_same(tmp_path: Path, stage: Stage):
    played = play(tmp_path, ASKED, stage)
    opened = [sum(event.kind == "open" for event in opening) for opening in stage.openings()]
    assert max(opened) == 4
    # A pilot and four rounds, of four sittings each.
    assert len(opened) == 20
    assert all(comparison.rounds == 4 for comparison in played.evaluation.comparisons)
    assert played.evaluation.broken == ()
    monkeypatched = ratios(played)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.measure.rounds.read_capacity", lambda plan, started: Capacity(10, 5, ""))
        whole = Stage(dict(PARTS))
        assert ratios(play(tmp_path / "whole", ASKED, whole)) == monkeypatched
    assert {sum(event.kind == "open" for event in opening) for opening in whole.openings()} == {10}


def test_a_pilot_in_several_sittings_is_no_round(tmp_path: Path, stage: Stage):
    played = play(tmp_path, ASKED, stage)
    assert not any(entry.counts for entry in played.run.entries() if isinstance(entry, Calibrated))
    assert {arm.rounds for arm in played.evaluation.arms} == {4}


def test_a_disturbed_visit_is_repeated_with_all_of_its_sittings(
    tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    # In the pilot there are four sittings.
    causes = iter(["", "", "", "", "", "somebody else"])
    monkeypatch.setattr(DisturbanceMonitor, "disturbance", lambda witness, meanwhile: next(causes, ""))
    played = play(tmp_path, ASKED, stage)
    entries = list(played.run.entries())
    disturbed = [entry for entry in entries if isinstance(entry, Disturbed)]
    assert {entry.case for entry in disturbed} == {one.label for one in CASES}
    assert all(entry.redone for entry in disturbed)
    baseline = next(entry for entry in disturbed if entry.case == CASES[0].label)
    assert len(baseline.replicates) == 8
    of_round = {
        entry.replicate for entry in entries
        if isinstance(entry, Ended) and entry.round == 1 and entry.case == CASES[0].label
    }  # fmt: skip
    assert set(baseline.replicates) == set(sorted(of_round)[:8])
    assert {arm.rounds for arm in played.evaluation.arms} == {4}


def test_an_arm_that_dies_in_a_sitting_is_not_opened_in_the_next(tmp_path: Path, stage: Stage):
    baseline = CASES[0].label
    stage.parts[baseline, NEW] = Part(dies=("burst", 2))
    played = play(tmp_path, ASKED, stage)
    assert stage.opened(baseline, NEW).count(2) == 1
    outcomes = {arm.key: arm.outcome for arm in played.evaluation.arms}
    assert [key for key, outcome in outcomes.items() if outcome == "died"] == [(baseline, NEW)]
