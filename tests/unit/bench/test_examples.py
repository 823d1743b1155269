"""The examples of others are measured as they were named, or not at all."""

from pathlib import Path

import pytest

from bench import examples


def test_files_that_are_missing_or_changed_end_the_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source, folder = tmp_path / "source" / "keras", tmp_path / "folder"
    source.mkdir(parents=True)
    folder.mkdir()
    monkeypatch.setattr(examples, "HASHES", {"a_test.py": "ab" * 32})
    with pytest.raises(SystemExit, match=r"a_test\.py is missing"):
        examples.collect(source.parent, folder)
    (source / "a_test.py").write_text("changed = True")
    (folder / "fetched").rmdir()
    with pytest.raises(SystemExit, match=r"a_test\.py has other contents"):
        examples.collect(source.parent, folder)


def test_the_workload_gets_the_files_that_were_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a_test.py").write_text("")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    monkeypatch.setattr(examples, "HASHES", {"a_test.py": empty})
    folder = tmp_path / "folder"
    folder.mkdir()
    assert sorted(path.name for path in examples.collect(tmp_path, folder).rglob("*.py")) == [
        "a_test.py",
        "examples.py",
    ]
