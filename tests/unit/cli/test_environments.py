"""`tfcompare environments`: what cannot be packed is said before anything is downloaded."""

from pathlib import Path

import pytest

from tests.support.commands import called


@pytest.mark.parametrize(
    "words", [("2.13 numpy==1.24.3",), ("2.16", "2.13 TF_ENABLE_ONEDNN_OPTS=0"), ("2.13 as twin",)]
)
def test_a_target_with_changes_is_not_taken_for_a_version(monkeypatch, capsys, tmp_path: Path, words: tuple[str, ...]):
    file = tmp_path / "environments.tar"
    assert called(monkeypatch, "environments", "pack", *words, "-o", str(file)) == 3
    printed = capsys.readouterr().err
    assert f"{' '.join(words)}: a target with changes cannot be packed" in printed
    assert "--wheelhouse" in printed
    assert not file.exists()
