"""A variable that tfcompare reads is on the page of variables, and no other is; lint says so."""

from pathlib import Path

import pytest

from tools.docs import variables


def test_all_variables_are_described():
    assert list(variables.wrong_variables()) == []


def test_a_variable_that_is_missing_or_unknown_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for path, text in {
        "docs/environment.md": "TFCOMPARE_GONE",
        "docs/nightly.md": "",
        "docker-compose.yml": "TFCOMPARE_DEVICE TFCOMPARE_HOOK",
        "orchestrator/one.py": "TFCOMPARE_NEW",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(variables, "ROOT", tmp_path)
    assert list(variables.wrong_variables()) == [
        "docs/environment.md lacks TFCOMPARE_NEW, which tfcompare reads",
        "docs/environment.md has TFCOMPARE_GONE, which nothing reads",
        "docs/nightly.md lacks TFCOMPARE_HOOK of docker-compose.yml",
    ]
