"""What can be compared, listed for people and for programs."""

import json

import pytest

from orchestrator.catalog import claims
from tests.support.commands import called


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
        assert bool(entry["flavours"]) != bool(entry["image"])


def test_markup_in_a_message_is_shown_as_it_is(monkeypatch, capsys):
    assert called(monkeypatch, "list", "[red]x[/red]") == 2
    assert "cannot list '[red]x[/red]'" in capsys.readouterr().err


def test_workloads_of_a_folder_are_listed_with_what_they_do(monkeypatch, capsys, tmp_path):
    (tmp_path / "words.py").write_text('"""Read words from a file."""\ndef build(tf, params): return len\n')
    assert called(monkeypatch, "list", "workloads", "--workload-folder", str(tmp_path), "--format", "json") == 0
    [listed] = json.loads(capsys.readouterr().out)
    assert (listed["workload"], listed["summary"]) == ("words", "Read words from a file.")
    assert called(monkeypatch, "list", "claims", "--workload-folder", str(tmp_path)) == 2
    assert "--workload-folder goes with" in capsys.readouterr().err


def test_no_name_of_a_claim_breaks_at_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert called(monkeypatch, "list", "claims") == 0
    listed = capsys.readouterr().out
    assert all(path.stem in listed for path in claims.CLAIMS.glob("*.toml"))


def test_without_a_word_and_with_a_foreign_one_the_four_are_named(monkeypatch, capsys):
    assert called(monkeypatch, "list") == 2
    assert "versions, workloads, suites, claims" in capsys.readouterr().err
    assert called(monkeypatch, "list", "cases") == 2
    assert "did you mean" not in capsys.readouterr().err


def listed(monkeypatch, capsys, *words: str) -> list[str]:
    assert called(monkeypatch, "list", *words) == 0
    return capsys.readouterr().out.splitlines()


def test_each_item_is_a_line_and_the_last_one_counts_them(monkeypatch, capsys):
    for what in ("versions", "workloads", "suites", "claims"):
        header, *items, count = listed(monkeypatch, capsys, what)
        assert header.startswith(what.removesuffix("s"))
        assert count.startswith(f"{len(items)} {what}")
        assert all(line == line.rstrip() for line in items)


def test_words_select_what_contains_all_of_them_in_any_case(monkeypatch, capsys):
    every, some, both = (
        [line.split()[0] for line in listed(monkeypatch, capsys, "claims", *words)]
        for words in ((), ("PREDICT",), ("predict", "compile"))
    )
    assert set(both[1:-1]) < set(some[1:-1]) < set(every[1:-1])
    called(monkeypatch, "list", "claims", "predict", "--format", "json")
    objects = json.loads(capsys.readouterr().out)
    assert len(objects) == len(some) - 2
    assert all("predict" in json.dumps(entry).casefold() for entry in objects)


def test_a_whole_name_shows_all_that_is_known_of_one(monkeypatch, capsys):
    lines = listed(monkeypatch, capsys, "workloads", "predict")
    assert lines[0] == "workload: predict"
    assert any(line.startswith("params call: ") for line in lines)
    assert listed(monkeypatch, capsys, "versions", "2.16.2")[0] == "version: 2.16.2"


def test_words_that_nothing_contains_select_nothing(monkeypatch, capsys):
    assert called(monkeypatch, "list", "claims", "no such thing") == 3
    assert "no claims contain 'no such thing': tfcompare list claims" in capsys.readouterr().err


def test_what_a_folder_says_of_itself_moves_no_cursor(monkeypatch, capsys, tmp_path):
    (tmp_path / "words.py").write_text('"""Read \x1b[2J words."""\ndef build(tf, params): return len\n')
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    lines = listed(monkeypatch, capsys, "workloads", "--workload-folder", str(tmp_path))
    assert lines[1:-1] == ["words     Read \\x1b[2J words."]
