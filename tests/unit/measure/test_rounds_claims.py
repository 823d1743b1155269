"""What a run does for its claims: it goes on until they are settled, and times longer what is said to be the same."""

from dataclasses import replace
from pathlib import Path

from orchestrator.measure.pilot import patient_cases
from orchestrator.model import Calibrated, Plan
from orchestrator.stats.calibrate import FEWEST_BURSTS, MOST_BURSTS
from tests.support.actors import Part, Stage, play
from tests.support.builders import NEW, OLD, case, claim, expectation, plan, version_pair

A, B = case("a"), case("b")


def claimed(effect: str, margin: float, **changes: object) -> Plan:
    """Of `a`; of `b` that it is slower, and it is not."""
    said, other = replace(version_pair(A), margin=margin), version_pair(B)
    claims = (
        claim(expectation(pair=said, effect=effect, published=None)),
        claim(expectation(pair=other, effect="slower", published=None)),
    )
    return plan([A, B], pairs=(said, other), claims=claims, **changes)


def test_what_is_slower_may_yet_be_the_same_within_what_a_claim_allows(tmp_path: Path):
    """Some 30 % more, where 25 % are allowed: after six rounds it is slower, and the claim is open."""
    stages = [Stage({("a", NEW): Part(lambda number: 13 * (1.035 if number % 4 < 2 else 0.965))}) for _ in range(2)]
    six = play(tmp_path / "six", claimed("same", 0.25, looks=(6,)), stages[0]).evaluation.comparisons[0]
    assert six.verdict == "slower"
    assert six.ci_low < 1.25
    play(tmp_path / "ten", claimed("same", 0.25, looks=(6, 10)), stages[1])
    assert [max(stages[1].opened(case, NEW)) for case in ("a", "b")] == [10, 6]


def test_a_claim_that_is_settled_is_measured_no_more(tmp_path: Path):
    for effect, ms in (("slower", 20.0), ("same", 20.0), ("same", 10.0)):
        stage = Stage({("a", NEW): Part(lambda number, ms=ms: ms)})
        play(tmp_path / f"{effect}-{ms}", claimed(effect, 0.25, looks=(6, 10)), stage)
        assert max(stage.opened("a", NEW)) == 6


def test_what_is_said_to_take_the_same_time_is_timed_longer(tmp_path: Path):
    played = play(tmp_path, claimed("same", 0.05, looks=(2,)), Stage())
    efforts = [entry for entry in played.run.entries() if isinstance(entry, Calibrated)]
    bursts = {(entry.case, entry.target): entry.bursts for entry in efforts}
    assert bursts == {
        (A.label, OLD): MOST_BURSTS,
        (A.label, NEW): MOST_BURSTS,
        (B.label, OLD): FEWEST_BURSTS,
        (B.label, NEW): FEWEST_BURSTS,
    }


def test_only_times_that_are_said_to_be_the_same_ask_for_patience():
    assert patient_cases(claimed("same", 0.05)) == {A.label}
    assert patient_cases(claimed("slower", 2.0)) == frozenset()
    traces = replace(version_pair(A), metric="traces")
    counted = claim(expectation(pair=traces, effect="same", published=None))
    assert patient_cases(plan([A], pairs=(traces,), claims=(counted,))) == frozenset()
