"""What cannot be locked costs what needs it, and no more."""

import pytest

from orchestrator.catalog import claims
from orchestrator.catalog.workloads import all_workloads
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.plan import planning
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.view import View
from tests.support.heard import Heard

BUILTIN = claims.all_claims(all_workloads())


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch):
    def provide(texts, say, device):
        if any("py=" in text for text in texts):
            raise UsageError("it cannot be locked: no network")
        return tuple(texts)

    monkeypatch.setattr(planning, "provide_targets", provide)


def test_a_claim_whose_targets_cannot_be_locked_is_left_out_with_a_warning():
    said: list[str] = []
    chosen = claims.choose_claims(["onednn-one-thread", "python-3-11-leaks-memory"], None, BUILTIN)
    planned = plan_run(RunOptions(claims=chosen), Heard(said))
    assert [claim.name for claim in planned.options.claims] == ["onednn-one-thread"]
    assert said == ["warning: the claim python-3-11-leaks-memory is left out: it cannot be locked: no network"]


def test_where_no_claim_is_left_nothing_is_measured_instead():
    chosen = claims.choose_claims(["python-3-11-leaks-memory"], None, BUILTIN)
    with pytest.raises(NothingSelected, match="see above"):
        plan_run(RunOptions(claims=chosen), View())
