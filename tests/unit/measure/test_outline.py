"""How long a run takes is estimated beforehand."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.catalog.workloads import suite
from orchestrator.measure.outline import outline
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions, check_request
from orchestrator.stats.looks import FEWEST_ROUNDS
from tests.support.builders import claim, expectation, version_pair

PROGRAM = RunOptions(
    versions=("1.14", "2.0"), own_workloads=Path(__file__).parent, program=("python", Path(__file__).name)
)
SMOKE = RunOptions(versions=("1.14", "2.0"), suite="smoke", selected=("power[style=eager]",))


def test_how_long_it_takes_is_said_beforehand_and_of_claims_only_what_it_takes_at_most():
    planned = check_request(SMOKE)
    selection = planned.selection
    open_ended = replace(planned, selection=replace(selection, budget_s=None))
    assert "1 case x 2 versions, up to 20 rounds, about 0.4 to 1.3 min" in outline(open_ended, "venv")
    within = "up to 20 rounds (40 where they are noisy), at most"
    assert f"{within} 0.2 min" in outline(check_request(replace(SMOKE, budget_s=12.0)), "venv")
    assert "6 rounds, about 0.5 min" in outline(check_request(replace(SMOKE, rounds=6)), "venv")
    said = version_pair(selection.cases[0], *selection.targets)
    claims = (claim(expectation(pair=said, effect="same", published=None), cases=selection.cases),)
    of_claims = check_request(RunOptions(claims=claims, budget_s=1140.0))
    assert f"1 claim, 2 arms in 2 versions, {within} 19 min" in outline(of_claims, "venv")


def test_on_a_gpu_each_replicate_also_starts_cuda():
    planned = check_request(replace(SMOKE, rounds=6))
    on_gpu = replace(planned, options=replace(planned.options, environments=EngineOptions(gpu=True)))
    assert "6 rounds, about 1.3 min" in outline(on_gpu, "venv")
    quick = suite("quick")
    assert quick.budget_s(4, 2, "gpu") == 2 * (quick.budget_s(4, 2) or 0)


def test_the_time_of_a_program_is_known_after_its_first_round():
    text = outline(check_request(PROGRAM), "venv")
    assert "1 case x 2 versions, up to 20 rounds, each with one run of the program per version" in text
    assert "(the first shows how long it takes), until all comparisons are decided or for 15 min" in text
    assert " min" not in outline(check_request(replace(PROGRAM, rounds=6)), "venv")
    assert "at most 10 min" in outline(check_request(replace(PROGRAM, budget_s=600.0)), "venv")


@pytest.mark.parametrize(
    ("rounds", "too_few"), [(2, True), (FEWEST_ROUNDS - 1, True), (FEWEST_ROUNDS, False), (None, False)]
)
def test_rounds_that_lead_to_no_verdict_are_announced_before_the_first(rounds: int | None, too_few: bool):
    announced = outline(check_request(replace(SMOKE, rounds=rounds)), "venv")
    assert (f"{rounds} rounds (too few for a verdict, which takes {FEWEST_ROUNDS})" in announced) == too_few


def test_what_many_comparisons_can_show_is_said_where_there_are_many():
    planned = check_request(replace(SMOKE, versions=("1.14", "1.15", "2.0", "2.1", "2.2", "2.3")))
    assert "5 comparisons share the allowed error" in outline(planned, "venv")
    # Claims may be about results alone.
    none = replace(planned, selection=replace(planned.selection, pairs=()))
    assert "share the allowed error" not in outline(none, "venv")
