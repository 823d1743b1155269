"""A table of saved models is read back whole, and a stranger's one is only text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import TfCompareError
from orchestrator.saved_models.markdown import render_models_markdown
from orchestrator.saved_models.report import models_as_object, write_models
from orchestrator.saved_models.stored import read_models
from tests.support.commands import called
from tests.support.export_runs import POISONS
from tests.support.markdown_pages import Page
from tests.support.saved_tables import DIES, table

TAGS = {"h3", "ul", "li", "p", "table", "thead", "tbody", "tr", "th", "td", "code"}


def write(folder: Path, wrong: Any = None, change: Callable[[Any], object] = lambda found: None) -> Path:
    write_models(table(folder, wrong=wrong))
    found = json.loads((folder / "models.json").read_text())
    change(found)
    (folder / "models.json").write_text(json.dumps(found))
    return folder


@pytest.mark.parametrize("wrong", [None, DIES])
@pytest.mark.parametrize("format", ["h5", "keras"])
def test_what_was_written_comes_back(tmp_path: Path, wrong: Any, format: str):
    answer = table(tmp_path, wrong=wrong, format=format)
    write_models(answer)
    assert models_as_object(read_models(tmp_path)) == models_as_object(answer)


def test_the_comment_has_the_table_and_the_reasons(tmp_path: Path, monkeypatch, capsys):
    assert called(monkeypatch, "comment", str(write(tmp_path, DIES)), "--dry-run") == 0
    text = capsys.readouterr().out
    page = Page(text)
    assert page.rows == [
        ["saved in", "loaded as", "2.8.4", "2.16.2"],
        ["2.8.4", "h5, 2", "ok", "1 dies"],
        ["2.16.2", "h5, 2", "ok", "ok"],
    ]
    assert "dies: ValueError: no such layer (nested)" in page.codes
    assert "8 loads in 1.0 min: 7 ok, 1 dies" in page.codes
    assert "dies" not in render_models_markdown(read_models(write(tmp_path)))


def poison_all(poison: str) -> Callable[[Any], object]:
    """Put a text wherever a table of a stranger may have one."""

    def change(found: Any) -> None:
        renamed = {"2.8.4": "2.8.4", "2.16.2": f"2{poison}"}
        found["targets"] = [*renamed.values()]
        for each in found["models"]:
            each["saved_in"], each["loaded_in"] = renamed[each["saved_in"]], renamed[each["loaded_in"]]
            each["model"] += poison
            each["reason"] = each["reason"] and poison
        found["failures"], found["notes"] = [poison], [poison]
        found["lost"] = [{"target": poison, "reason": poison}]

    return change


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_nothing_that_a_stranger_wrote_is_markup_a_mention_or_a_link(tmp_path: Path, poison: str, monkeypatch, capsys):
    write(tmp_path, DIES, poison_all(poison))
    assert called(monkeypatch, "comment", str(tmp_path), "--dry-run") == 0
    text = capsys.readouterr().out
    page = Page(text)
    assert set(page.tags) <= TAGS
    assert len(page.rows) == 3
    assert {len(row) for row in page.rows} == {4}
    for trace in ("@", "#", "http", "octocat", "alert", "evil", "HYPERLINK", "CDATA", "é"):
        assert trace not in page.outside
    assert all(sign.isprintable() or sign == "\n" for sign in text)


def test_the_largest_table_fits_into_a_comment(tmp_path: Path):
    def change(found: Any) -> None:
        targets = [f"{number}{'|é' * 500}" for number in range(20)]
        [one, *_] = found["models"]
        found["targets"] = targets
        found["models"] = [
            {**one, "saved_in": source, "loaded_in": target, "verdict": "dies", "reason": f"{place} {source}"}
            for place, source in enumerate(targets)
            for target in targets
        ]

    assert len(render_models_markdown(read_models(write(tmp_path, None, change)))) < 65_536


DAMAGE: dict[str, Callable[[Any], object]] = {
    "a cell is missing": lambda found: found["models"].pop(),
    "a cell is there twice": lambda found: found["models"].append(found["models"][0]),
    "a target is there twice": lambda found: found["targets"].append("2.8.4"),
    "a target without cells": lambda found: found["targets"].append("2.9.3"),
    "a cell of another target": lambda found: found["models"][0].update(loaded_in="2.9.3"),
    "no target": lambda found: found.update(targets=[], models=[]),
    "a verdict that is none": lambda found: found["models"][0].update(verdict="fine"),
    "a format that is none": lambda found: [each.update(format="pickle") for each in found["models"]],
    "another format of one cell": lambda found: found["models"][0].update(format="keras"),
    "a size without end": lambda found: found["models"][0].update(bytes=10**400),
    "a time without end": lambda found: found.update(seconds=float("inf")),
    "a time that is none": lambda found: found["models"][0].update(load_s=float("nan")),
    "a field more": lambda found: found.update(more=1),
    "a field less": lambda found: found.pop("lost"),
    "a list for a text": lambda found: found["models"][0].update(reason=["x"]),
    "depth": lambda found: found.update(models=json.loads("[" * 500 + "]" * 500)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_table_that_no_run_has_made_is_one_line(tmp_path: Path, monkeypatch, capsys, damage: Callable[[Any], object]):
    write(tmp_path, DIES, damage)
    with pytest.raises(TfCompareError):
        read_models(tmp_path)
    assert called(monkeypatch, "comment", str(tmp_path), "--dry-run") in (2, 7)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": "tfcompare.models/2", "a": 1}', '{"schema": 1}', "\xff"])
def test_another_file_is_one_line(tmp_path: Path, text: str):
    (tmp_path / "models.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(TfCompareError):
        read_models(tmp_path)


def test_links_and_pipes_are_not_read(tmp_path: Path):
    write(tmp_path).joinpath("models.json").rename(tmp_path / "secret")
    (tmp_path / "models.json").symlink_to(tmp_path / "secret")
    with pytest.raises(TfCompareError, match="symbolic link"):
        read_models(tmp_path)
