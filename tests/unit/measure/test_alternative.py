"""Where Pythons are missing, a command says what can be compared instead."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog.changed import find_changed
from orchestrator.catalog.version import FlavourName, Version
from orchestrator.errors import EnvironmentFailed
from orchestrator.measure import alternative
from orchestrator.model import Bound, Pair
from orchestrator.plan.request import PlannedRun, RunOptions, check_request
from tests.support.builders import claim, expectation

VERSIONS = catalog.resolve_versions(["1.14", "2.0", "2.13"])
COMMAND = ("run", "--versions", "1.14,2.0,2.13", "--suite", "smoke", "--output", "runs/first", "--rounds=2")


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let only these Pythons exist."""

    def exist(*numbers: str) -> None:
        def has(version: Version, device: FlavourName) -> bool:
            return any(flavour.python.number in numbers for flavour in version.on(device))

        monkeypatch.setattr(alternative, "has_python", has)

    return exist


def fail(*numbers: str, lacks_python: bool = True) -> dict[str, EnvironmentFailed]:
    message = "Python 3.7 could not be downloaded (no network)"
    return {number: EnvironmentFailed(message, target=number, lacks_python=lacks_python) for number in numbers}


def test_the_last_line_compares_what_is_left_with_the_newest_release(on):
    on("3.11")
    error = alternative.make_error(RunOptions(command=COMMAND), VERSIONS, fail("1.14.0", "2.0.0"))
    assert str(error).splitlines() == [
        "1.14.0, 2.0.0: Python 3.7 could not be downloaded (no network); the Pythons on this machine can run:",
        "tfcompare run --versions 2.13,2.21 --suite smoke --rounds=2",
    ]


def test_targets_with_changes_are_no_versions_to_suggest(on):
    on("3.7", "3.11")
    targets = (*VERSIONS, *(find_changed(text, "cpu") for text in ("image=some/image as own", "2.13 TF_X=1 as told")))
    error = alternative.make_error(RunOptions(command=COMMAND), targets, fail("1.14.0"))
    assert "--versions 2.0,2.13 --suite" in str(error).splitlines()[-1]


def test_where_nothing_wanted_is_left_it_compares_the_oldest_and_the_newest_release(on):
    on("3.10")
    error = alternative.make_error(RunOptions(command=COMMAND), VERSIONS[:2], fail("1.14.0", "2.0.0"))
    assert "--versions 2.13,2.20" in str(error)


def test_without_a_command_or_a_second_release_only_the_message_is_left(on):
    message = "1.14.0: Python 3.7 could not be downloaded (no network)"
    on("3.11")
    assert str(alternative.make_error(RunOptions(), VERSIONS, fail("1.14.0"))) == message
    on()
    assert str(alternative.make_error(RunOptions(command=COMMAND), VERSIONS, fail("1.14.0"))) == message


def test_failures_that_are_not_about_pythons_suggest_nothing(on):
    on("3.11")
    failure = fail("1.14.0", lacks_python=False)
    told = "be made ready:\n1.14.0: Python 3.7 could not be downloaded (no network)"
    error = alternative.make_error(RunOptions(command=COMMAND), VERSIONS[:1], failure)
    assert str(error) == f"no version could {told}"
    error = alternative.make_error(RunOptions(command=COMMAND), VERSIONS[:2], failure)
    assert str(error) == f"too few versions for a comparison could {told}"


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (("run", "--versions=1.14,2.0", "--output=x", "-v"), "tfcompare run --versions 2.13,2.21 -v"),
        (
            ("profile", "--case", "power[style=eager]", "--versions", "1.14"),
            "tfcompare profile --versions 2.13,2.21 --case 'power[style=eager]'",
        ),
        (("reproduce", "--suite", "studies"), "tfcompare run --versions 2.13,2.21"),
    ],
)
def test_the_users_other_choices_are_kept(command: tuple[str, ...], written: str):
    assert alternative.write_command(command, ("2.13", "2.21")) == written


def test_two_arms_are_a_comparison_and_the_control_is_one():
    planned = check_request(RunOptions(versions=("1.14", "2.0", "2.13"), suite="smoke"))
    assert alternative.can_compare(planned, {"1.14.0", "2.13.0"})
    assert not alternative.can_compare(planned, {"2.13.0"})
    alone = check_request(RunOptions(versions=("2.13",), suite="smoke", control=True))
    assert alternative.can_compare(alone, {"2.13.0"})


def test_a_claim_takes_all_versions_of_one_of_its_ratios():
    pairs = check_request(RunOptions(versions=("1.14", "2.0"), suite="quick")).selection.pairs
    across = next(pair for pair in pairs if pair.across)
    assert not alternative.can_compare(of_claim(across), {"2.0.0"})
    assert alternative.can_compare(of_claim(across), {"1.14.0", "2.0.0"})
    inside = next(pair for pair in pairs if not pair.across)
    assert alternative.can_compare(of_claim(inside), {inside.arms[0].target})


def test_a_claim_about_one_arm_takes_its_version_alone():
    pair = check_request(RunOptions(versions=("1.14", "2.0"), suite="quick")).selection.pairs[0]
    old, new = pair.arms
    bound = Bound(arm=new, metric="traces", at_least=None, at_most=1)
    asked = check_request(RunOptions(claims=(claim(bounds=(bound,), cases=(pair.case,)),)))
    assert alternative.can_compare(asked, {new.target.name})
    assert not alternative.can_compare(asked, {old.target.name})


def test_one_version_is_enough_where_own_workloads_compare_their_cases(tmp_path: Path):
    """Those of this project do so as well, but by themselves: nobody asked for it."""
    built_in = check_request(RunOptions(versions=("1.14", "2.0"), suite="quick"))
    assert any(not pair.across for pair in built_in.selection.pairs)
    assert not alternative.can_compare(built_in, {"1.14.0"})
    source = "PARAMS = {'n': ('a', 'b')}\ndef build(tf, params):\n    return lambda: None\n"
    (tmp_path / "mine.py").write_text(source)
    mine = RunOptions(versions=("1.14", "2.0"), own_workloads=tmp_path)
    assert not alternative.can_compare(check_request(mine), {"1.14.0"})
    (tmp_path / "mine.py").write_text(f"COMPARISONS = {{'n': 'a'}}\n{source}")
    assert alternative.can_compare(check_request(mine), {"1.14.0"})


def of_claim(pair: Pair) -> PlannedRun:
    return check_request(RunOptions(claims=(claim(expectation(pair=pair, effect="same", published=None)),)))
