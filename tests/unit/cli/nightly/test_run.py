"""What the exit code of a night comes from: an alarm is one thing, and a run that crashed is another."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from orchestrator.cli import nightly
from orchestrator.cli.nightly.run import ending, flags_as_given, name_nights
from orchestrator.errors import ArmsDied, EnvironmentFailed, OutcomeFound, TfCompareError
from orchestrator.history.model import Night, NightReport
from orchestrator.nightly import lock
from orchestrator.nightly import night as nights
from orchestrator.nightly.options import NightOptions
from orchestrator.plan import request
from orchestrator.terminal.view import View
from tests.support.night_reports import alarm
from tests.support.stand_ins import Machine


def told(exit_code: int, outcome: Any = "measured", **more: Any) -> NightReport:
    at = datetime(2026, 11, 4, 2, tzinfo=UTC)
    end = Night(
        at=at, night=date(2026, 11, 4), started=at, host="h", suite="studies", targets=("2.13",), run="r",
        outcome=outcome, said=(), cells=1, screened=1, confirmed=0, exit_code=exit_code,
        device="cpu", engine="auto", selected=(), flags=(),
    )  # fmt: skip
    return NightReport(night=end, **more)


@pytest.mark.parametrize("outcome", ["measured", "failed"])
@pytest.mark.parametrize("code", [1, 70, 99, -9, 137])
def test_a_run_that_crashed_is_a_failure_and_no_alarm(code: int, outcome: str):
    found = ending(told(code, outcome, warnings=("the night ended with exit code 1: Traceback",)))
    assert type(found) is EnvironmentFailed
    assert "Traceback" in str(found)


def test_a_run_that_ended_in_a_known_way_ends_the_night_in_the_same():
    assert ending(told(0)) is None
    for code in (2, 3, 4, 5, 6, 7, 130):
        found = ending(told(code))
        assert isinstance(found, TfCompareError)
        assert found.exit_code == code
    assert isinstance(ending(told(0, "hung")), ArmsDied)


SLOWER, FASTER = alarm(1.2), alarm(0.8)


def test_only_a_new_alarm_of_something_slower_is_code_1():
    assert isinstance(ending(told(1, opened=(FASTER, SLOWER))), OutcomeFound)
    assert isinstance(ending(told(1, opened=(FASTER,))), EnvironmentFailed)
    assert ending(told(0, opened=(FASTER,))) is None


def test_a_small_change_of_one_night_is_code_1_once_a_second_night_confirms_it():
    small = alarm(1.06)
    assert ending(told(0, opened=(small,))) is None
    assert isinstance(ending(told(0, confirmed=(replace(small, state="confirmed"),))), OutcomeFound)
    # What its nights prove by themselves.
    assert isinstance(ending(told(0, opened=(replace(small, proven=True),))), OutcomeFound)


def test_a_night_passes_on_that_downloads_are_forbidden():
    command = get_group(nightly.app).commands["run"]
    context = command.make_context("run", ["--versions", "1.14,2.0", "--no-python-downloads"])
    assert flags_as_given(context) == ("--no-python-downloads",)


def test_a_night_is_judged_by_the_time_that_was_asked_for_and_is_another_one_then():
    command = get_group(nightly.app).commands["run"]
    context = command.make_context("run", ["--versions", "1.14,2.0", "--judge", "cpu"])
    assert flags_as_given(context) == ("--judge", "cpu")
    by_wall, by_cpu = (
        NightOptions(history=Path("h"), names=("1.14", "2.0"), flags=flags) for flags in ((), ("--judge", "cpu"))
    )
    assert by_wall.identity["flags"] == ()
    assert by_cpu.identity["flags"] == ("--judge cpu",)


def stop_before_measuring(monkeypatch: pytest.MonkeyPatch) -> list[NightOptions]:
    """Return a list that grows by what each nightly run is asked for; nothing is measured."""
    asked: list[NightOptions] = []

    def note(options: NightOptions, view: View) -> NightReport:
        asked.append(options)
        return told(0)

    monkeypatch.setattr(nights, "run_night", note)
    return asked


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (("--saved-models", "keras,h5"), ("--formats", "keras,h5")),
        (("--saved-models", "all"), ("--formats", "keras,h5,savedmodel,weights,export")),
        (
            (
                "--saved-models",
                "h5",
                "--engine",
                "venv",
                "--rounds",
                "4",
                "--judge",
                "cpu",
                "--gpus",
                "0",
                "--gpu-exclusive",
            ),
            ("--formats", "h5", "--engine", "venv", "--gpus", "0"),
        ),
        (("--engine", "venv"), ()),
    ],
)
def test_saved_models_get_the_flags_that_say_where_to_run(
    call: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    words: Sequence[str],
    flags: Sequence[str],
):
    asked = stop_before_measuring(monkeypatch)
    monkeypatch.setattr(request, "check_judge", lambda judge, gpu: None)
    assert call("run", "--versions", "2.13,2.0", *words)[0] == 0
    assert sorted(asked[0].models) == sorted(flags)
    assert asked[0].identity == replace(asked[0], models=()).identity


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--saved-models", "kears"), "unknown format 'kears'"),
        (("--saved-models", "keras", "--on", "auto"), "cannot be combined with --on"),
    ],
)
def test_saved_models_that_cannot_be_are_refused_before_anything_is_measured(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, words: Sequence[str], reason: str
):
    asked = stop_before_measuring(monkeypatch)
    code, _, errors = call("run", "--versions", "2.13,2.0", *words)
    assert (code, asked) == (2, [])
    assert reason in errors


def test_saved_models_that_broke_are_code_1_after_what_aborted_the_night():
    broken = ("2.8.4 as h5 in 2.16.2: dies: no (nested)",)
    assert isinstance(ending(told(0, broken=broken)), OutcomeFound)
    assert isinstance(ending(told(6, broken=broken)), OutcomeFound)
    assert isinstance(ending(told(0, mended=broken)), type(None))
    assert isinstance(ending(told(0, broken=broken, failure=ArmsDied("x"))), ArmsDied)


def test_a_call_that_finds_no_night_due_or_one_in_progress_does_and_says_nothing(
    machine: Machine, call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
):
    asked = stop_before_measuring(monkeypatch)
    at = datetime.now()
    words = ("run", "--versions", "2.13,2.0", "--if-due", f"{at:%H:%M}")

    def move_back() -> None:
        """As if the night had begun on the day before yesterday."""
        [path] = machine.folder.rglob("nights-*.json")
        path.write_text(json.dumps({"night": str(at.date() - timedelta(days=2)), "asked": "2026-01-01"}))

    # The first call waits for the next night.
    assert call(*words) == (0, "", "")
    move_back()
    with lock.hold():
        assert call(*words, "--missed", "skip") == (0, "", "")
    assert asked == []
    code, out, _ = call(*words, "--missed", "skip")
    assert (code, len(asked), out != "") == (0, 1, True)
    assert asked[0].night in (at.date(), at.date() - timedelta(days=1))
    assert call(*words) == (0, "", "")
    assert len(asked) == 1
    # Without the rule it is measured whenever it is asked for.
    assert call("run", "--versions", "2.13,2.0")[0] == 0
    assert (len(asked), asked[1].night) == (2, None)


def test_a_mistake_costs_no_night(machine: Machine, call: Callable[..., tuple[int, str, str]], monkeypatch):
    asked = stop_before_measuring(monkeypatch)
    words = ("run", "--versions", "2.13,2.0", "--if-due", f"{datetime.now():%H:%M}")
    call(*words)
    [path] = machine.folder.rglob("nights-*.json")
    path.write_text('{"night": "2026-01-01", "asked": "2026-01-01"}')
    assert call(*words, "--notify-file", "nowhere")[0] == 2
    assert call(*words, "--missed", "later")[0] == 2
    assert call("run", "--versions", "2.13", "--if-due", "25:00")[0] == 2
    assert asked == []
    assert call(*words)[0] == 0
    assert len(asked) == 1


def test_two_questions_have_nights_of_their_own():
    command = get_group(nightly.app).commands["run"]

    def name(*words: str) -> str:
        return name_nights(command.make_context("run", ["--versions", "1.14,2.0", *words]))

    assert name("--if-due", "02:00", "--limit", "4h") == name()
    assert len({name(), name("--suite", "studies"), name("--gpu"), name("--history", "h"), name("--judge", "cpu")}) == 5
