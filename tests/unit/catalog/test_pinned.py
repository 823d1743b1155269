"""What is measured is what the workload folder held when the run began."""

import os
from pathlib import Path

import pytest

from orchestrator.catalog import pinned, workloads
from orchestrator.errors import UsageError

BUILD = "def build(tf, params):\n    return lambda: 1.0\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    write(folder / "one.py", BUILD)
    return folder


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_folder_is_copied_without_what_is_hidden_or_cached(mine: Path, tmp_path: Path):
    for name in ("data/small.csv", "third/party/code.py", ".git/config", ".secret", "__pycache__/one.pyc", "a/.b/c.py"):
        write(mine / name, "content")
    assert pinned.pin(mine, tmp_path / "copy") == ()
    assert names(tmp_path / "copy") == ["data/small.csv", "one.py", "third/party/code.py"]
    assert (tmp_path / "copy" / "data" / "small.csv").read_text() == "content"


def test_a_copy_can_be_read_by_whoever_the_worker_runs_as(mine: Path, tmp_path: Path):
    (mine / "one.py").chmod(0o600)
    old = os.umask(0o077)
    try:
        pinned.pin(mine, tmp_path / "copy")
    finally:
        os.umask(old)
    assert oct((tmp_path / "copy" / "one.py").stat().st_mode)[-3:] == "644"
    assert oct((tmp_path / "copy").stat().st_mode)[-3:] == "755"


def test_a_large_file_is_not_copied_and_is_recorded(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pinned, "MOST_BYTES_EACH", 1000)
    write(mine / "data" / "large.bin", "x" * 1001)
    (large,) = pinned.pin(mine, tmp_path / "copy")
    assert (large.name, large.path, large.bytes) == ("data/large.bin", str(mine / "data" / "large.bin"), 1001)
    assert (tmp_path / "copy" / "data" / "large.bin").read_text() == "", "the place to mount it"
    stage = pinned.stage_copy(tmp_path / "copy", (large,), tmp_path / "stage")
    assert (stage / "data" / "large.bin").read_text() == "x" * 1001
    assert (stage / "one.py").read_text() == BUILD
    assert "large.bin" in pinned.notes_on((large,))[0]
    assert pinned.changes_of([large]) == []
    write(mine / "data" / "large.bin", "y" * 1001)
    os.utime(mine / "data" / "large.bin", ns=(1, 1))
    assert pinned.changes_of([large]) == [large.path]
    (mine / "data" / "large.bin").unlink()
    assert pinned.changes_of([large]) == [large.path]


def test_code_and_small_files_are_copied_before_the_total_is_reached(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pinned, "MOST_BYTES", 1000)
    write(mine / "a.bin", "x" * 700)
    write(mine / "b.bin", "x" * 300)
    write(mine / "z.py", "#" * 600)
    assert [file.name for file in pinned.pin(mine, tmp_path / "copy")] == ["a.bin"]


def test_a_link_to_a_file_is_copied_and_a_loop_of_folders_ends(mine: Path, tmp_path: Path):
    write(tmp_path / "elsewhere" / "data.csv", "content")
    (mine / "data.csv").symlink_to(tmp_path / "elsewhere" / "data.csv")
    (mine / "there").symlink_to(tmp_path / "elsewhere")
    (mine / "again").symlink_to(mine)
    (mine / "nowhere").symlink_to(tmp_path / "absent")
    os.mkfifo(mine / "pipe")
    pinned.pin(mine, tmp_path / "copy")
    assert names(tmp_path / "copy") == ["data.csv", "one.py", "there/data.csv"]
    assert not any(path.is_symlink() for path in (tmp_path / "copy").rglob("*"))


def test_too_many_large_files_are_refused_with_a_way_out(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pinned, "MOST_BYTES_EACH", 10)
    monkeypatch.setattr(pinned, "MOST_LARGE", 2)
    for number in range(3):
        write(mine / f"{number}.bin", "x" * 11)
    with pytest.raises(UsageError, match="put data into a subfolder without code"):
        pinned.pin(mine, tmp_path / "copy")


def test_a_folder_of_many_files_is_used_where_it_is(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pinned, "MOST_BYTES", 200)
    monkeypatch.setattr(pinned, "MOST_LARGE", 2)
    for number in range(9):
        write(mine / "images" / "train" / f"{number}.png", "x" * 50)
    write(mine / "small" / "labels.csv", "content")
    (large,) = pinned.pin(mine, tmp_path / "copy")
    assert (large.name, large.path, large.bytes) == ("images", str(mine / "images"), 450)
    assert names(tmp_path / "copy") == ["one.py", "small/labels.csv"]
    stage = pinned.stage_copy(tmp_path / "copy", (large,), tmp_path / "stage")
    assert (stage / "images" / "train" / "8.png").read_text() == "x" * 50
    assert pinned.changes_of([large]) == []
    write(mine / "images" / "train" / "9.png", "x")
    assert pinned.changes_of([large]) == [large.path]


def test_what_tfcompare_itself_wrote_is_not_part_of_a_workload_folder(mine: Path, tmp_path: Path):
    """As with --workload-dir . where runs lie beside the workloads."""
    write(mine / "one.py", f"import _helper\n{BUILD}")
    write(mine / "_helper.py", "x = 1\n")
    before = digest(mine)
    for number in range(2):
        run = mine / "runs" / str(number)
        pinned.pin(mine, run / "workloads")
        write(run / "plan.json", "{}")
        assert names(run / "workloads") == ["_helper.py", "one.py"]
    assert digest(mine) == before


def digest(folder: Path, name: str = "one") -> str:
    return workloads.source_hashes([workloads.all_workloads(folder)[name]])[name]


def test_the_copy_has_the_digest_of_its_folder(mine: Path, tmp_path: Path):
    write(mine / "one.py", f"import _helper\n{BUILD}")
    write(mine / "_helper.py", "x = 1\n")
    pinned.pin(mine, tmp_path / "copy")
    assert digest(tmp_path / "copy") == digest(mine)
