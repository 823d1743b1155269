"""In a run of many targets, those whose verdicts have come get no more rounds; the others go on."""

from pathlib import Path

import pytest

from orchestrator.measure.rotation import MATRIX_FROM
from tests.support.actors import Part, Stage, play
from tests.support.builders import case, plan

A = case("a")
VERSIONS = tuple(f"{number}.0.0" for number in range(1, MATRIX_FROM + 1))
LOOKS = (4, 6, 8)
# Versions alone would be a trend.
CHANGED = ("2.0.0 keras==3.8.0",)


def noisy(number: int) -> float:
    return 10.0 * (2.5 if max(number, 1) % 2 else 0.4)


def rounds_of(stage: Stage, version: str) -> int:
    return max(stage.opened(A.label, version))


@pytest.mark.parametrize("count", [MATRIX_FROM - 1, MATRIX_FROM])
def test_a_target_that_is_decided_leaves_only_a_large_run(tmp_path: Path, count: int):
    versions = VERSIONS[:count]
    stage = Stage({(A.label, versions[1]): Part(lambda number: 20.0), (A.label, versions[2]): Part(noisy)})
    done = play(tmp_path, plan([A], versions, looks=LOOKS, definitions=CHANGED), stage)
    verdicts = {str(each.pair.arms[1].target): each.verdict for each in done.evaluation.comparisons}
    assert verdicts == {versions[1]: "slower", versions[2]: "inconclusive", **dict.fromkeys(versions[3:], "same")}
    # The baseline and what is open go on.
    assert (rounds_of(stage, versions[0]), rounds_of(stage, versions[2])) == (8, 8)
    left = count == MATRIX_FROM
    assert rounds_of(stage, versions[1]) == (4 if left else 8)


def test_a_comparison_that_ended_early_keeps_the_verdict_of_its_look(tmp_path: Path):
    """The arm becomes as quick as the others after its verdict; nothing of that is measured."""
    late = Part(lambda number: 20.0 if number <= 4 else 10.0)
    stage = Stage({(A.label, VERSIONS[1]): late, (A.label, VERSIONS[2]): Part(noisy)})
    done = play(tmp_path, plan([A], VERSIONS, looks=LOOKS, definitions=CHANGED), stage)
    [ended] = [each for each in done.evaluation.comparisons if each.pair.arms[1].target == VERSIONS[1]]
    assert (ended.verdict, ended.rounds) == ("slower", 4)


def test_a_trend_measures_all_versions_to_the_end_for_the_sake_of_neighbours(tmp_path: Path):
    stage = Stage({(A.label, VERSIONS[1]): Part(lambda number: 20.0), (A.label, VERSIONS[2]): Part(noisy)})
    play(tmp_path, plan([A], VERSIONS, looks=LOOKS), stage)
    assert {rounds_of(stage, version) for version in VERSIONS} == {8}
