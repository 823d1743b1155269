"""Budgets that hold few rounds: what is said before they are spent, what they decide, and what they show otherwise."""

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.machine.host import DisturbanceMonitor
from orchestrator.model import Comparison
from orchestrator.reports import matrix, table
from orchestrator.reports.json import as_json
from orchestrator.reports.summary import sentences
from orchestrator.stats.looks import FEWEST_ROUNDS
from tests.support.actors import Part, Play, Stage, play
from tests.support.builders import NEW, OLD, case, plan
from tests.support.clock import Clock
from tests.support.heard import Heard

LOOKS = (4, 6, 8, 10, 13, 16, 20)
MILD = 0.25


def scatter(*key: object, spread: float = MILD) -> float:
    """Return a factor that is always the same for a key."""
    return math.exp(random.Random("/".join(map(str, key))).gauss(0, spread))


def stage_of(clock: Clock, takes: dict[str, float | Callable[[int], float]], ratio: float, seed: int = 0) -> Stage:
    """Let the later version take so many times as long, but for a scatter of 5 % between rounds."""
    stage = clock.stage(takes, times=lambda number: 10.0 * ratio * scatter(seed, "time", number, spread=0.05))
    stage.parts.update({(name, OLD): Part() for name in takes})
    return stage


def measure(folder: Path, stage: Stage, budget_s: float, names: str, view: Heard | None = None) -> Play:
    asked = plan([case(name) for name in names], budget_s=budget_s, looks=LOOKS)
    return play(folder, asked, stage, view=view, started=0.0)


def rounds_of(played: Play) -> dict[str, int]:
    return {arm.case.label: arm.rounds for arm in played.evaluation.arms if arm.target == NEW}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("ratio", [10.0, 2.2, 1.0])
def test_a_budget_that_holds_the_fewest_rounds_of_one_case_decides_a_large_difference(
    tmp_path: Path, clock: Clock, seed: int, ratio: float
):
    """On a machine whose rounds take a quarter more or less, and with up to four cases of 1 to 20 s."""
    draw = random.Random(seed)
    names = "abcd"[: draw.randint(1, 4)]
    usual = {name: math.exp(draw.uniform(0, 3)) for name in names}
    start_s = draw.choice([0.0, 1.0, 3.0])

    def takes(name: str) -> Callable[[int], float]:
        return lambda number: usual[name] * scatter(seed, name, number)

    def start(version: str) -> None:
        clock.now += start_s / 2

    stage = stage_of(clock, {name: takes(name) for name in names}, ratio, seed)
    stage.on_start = start
    quickest = takes(min(names, key=usual.__getitem__))
    pilot_s = start_s + sum(takes(name)(0) for name in names)
    needed_s = pilot_s + sum(start_s + quickest(number) for number in range(1, FEWEST_ROUNDS + 1))
    played = measure(tmp_path, stage, needed_s * draw.uniform(1.0, 1.5), names)
    verdicts = [comparison.verdict for comparison in played.evaluation.comparisons]
    assert max(rounds_of(played).values()) >= FEWEST_ROUNDS
    assert ("slower" in verdicts) is (ratio > 1)
    assert "faster" not in verdicts


@pytest.mark.parametrize(
    ("budget_s", "rounds"), [(35.0, {"a": 2, "b": 1}), (45.0, {"a": 4, "b": 0}), (55.0, {"a": 4, "b": 1})]
)
def test_the_fewest_rounds_of_one_case_come_before_two_of_each(
    tmp_path: Path, clock: Clock, budget_s: float, rounds: dict[str, int]
):
    """Each pilot is a round and takes ten seconds, as each round does. With 35 s none can be judged."""
    played = measure(tmp_path, stage_of(clock, {"a": 10.0, "b": 10.0}, 10.0), budget_s, "ab")
    assert rounds_of(played) == rounds


def of_two_rounds(folder: Path, clock: Clock, ratio: float, view: Heard | None = None) -> Play:
    played = measure(folder, stage_of(clock, {"a": 20.0}, ratio), 50.0, "a", view)
    assert rounds_of(played) == {"a": 2}
    return played


def shown(played: Play) -> tuple[Comparison, dict[str, object], str, str]:
    """Return the only comparison, what JSON has of it, the summary, and the row of its case in both tables."""
    (comparison,) = played.evaluation.comparisons
    (as_object,) = json.loads(as_json(played.evaluation))["comparisons"]
    texts = (table.render_details(played.evaluation), matrix.render_matrix(played.evaluation))
    rows = [
        line for text in texts for line in text.splitlines() if "x" in line and (NEW in line or line.startswith(" a "))
    ]
    (sentence,) = sentences(played.evaluation)
    return comparison, as_object, sentence, "\n".join(line for line in rows if line != sentence)


@pytest.mark.parametrize("ratio", [10.0, 1.0])
def test_rounds_that_are_too_few_show_their_ratio_and_no_verdict(tmp_path: Path, clock: Clock, ratio: float):
    comparison, as_object, sentence, rows = shown(of_two_rounds(tmp_path, clock, ratio))
    assert (comparison.verdict, comparison.rounds, comparison.missing) == ("inconclusive", 2, FEWEST_ROUNDS - 2)
    assert comparison.ratio == pytest.approx(ratio, rel=0.1)
    so_far = f"{comparison.ratio:.3g}x so far (2 rounds; 2 more needed for a verdict)"
    assert as_object["reason"] == f"postponed: too few rounds fit into the budget; --resume measures it; {so_far}"
    assert (as_object["verdict"], as_object["missing_rounds"]) == ("inconclusive", 2)
    assert sentence.endswith(f"1 with too few rounds for a verdict (in a: {so_far}).")
    # In the table of details, and in the matrix next to the ratio.
    assert rows.count("2 of 4 rounds") == 2
    assert not any(word in rows for word in ("slower", "faster", "same", "▲", "▼", "="))


def test_a_single_round_has_a_ratio(tmp_path: Path, clock: Clock):
    played = measure(tmp_path, stage_of(clock, {"a": 30.0}, 10.0), 50.0, "a")
    comparison, as_object, _, rows = shown(played)
    assert (comparison.rounds, comparison.missing, as_object["ci_low"]) == (1, 3, None)
    assert comparison.so_far == f"{comparison.ratio:.3g}x so far (1 round; 3 more needed for a verdict)"
    assert "? 1 of 4 rounds" in rows


@pytest.mark.parametrize("ratio", [10.0, 1.0])
def test_before_the_first_round_the_ratio_of_the_pilot_is_shown_as_that(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, ratio: float
):
    """A pilot that was disturbed is no round."""
    monkeypatch.setattr(DisturbanceMonitor, "disturbance", lambda witness, meanwhile: "somebody else")
    played = measure(tmp_path, stage_of(clock, {"a": 100.0}, ratio), 50.0, "a")
    comparison, as_object, sentence, rows = shown(played)
    assert (comparison.ratio, comparison.rounds, comparison.missing) == (None, 0, FEWEST_ROUNDS)
    assert as_object["pilot_ratio"] == pytest.approx(ratio, rel=0.2)
    told = f"{as_object['pilot_ratio']:.3g}x in the pilot (4 rounds needed for a verdict)"
    assert str(as_object["reason"]).endswith(told)
    assert told in sentence
    assert "? pilot only" in rows


def test_what_a_budget_cannot_decide_is_said_before_it_is_spent(tmp_path: Path, clock: Clock):
    view = Heard()
    of_two_rounds(tmp_path / "one", clock, 10.0, view)
    clock.now = 0.0
    assert view.lines[0] == (
        "a round takes about 22 s: 2 fit into the budget of 50 s; a verdict needs 4, about 1 min 26 s: use --budget 3m"
    )
    several = Heard()
    measure(tmp_path / "several", stage_of(clock, {"a": 30.0, "b": 2.0}, 10.0), 60.0, "ab", several)
    assert "; a verdict needs 4: 1 of 2 cases come first and get them; all take about 2 min " in several.lines[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_budget_that_is_proposed_decides(tmp_path: Path, clock: Clock, seed: int):
    view = Heard()
    stage = stage_of(clock, {"a": lambda number: 20.0 * scatter(seed, number)}, 10.0)
    measure(tmp_path / "short", stage, 50.0, "a", view)
    number, unit = re.search(r"use --budget (\d+)([sm])$", view.lines[0]).groups()
    clock.now = 0.0
    played = measure(tmp_path / "long", stage, int(number) * (60.0 if unit == "m" else 1.0), "a")
    assert [comparison.verdict for comparison in played.evaluation.comparisons] == ["slower"]
