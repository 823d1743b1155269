"""How long a run takes is estimated beforehand."""

from dataclasses import replace

from orchestrator.measure.outline import outline
from orchestrator.model import Expectation
from orchestrator.plan.request import RunOptions, check_request
from tests.support.builders import claim, version_pair

SMOKE = RunOptions(versions=("1.14", "2.0"), suite="smoke", selected=("power[style=eager]",))


def test_how_long_it_takes_is_said_beforehand_and_of_claims_only_what_it_takes_at_most():
    planned = check_request(SMOKE)
    selection = planned.selection
    open_ended = replace(planned, selection=replace(selection, budget_s=None))
    assert "1 case x 2 versions, up to 20 rounds, about 0.3 to 1.3 min" in outline(open_ended, "venv")
    assert "up to 20 rounds, at most 0.2 min" in outline(check_request(replace(SMOKE, budget_s=12.0)), "venv")
    assert "6 rounds, about 0.4 min" in outline(check_request(replace(SMOKE, rounds=6)), "venv")
    said = version_pair(selection.cases[0], *selection.targets)
    claims = (claim(Expectation(pair=said, effect="same", published=None), cases=selection.cases),)
    of_claims = check_request(RunOptions(claims=claims, budget_s=1140.0))
    assert "1 claim, 2 arms in 2 versions, up to 20 rounds, at most 19 min" in outline(of_claims, "venv")
