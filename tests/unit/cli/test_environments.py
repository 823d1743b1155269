"""`tfcompare environments`: what cannot be packed is said before anything is downloaded; what is unused goes."""

import sys
from pathlib import Path

import pytest

from orchestrator.catalog import user_data
from orchestrator.engines.folder_lock import FolderLock
from orchestrator.engines.venv.engine import environments_folder
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


@pytest.fixture
def cache(monkeypatch, tmp_path: Path) -> Path:
    """The environments of a target whose lock is here, and of two that are not; Docker's engine is away."""
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'nobody.sock'}")
    user_data.locks().mkdir(parents=True)
    (user_data.locks() / "2.13.0-cpu-py3.11-0123456789ab.txt").write_text("numpy==1.0\n")
    folder = environments_folder()
    for name in ("2.13.0-cpu-py3.11-0123456789ab", "2.13.0-cpu-py3.11-ba9876543210", "9.9.9-cpu-py3.7"):
        made = folder / f"{name}-0123456789abcdef"
        (made / "bin").mkdir(parents=True)
        (made / "bin" / "python").symlink_to(Path(sys.executable).resolve())
        (made / "large").write_bytes(b"1" * 10**6)
    return folder


def test_prune_removes_what_nothing_uses_and_asks_no_engine(monkeypatch, capsys, cache: Path):
    assert called(monkeypatch, "environments", "prune", "--yes") == 0
    printed = capsys.readouterr().out
    assert [path.name for path in cache.iterdir() if path.is_dir()] == [
        "2.13.0-cpu-py3.11-0123456789ab-0123456789abcdef"
    ]
    assert "9.9.9-cpu-py3.7-0123456789abcdef" in printed
    assert "freed 2.0 MB" in printed
    assert called(monkeypatch, "environments", "prune", "--yes") == 0
    assert capsys.readouterr().out == "nothing to free\n"
    assert called(monkeypatch, "environments", "prune", "--all", "--yes") == 0
    assert not [path for path in cache.iterdir() if path.is_dir()]


def test_prune_removes_nothing_unasked_and_nothing_in_use(monkeypatch, capsys, cache: Path):
    there = sorted(path for path in cache.iterdir() if path.is_dir())
    assert called(monkeypatch, "environments", "prune") == 2
    assert "nothing was removed" in capsys.readouterr().err
    assert sorted(path for path in cache.iterdir() if path.is_dir()) == there
    lock = FolderLock(there[-1])
    assert lock.share()
    try:
        assert called(monkeypatch, "environments", "prune", "--all", "--yes") == 0
    finally:
        lock.release()
    assert f"left alone: {there[-1].name}: it is in use" in capsys.readouterr().out
    assert [path for path in cache.iterdir() if path.is_dir()] == there[-1:]
