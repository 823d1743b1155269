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
