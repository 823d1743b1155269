"""`tfcompare history` and its commands, as somebody calls them."""

import csv
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from typer.main import get_group

from orchestrator.cli import history as cli_history
from orchestrator.history.model import StateChanged
from orchestrator.history.store import Store
from tests.conftest import ROOT
from tests.support import nights_shown as shown
from tests.support.builders import MS, NEW, OLD, case, case_pair, plan, rows, run_folder, write_stream
from tests.support.commands import called

SCHEMA = json.loads((ROOT / "docs" / "schema" / "history-1.json").read_text())
POWER = case("power", style="eager")
COMMANDS = [name for name in get_group(cli_history.app).commands if name != "show"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    points = shown.points()
    return shown.kept_in(tmp_path_factory.mktemp("made") / "history", points, shown.alarm(points)).path


@pytest.fixture
def history(made: Path, tmp_path: Path) -> Path:
    """One that a test may write into; files that are never changed need no copy."""
    path = tmp_path / "history"
    subprocess.run(["cp", "-al", str(made), str(path)], check=True)
    return path


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("TFCOMPARE_HISTORY", raising=False)
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def once(*words: object) -> tuple[int, str, str]:
        code = called(monkeypatch, "history", *map(str, words))
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return once


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = run_folder(tmp_path / "run", plan([POWER]))
    for place, version in enumerate((OLD, NEW)):
        batches = [
            rows(POWER, version, round=number, replicate=number * 2 + place, bursts=(MS * (10 + number + place),) * 3)
            for number in range(1, 7)
        ]
        write_stream(made.settled / f"{version}-0.arrow", batches)
    return made.path


def test_without_a_case_all_series_are_shown(call, history: Path):
    code, out, err = call("--history", history)
    assert (code, err) == (0, "")
    assert "6 series of 3 cases on 1 host" in out
    assert "1 open alarm" in out


def test_a_case_is_shown_night_by_night(call, history: Path):
    for words in (
        (shown.EAGER, "--history", history),
        ("--history", history, "eager"),
        ("show", "eager", "--history", history),
    ):
        code, out, err = call(*words)
        assert (code, err) == (0, "")
        assert "2.13.0 against 1.14.0" in out
        assert "the last 10 of 60 nights: --all shows every one" in out
        assert "┤" in out


def test_several_cases_are_shown_as_an_overview_of_them(call, history: Path):
    code, out, _ = call("train_loop", "--history", history, "--versions", "nightly", "--last", "7")
    assert code == 0
    assert "2 series of 2 cases on 1 host, 2024-02-23 to 2024-02-29" in out
    assert "predict" not in out


def test_the_history_is_found_by_its_variable(monkeypatch, call, history: Path):
    monkeypatch.setenv("TFCOMPARE_HISTORY", str(history))
    assert "6 series" in call()[1]
    assert call("query", "SELECT count(*) FROM alarms", "--format", "csv")[1].splitlines()[1] == "1"


def test_options_may_stand_before_a_command(call, history: Path):
    code, out, _ = call("--history", history, "query", "SELECT 7 AS seven", "--format", "json")
    assert (code, json.loads(out)) == (0, [{"seven": 7}])


@pytest.mark.parametrize("words", [["-h"], ["--help"]])
def test_help_tells_of_the_case_and_of_the_commands(call, words: list[str]):
    code, out, _ = call(*words)
    assert code == 0
    assert "tfcompare history [OPTIONS] [CASE] | COMMAND [ARGS]..." in out
    for name in ("--since", "--last", *COMMANDS):
        assert name in out


def test_every_command_has_help_of_its_own(call):
    for name in COMMANDS:
        code, out, _ = call(name, "-h")
        assert (code, f"tfcompare history {name}" in out) == (0, True)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["querry"], 3, "did you mean query?"),
        (["train_lopo"], 3, "did you mean train_loop?"),
        (["--since", "yesterday"], 2, "--since 'yesterday': a day, e.g."),
        (["--last", "0"], 2, "--last"),
        (["--format", "xml"], 2, "choose from table, json, csv"),
        (["--host", "x"], 3, "available: host"),
        (["a", "b"], 2, "unexpected extra argument"),
        (["query", "SELECT 1", "--format", "parquet"], 2, "add --output FILE"),
        (["query", "SELECT x"], 2, "Binder Error"),
        (["mute", "0f9571"], 2, "--note"),
    ],
)
def test_a_wrong_call_is_told_what_to_write(call, history: Path, words: list[str], code: int, told: str):
    found, out, err = call(*words, "--history", history)
    assert (found, out) == (code, "")
    assert told in err
    assert "Traceback" not in err


@pytest.mark.parametrize("path", ["none", "empty"])
def test_an_empty_history_says_what_to_do(call, tmp_path: Path, path: str):
    (tmp_path / "empty").mkdir()
    code, out, err = call("--history", tmp_path / path)
    assert (code, out) == (0, "")
    assert f"there is nothing in the history {tmp_path / path} yet: `tfcompare nightly run" in err
    assert call("predict", "--history", tmp_path / path)[0] == 3
    assert json.loads(call("--history", tmp_path / path, "--format", "json")[1])["series"] == []
    assert len(call("--history", tmp_path / path, "--format", "csv")[1].splitlines()) == 1
    assert call("alarms", "--history", tmp_path / path)[1] == "no alarm is open\n"
    assert not (tmp_path / "none").exists()


def test_a_file_is_no_history(call, tmp_path: Path):
    (tmp_path / "file").write_text("")
    code, _, err = call("--history", tmp_path / "file")
    assert (code, "is no folder" in err) == (2, True)


def test_a_broken_file_is_told_and_the_rest_is_shown(call, history: Path):
    next(history.glob("points/2024-01/*.parquet")).unlink()
    broken = history / "points" / "2024-01" / "20240101-020000-x-screen.parquet"
    broken.write_bytes(b"PAR1")
    code, out, err = call("--history", history)
    assert code == 0
    assert "6 series" in out
    assert f"warning: {broken} is left out" in err
    assert broken.exists()


@pytest.mark.parametrize("words", [[], [shown.EAGER], ["--last", "3", "--all"]])
def test_the_history_is_one_object(call, history: Path, words: list[str]):
    code, out, err = call(*words, "--history", history, "--format", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    Draft202012Validator(SCHEMA).validate(found)
    assert found["series"]
    assert [one["id"] for one in found["alarms"]] == ["0f9571"]


def test_the_history_is_a_row_a_night(call, history: Path):
    _, out, _ = call(shown.EAGER, "--version", "nightly", "--history", history, "--format", "csv")
    found = list(csv.DictReader(io.StringIO(out)))
    assert len(found) == 60
    assert {row["outcome"] for row in found} == {"measured", "died"}
    assert [row["stage"] for row in found if row["night"] == "2024-02-10"] == ["confirm"]


def test_an_answer_goes_into_a_file(call, history: Path, tmp_path: Path):
    for format in ("parquet", "csv", "json", "table"):
        path = tmp_path / f"out.{format}"
        code, out, err = call(
            "query", "SELECT * FROM nights", "--history", history, "--format", format, "--output", path
        )
        assert (code, out, err) == (0, "", f"written: {path}\n")
        assert path.stat().st_size > 0


def test_without_a_query_the_views_are_listed(call):
    code, out, _ = call("query")
    assert code == 0
    assert "points: every comparison" in out
    assert "tfcompare history query 'SELECT" in out


# duckdb refuses none of these by its own limit: one value, a list, and an answer that is small until it is text.
GREEDY = {
    "text": "SELECT length(repeat('x', 3000000000))",
    "list": "SELECT len(range(1000000000))",
    "answer": "SELECT * FROM range(40000000)",
}


@pytest.mark.slow
@pytest.mark.parametrize("sql", GREEDY.values(), ids=GREEDY)
def test_a_query_that_takes_too_much_memory_ends_in_a_line(history: Path, tmp_path: Path, sql: str):
    # The room for an answer that becomes text is smaller here: to fill the whole of it takes minutes.
    room = "from orchestrator.history import sql; sql.ROOM_BYTES = 10**9; " if "*" in sql else ""
    words = [sys.executable, "-c", f"{room}from orchestrator.cli.main import main; main()", "history", "query", sql]
    with (tmp_path / "err").open("w") as err:
        process = subprocess.Popen(
            [*words, "--history", str(history), "--format", "csv"], stdout=subprocess.DEVNULL, stderr=err
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 2
    (line,) = (tmp_path / "err").read_text().splitlines()
    assert "this takes more than 2GB of memory: select fewer rows" in line
    assert used.ru_maxrss * 1024 < 2.5e9


def test_a_query_leaves_the_limits_of_the_process_as_they_were(call, history: Path):
    before = resource.getrlimit(resource.RLIMIT_DATA)
    assert call("query", "SELECT count(*) FROM points", "--history", history)[0] == 0
    assert call("query", "SELECT len(range(1000000000))", "--history", history)[0] == 2
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.slow
def test_an_interrupt_ends_a_query_that_works_on_one_value(history: Path):
    sql = "SELECT length(regexp_replace(repeat('ab', 400000000), 'a', 'bb', 'g'))"
    words = [sys.executable, "-c", "from orchestrator.cli.main import main; main()", "history", "query", sql]
    with subprocess.Popen([*words, "--history", str(history)], stderr=subprocess.PIPE) as process:
        while "duckdb" not in Path(f"/proc/{process.pid}/maps").read_text():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(20) in (130, -signal.SIGINT)
        finally:
            process.kill()


def test_a_query_that_takes_for_ever_ends_with_the_signal(history: Path):
    sql = "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a) SELECT max(n) FROM a"
    words = [sys.executable, "-c", "from orchestrator.cli.main import main; main()", "history", "query", sql]
    with subprocess.Popen([*words, "--history", str(history)], env=os.environ, stderr=subprocess.PIPE) as process:
        while "duckdb" not in Path(f"/proc/{process.pid}/maps").read_text():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        try:
            # In its last imports or deep in the query.
            assert process.wait(20) in (130, -signal.SIGTERM)
        finally:
            process.kill()


def test_a_run_is_imported_once(call, history: Path, run: Path):
    code, out, err = call("import", run, "--history", history)
    assert (code, out) == (0, "")
    assert "added as the night of 2026-01-02: 1 comparison, 1 of them with a time, in " in err
    (point,) = [point for point in Store(history).read().points() if point.case == POWER.label]
    assert (point.target, point.stage, point.rounds) == (NEW, "screen", 6)
    code, _, err = call("import", run, "--history", history)
    assert code == 2
    assert f"run {plan().run} is already in the history {history}" in err
    assert not (history / "runs").exists()


def test_a_run_is_imported_into_an_empty_history_under_another_night_and_name(call, tmp_path: Path, run: Path):
    fresh = tmp_path / "fresh"
    code, _, _ = call("import", run, "--history", fresh, "--night", "2025-05-06", "--name", f"{NEW}=nightly")
    assert code == 0
    (point,) = Store(fresh).read().points()
    assert (str(point.night), point.target, point.build) == ("2025-05-06", "nightly", NEW)
    code, out, _ = call("power", "--history", fresh)
    assert (code, "nightly against 1.0.0" in out) == (0, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--name", "3.0.0=nightly"], "the run compares 2.0.0"),
        (["--name", "nightly"], "expected BUILD=NAME"),
        (["--night", "01.02.2026"], "--night '01.02.2026': a day"),
    ],
)
def test_a_wrong_import_adds_nothing(call, tmp_path: Path, run: Path, words: list[str], told: str):
    code, _, err = call("import", run, "--history", tmp_path / "fresh", *words)
    assert (code, told in err) == (2, True)
    assert not (tmp_path / "fresh").exists()


def test_a_run_without_versions_to_compare_has_nothing_for_a_history(call, tmp_path: Path):
    tiny, large = case("predict", model="tiny"), case("predict", model="large")
    asked = plan([tiny, large], (NEW,), pairs=(case_pair(tiny, large),))
    made = run_folder(tmp_path / "run", asked)
    code, _, err = call("import", made.path, "--history", tmp_path / "fresh")
    assert (code, "compares no version with its first one, 2.0.0" in err) == (3, True)


def test_what_is_no_run_or_cannot_be_read_is_not_imported(call, tmp_path: Path, run: Path):
    code, _, err = call("import", tmp_path, "--history", tmp_path / "fresh")
    assert (code, "holds no run" in err) == (2, True)
    (run / "streams" / f"{NEW}-0.arrow").write_bytes(b"hello")
    code, _, err = call("import", run, "--history", tmp_path / "fresh")
    assert (code, "is not imported" in err) == (7, True)
    assert not (tmp_path / "fresh").exists()


def state(history: Path, call) -> tuple[str, str | None, str | None]:
    (alarm,) = json.loads(call("alarms", "--history", history, "--format", "json", "--all")[1])["alarms"]
    return alarm["state"], alarm["note"], alarm["until"]


def test_an_alarm_is_muted_known_and_what_it_was(call, history: Path):
    assert state(history, call) == ("new", None, None)
    code, out, err = call(
        "mute", "0f9", "--note", "a [red]fix[/red] is near", "--until", "2999-12-31", "--history", history
    )
    assert (code, out) == (0, "")
    assert err == "alarm 0f9571 is muted until 2999-12-31: a [red]fix[/red] is near\n"
    assert state(history, call) == ("muted", "a [red]fix[/red] is near", "2999-12-31")
    assert call("known", "0f9571", "--note", "wanted", "--history", history)[0] == 0
    assert state(history, call) == ("known", "wanted", None)
    assert call("unmute", "0f9571", "--history", history)[0] == 0
    assert state(history, call) == ("new", "wanted", None)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mute", "0f9572", "--note", "x"], "did you mean 0f9571?"),
        (["mute", "zzz", "--note", "x"], "`tfcompare history alarms --all` lists them"),
        (["mute", "0f", "--note", " "], "--note is empty"),
        (["mute", "0f", "--note", "x", "--until", "2020-01-01"], "is in the past"),
        (["known", "", "--note", "x"], "no alarm ''"),
        (["unmute", "0f"], "there is nothing to take back"),
    ],
)
def test_what_cannot_be_said_of_an_alarm_is_refused(call, history: Path, words: list[str], told: str):
    code, _, err = call(*words, "--history", history)
    assert (code, told in err) == (2, True)
    assert state(history, call)[0] == "new"


def test_of_an_alarm_that_recovered_there_is_nothing_to_say(call, history: Path):
    Store(history).record(StateChanged(at=datetime(2024, 2, 20, 4, tzinfo=UTC), alarm="0f9571", state="recovered"))
    code, _, err = call("mute", "0f", "--note", "x", "--history", history)
    assert (code, "is recovered: it can no longer be changed" in err) == (2, True)
    assert call("alarms", "--history", history)[1] == "no alarm is open; --all shows those that were\n"


def test_alarms_are_listed_with_commands_that_can_be_copied(monkeypatch, call, history: Path):
    monkeypatch.setenv("COLUMNS", "40")
    code, out, _ = call("alarms", "--history", history)
    assert code == 0
    assert shown.alarm(shown.points()).reproduce in out
    assert "changed since 2024-02-09: nightly: 2.22.0.dev20240209" in out


def test_the_site_is_written(call, history: Path, tmp_path: Path):
    code, out, err = call("site", "--output", tmp_path / "site", "--history", history)
    assert (code, out) == (0, "")
    assert f"written: {tmp_path / 'site' / 'index.html'}" in err
    assert (tmp_path / "site" / "index.html").is_file()


def test_what_only_says_something_of_an_alarm_waits_for_nothing_that_draws():
    code = (
        "import sys, orchestrator.cli.main, orchestrator.cli.history\n"
        "print([name for name in ('duckdb', 'jinja2', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
