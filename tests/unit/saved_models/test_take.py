"""What a worker or a stranger left is copied only if it is what a version saves: plain files, few and small."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.saved_models import take as taking
from orchestrator.saved_models.take import NotTaken, take_model


def make_saved_model(folder: Path) -> Path:
    saved = folder / "model"
    (saved / "variables").mkdir(parents=True)
    (saved / "saved_model.pb").write_bytes(b"graph")
    (saved / "variables" / "variables.data-00000-of-00001").write_bytes(b"12345678")
    return saved


def test_a_file_and_a_folder_are_copied_with_their_sizes(tmp_path: Path):
    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "model.keras").write_bytes(b"zip")
    assert take_model(tmp_path, tmp_path / "left" / "model.keras", tmp_path / "copy.keras") == 3
    assert (tmp_path / "copy.keras").read_bytes() == b"zip"
    saved = make_saved_model(tmp_path / "left")
    assert take_model(tmp_path, saved, tmp_path / "copy") == 13
    assert {path.name for path in (tmp_path / "copy").rglob("*")} == {path.name for path in saved.rglob("*")}
    assert all(
        path.stat().st_mode & 0o077 == (0o055 if path.is_dir() else 0o044) for path in tmp_path.glob("copy/**/*")
    )


def leave_link(saved: Path) -> None:
    (saved / "assets").symlink_to("/etc")


def leave_link_as_file(saved: Path) -> None:
    (saved / "variables" / "more").symlink_to("/etc/passwd")


def leave_pipe(saved: Path) -> None:
    os.mkfifo(saved / "pipe")


def leave_second_name(saved: Path) -> None:
    os.link(saved / "saved_model.pb", saved / "again.pb")


def leave_odd_name(saved: Path) -> None:
    (saved / "a\x1b[2Jb").write_bytes(b"")


def leave_hidden_name(saved: Path) -> None:
    (saved / ".hidden").write_bytes(b"")


def leave_many(saved: Path) -> None:
    for number in range(taking.MOST_FILES):
        (saved / f"file{number}").write_bytes(b"")


def leave_deep(saved: Path) -> None:
    (saved / "/".join("abcdefgh")).mkdir(parents=True)


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        (leave_link, "assets is a symbolic link"),
        (leave_link_as_file, "more is a symbolic link"),
        (leave_pipe, "pipe is not a regular file"),
        (leave_second_name, "is not a regular file, or has hard links"),
        (leave_odd_name, "an odd name"),
        (leave_hidden_name, "an odd name"),
        (leave_many, "more than 200 files"),
        (leave_deep, "6 levels"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_anything_else_is_not_taken_and_leaves_nothing(tmp_path: Path, leave: Callable[[Path], None], words: str):
    saved = make_saved_model(tmp_path / "left")
    leave(saved)
    with pytest.raises(NotTaken, match=words):
        take_model(tmp_path, saved, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_the_model_itself_is_no_link(tmp_path: Path):
    (tmp_path / "model.h5").symlink_to("/etc/passwd")
    with pytest.raises(NotTaken, match="it is a symbolic link"):
        take_model(tmp_path, tmp_path / "model.h5", tmp_path / "copy.h5")


def test_a_link_in_the_way_to_it_is_not_followed(tmp_path: Path):
    make_saved_model(tmp_path / "elsewhere")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "save-1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        take_model(tmp_path / "results", tmp_path / "results" / "save-1" / "model", tmp_path / "copy")


def test_a_large_one_is_not_taken(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(taking, "MOST_BYTES", 12)
    with pytest.raises(NotTaken, match="more than"):
        take_model(tmp_path, make_saved_model(tmp_path), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_file_with_a_large_hole_is_refused_at_once(tmp_path: Path):
    with (tmp_path / "model.h5").open("wb") as file:
        file.truncate(2**41)
    with pytest.raises(NotTaken, match="more than 2048 MiB"):
        take_model(tmp_path, tmp_path / "model.h5", tmp_path / "copy.h5")
    assert not (tmp_path / "copy.h5").exists()
