"""The exit code of a run is the worst of what happened in it."""

from orchestrator.errors import EnvironmentFailed, NothingSelected
from orchestrator.model import ArmResult
from orchestrator.results import exit_error
from tests.support.builders import arm, case, unmeasured

ONLY = case()


def code(*arms: ArmResult, failures: tuple[str, ...] = (), broken: tuple[str, ...] = ()) -> int:
    found = exit_error.find_error(arms, [EnvironmentFailed(text) for text in failures], broken)
    return found.exit_code if found else 0


def test_the_worst_of_what_happened_is_the_exit_code():
    """A broken contract before a missing environment before a dead arm; a refusal alone is no failure."""
    fine, refused = arm(ONLY, "1.0.0"), unmeasured(ONLY, "2.0.0", "refused", "no such op")
    dead = unmeasured(ONLY, "2.0.0", "died", "killed")
    assert code(fine, arm(ONLY, "2.0.0")) == 0
    assert code(fine, refused) == 0
    assert code(fine, dead) == 6
    assert code(fine, dead, failures=("no disk",)) == 5
    assert code(fine, dead, failures=("no disk",), broken=("no stream",)) == 7


def test_where_nobody_can_run_it_nothing_was_selected():
    refused = [unmeasured(ONLY, version, "refused", "no such op") for version in ("1.0.0", "2.0.0")]
    assert code(*refused) == NothingSelected.exit_code


def test_the_dead_are_named_with_their_reasons():
    found = exit_error.find_error((arm(ONLY), unmeasured(ONLY, "2.0.0", "died", "killed by SIGKILL")), [])
    assert str(found) == "1 of 2 arms died\n2.0.0 power: killed by SIGKILL"


def test_versions_with_one_reason_share_a_message():
    reason = "Python 3.7 could not be downloaded (no network)"
    failures = [EnvironmentFailed(reason, target=number, lacks_python=True) for number in ("1.14.0", "2.0.0")]
    other = EnvironmentFailed("the disk is full: no space", target="2.13.0")
    assert exit_error.join_failures([*failures, other]) == [
        "1.14.0, 2.0.0: Python 3.7 could not be downloaded (no network)",
        "2.13.0: the disk is full: no space",
    ]
    assert exit_error.join_failures([EnvironmentFailed("nothing works")]) == ["nothing works"]
