"""Flags are read strictly, and every refusal is an exit code and one line that says what to write instead."""

import json
import sys

import pytest

from orchestrator import cli
from orchestrator.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("10m", 600), ("1h", 3600), ("1.5m", 90), ("0.5s", 0.5), (" 2h ", 7200)],
)
def test_a_duration_is_a_number_and_perhaps_a_unit(text: str, seconds: float):
    assert cli._seconds("--budget", text) == seconds


@pytest.mark.parametrize("text", ["", "s", "ten", "10 m", "-5s", "1e3", "5d", "1m30s", "0", "0.0h", "inf", "nan"])
def test_what_is_no_duration_is_refused_by_its_flag(text: str):
    with pytest.raises(UsageError, match=r"--budget .*: a duration, e\.g\. 90s, 10m or 1h"):
        cli._seconds("--budget", text)


def test_threads_are_inter_and_intra():
    assert cli._threads("1,2") == (1, 2)
    assert cli._threads("0,0") == (0, 0)


@pytest.mark.parametrize("text", ["", "2", "1,2,3", "1, 2", "a,b", "-1,2", "1.5,2"])
def test_what_are_no_two_numbers_are_no_threads(text: str):
    with pytest.raises(UsageError, match=r"--threads .*: two numbers, inter-op and intra-op, e\.g\. 1,2"):
        cli._threads(text)


@pytest.mark.parametrize(
    ("text", "names"), [("1.14,2.0", ("1.14", "2.0")), (" 1.14 , 2.0, ", ("1.14", "2.0")), (",", ()), ("", ())]
)
def test_names_are_cut_at_commas(text: str, names: tuple[str, ...]):
    assert cli._names(text) == names


def called(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    """The exit code of the whole program; warnings and colours as a pipe gets them."""
    monkeypatch.setattr(sys, "argv", ["tfcompare", *argv])
    monkeypatch.setattr(cli.signal, "signal", lambda number, action: None)
    with pytest.raises(SystemExit) as left:
        cli.main()
    return left.value.code


BAD_CALLS = {
    "an unknown version": (["--versions", "1.14,2.01"], 2, "did you mean 2.0?"),
    "one version": (["--versions", "2.0"], 2, "at least two versions"),
    "an unknown suite": (["--suite", "smoek"], 2, "did you mean smoke?"),
    "an unknown workload": (["--workload", "powr"], 2, "did you mean power?"),
    "an excluded case": (["--workload", "train_loop[model=large,data=small]"], 3, "leaves that combination"),
    "an unknown format": (["--format", "jsno"], 2, "did you mean json?"),
    "a margin of nothing": (["--margin", "0"], 2, "--margin 0"),
    "a margin of everything": (["--margin", "100"], 2, "--margin 100"),
    "an unknown alarm": (["--fail-on", "faster"], 2, "only slower is known"),
    "a bad duration": (["--budget", "soon"], 2, "--budget 'soon': a duration"),
    "bad threads": (["--threads", "two"], 2, "--threads 'two': two numbers"),
    "an unknown engine": (["--engine", "podman", "--dry-run"], 2, "unknown engine 'podman'"),
    "an unknown request": (["--gpu-request", "cuda"], 2, "it is runtime or device"),
    "a folder that is not there": (["--workloads", "no/such/folder"], 2, "no such folder"),
    "one round": (["--rounds", "1"], 2, "--rounds"),
    "a flag that does not exist": (["--round", "1"], 2, "No such option"),
}


@pytest.mark.parametrize(("flags", "code", "words"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_call_ends_before_any_work(monkeypatch, capsys, tmp_path, flags: list[str], code: int, words: str):
    monkeypatch.chdir(tmp_path)
    versions = [] if "--versions" in flags else ["--versions", "1.14,2.0"]
    assert called(monkeypatch, "run", *versions, *flags) == code
    streams = capsys.readouterr()
    assert words in streams.err
    assert streams.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_report_of_what_is_no_run_is_wrong_usage(monkeypatch, capsys, tmp_path):
    assert called(monkeypatch, "report", str(tmp_path)) == 2
    assert "holds no run" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["versions", "workloads", "suites"])
def test_what_there_is_can_be_read_by_a_machine(monkeypatch, capsys, what: str):
    assert called(monkeypatch, "list", what, "--format", "json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) >= 3
    assert all(what.removesuffix("s") in entry for entry in listed)


def test_versions_are_listed_with_the_keys_of_the_design(monkeypatch, capsys):
    called(monkeypatch, "list", "versions", "--format", "json")
    for entry in json.loads(capsys.readouterr().out):
        assert {"version", "aliases", "python", "keras", "flavours"} <= entry.keys()


def test_markup_in_a_message_is_shown_as_it_is(monkeypatch, capsys):
    assert called(monkeypatch, "list", "[red]x[/red]") == 2
    assert "cannot list '[red]x[/red]'" in capsys.readouterr().err
