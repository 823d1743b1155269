"""Rounds that are shorter than the pilot suggests, where the budget would hold too few of them for a verdict."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.contract import PILOT_ROUND
from orchestrator.model import Calibrated, Metric
from orchestrator.results.endings import read_endings
from orchestrator.results.past import read_past
from orchestrator.stats.calibrate import FEWEST_BURSTS, MOST_BURSTS, MOST_SLOW_BURSTS
from orchestrator.stats.looks import FEWEST_ROUNDS
from tests.support.actors import Part, Play, Stage, play
from tests.support.builders import NEW, OLD, case, plan
from tests.support.clock import Clock
from tests.support.heard import Heard

LOOKS = (4, 6, 8, 10, 13, 16, 20)
# Of a replicate: it opens, and each of its bursts is a lead-in and a call of this length.
OPEN_S, CALL_S = 0.5, 0.05
# By how much the bursts of a pilot are apart, so that rounds should have as many as they may.
APART = 0.4
# A round of one case in two versions, as short as the pilot, and with as many bursts as its scatter suggests.
SHORT_S, FULL_S = (2 * (OPEN_S + bursts * 2 * CALL_S) for bursts in (FEWEST_BURSTS, MOST_BURSTS))
# A slowdown, with which rounds take less than this many times as long.
SLOWDOWN, SLOWER = 1.5, 1.4
# A replicate that takes long to open, and whose slow calls have two speeds: their scatter is worth more of them.
SLOW_OPEN_S, SLOW_CALL_S, SLOW_APART = 8.0, 0.2, 0.2
FEW_S, MANY_S = (2 * (SLOW_OPEN_S + bursts * 2 * SLOW_CALL_S) for bursts in (MOST_SLOW_BURSTS, MOST_BURSTS))
SAID = "rounds are shorter than the pilot suggests, because the budget would hold too few of them"


def stage_of(
    clock: Clock, names: str, ratio: float, open_s: float = OPEN_S, call_s: float = CALL_S, between: float = APART
) -> Stage:
    stage, orders = Stage(), Counter[str]()

    def part(version: str, factor: float) -> Part:
        def ms(number: int) -> float:
            orders[version] += 1
            apart = between * (-1) ** orders[version] if number == PILOT_ROUND else 0.0
            rounds_apart = 0.005 * (-1) ** number if version == NEW else 0.0
            clock.now += {"open": open_s, "burst": 2 * call_s}.get(stage.log[-1].kind, 0.0)
            return 1000 * call_s * factor * math.exp(apart + rounds_apart)

        return Part(ms)

    stage.parts = {
        (name, version): part(version, ratio if version == NEW else 1.0) for name in names for version in (OLD, NEW)
    }
    return stage


def measure(
    folder: Path, stage: Stage, budget_s: float | None, names: str = "a", view: Heard | None = None,
    metrics: tuple[Metric, ...] = ("time",), looks: tuple[int, ...] = LOOKS,
) -> Play:  # fmt: skip
    asked = plan([case(name) for name in names], budget_s=budget_s, looks=looks, metrics=metrics)
    return play(folder, asked, stage, view=view, started=0.0)


def bursts_of(stage: Stage, version: str = NEW) -> dict[int, int]:
    """Return how many bursts a version made, by round."""
    return Counter(event.round for event in stage.log if event.kind == "burst" and event.version == version)


def efforts(played: Play) -> Sequence[Calibrated]:
    return [entry for entry in played.run.entries() if isinstance(entry, Calibrated)]


@pytest.mark.parametrize(("ratio", "verdict"), [(SLOWDOWN, "slower"), (1.0, "same")])
def test_a_budget_that_holds_only_short_rounds_gets_them_and_decides(
    tmp_path: Path, clock: Clock, ratio: float, verdict: str
):
    """The pilot is the first of them. Four full rounds, which it is none of, would take twice the budget."""
    budget_s = 4.5 * SHORT_S
    assert 1.8 * budget_s < SHORT_S + FEWEST_ROUNDS * FULL_S
    played = measure(tmp_path, stage := stage_of(clock, "a", ratio), budget_s, view=(view := Heard()))
    assert set(bursts_of(stage).values()) == {FEWEST_BURSTS}
    assert stage.opened("a", NEW) == [0, 2, 3, 4]
    assert {arm.rounds for arm in played.evaluation.arms} == {4}
    assert view.lines.count(SAID) == 1
    assert [comparison.verdict for comparison in played.evaluation.comparisons] == [verdict]


@pytest.mark.parametrize("budget_s", [None, SHORT_S + 4.5 * SLOWER * FULL_S, 20 * FULL_S])
def test_a_budget_that_holds_enough_full_rounds_and_none_at_all_change_nothing(
    tmp_path: Path, clock: Clock, budget_s: float | None
):
    played = measure(tmp_path, stage := stage_of(clock, "a", SLOWDOWN), budget_s, view=(view := Heard()))
    assert bursts_of(stage)[PILOT_ROUND] == FEWEST_BURSTS
    assert {number for round, number in bursts_of(stage).items() if round} == {MOST_BURSTS}
    assert SAID not in view.lines
    assert {entry.counts for entry in efforts(played)} == {False}
    assert [comparison.verdict for comparison in played.evaluation.comparisons] == ["slower"]


@pytest.mark.parametrize(("ratio", "verdict"), [(SLOWDOWN, "slower"), (1.0, "same")])
@pytest.mark.parametrize(
    ("budget_s", "more"),
    [
        pytest.param(FEW_S + 5 * MANY_S, False, id="more rounds instead"),
        pytest.param(FEW_S + 9 * SLOWER * MANY_S, True, id="enough rounds"),
    ],
)
def test_slow_calls_that_scatter_are_more_where_the_budget_holds_enough_rounds(
    tmp_path: Path, clock: Clock, ratio: float, verdict: str, budget_s: float, more: bool
):
    stage = stage_of(clock, "a", ratio, SLOW_OPEN_S, SLOW_CALL_S, SLOW_APART)
    played = measure(tmp_path, stage, budget_s, view=(view := Heard()), looks=(4, 6, 8))
    [bursts] = {number for round, number in bursts_of(stage, OLD).items() if round}
    assert (bursts > MOST_SLOW_BURSTS) is more
    assert (SAID in view.lines) is not more
    assert [comparison.verdict for comparison in played.evaluation.comparisons] == [verdict]


def test_a_budget_too_short_for_a_verdict_holds_as_many_rounds_as_it_can(tmp_path: Path, clock: Clock):
    played = measure(tmp_path, stage_of(clock, "a", SLOWDOWN), 3.2 * SHORT_S)
    assert {arm.rounds for arm in played.evaluation.arms} == {3}
    assert [comparison.missing for comparison in played.evaluation.comparisons] == [1]
    assert clock.now <= 3.2 * SHORT_S * 1.05


def test_more_cases_come_to_a_verdict_where_rounds_are_short(tmp_path: Path, clock: Clock):
    """The budget holds four short rounds of four cases, or the pilots and four full rounds of one."""
    played = measure(tmp_path, stage_of(clock, "abcd", SLOWDOWN), 4 * 5 * SHORT_S, "abcd", looks=(4,))
    assert [comparison.verdict for comparison in played.evaluation.comparisons] == ["slower"] * 4


def test_visits_for_first_calls_alone_are_left_out_before_bursts(tmp_path: Path, clock: Clock):
    """With them, a round takes two openings more; a budget that then holds few rounds is for rounds."""
    ample, few, tight = (SHORT_S + count * (FULL_S + 2 * OPEN_S) for count in (8.9, 6.9, 4.1))
    for name, budget_s, once in (("ample", ample, 1), ("few", few, 0), ("tight", tight, 0)):
        stage = stage_of(clock, "a", 1.0)
        played = measure(tmp_path / name, stage, budget_s, metrics=("first",), looks=(4,))
        assert {entry.once for entry in efforts(played)[-2:]} == {once}
        assert any(event.once for event in stage.log) is bool(once)
        assert {number for round, number in bursts_of(stage).items() if round} == {MOST_BURSTS}
        assert {arm.rounds for arm in played.evaluation.arms} == {4}
        clock.now = 0.0


@pytest.mark.parametrize(("looks", "bursts"), [((2,), MOST_BURSTS), ((4,), FEWEST_BURSTS)])
def test_rounds_that_were_asked_for_and_lead_to_no_verdict_are_not_shortened(
    tmp_path: Path, clock: Clock, looks: tuple[int, ...], bursts: int
):
    stage = stage_of(clock, "a", 1.0)
    measure(tmp_path, stage, SHORT_S + 2.5 * SLOWER * FULL_S, looks=looks)
    assert {number for round, number in bursts_of(stage).items() if round} == {bursts}


def test_a_run_that_is_continued_keeps_its_short_rounds_and_its_pilot(tmp_path: Path, clock: Clock):
    played = measure(tmp_path, stage_of(clock, "a", 1.0), 3.2 * SHORT_S)
    entries = list(played.run.entries())
    full, short = efforts(played)[:2], efforts(played)[2:]
    assert [(entry.bursts, entry.counts) for entry in (*full, *short)] == [(MOST_BURSTS, False)] * 2 + [
        (FEWEST_BURSTS, True)
    ] * 2
    past = read_past(played.run.read_plan(), entries)
    assert {effort.bursts for effort in past.progress.efforts.values()} == {FEWEST_BURSTS}
    assert past.progress.rounds == {"a": 3}
    assert len(read_endings(played.run).counted) == 2
