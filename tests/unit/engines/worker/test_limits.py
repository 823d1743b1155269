"""A folder of results has one file of a worker in it, and nothing in it leads the host elsewhere."""

import os
from pathlib import Path

import pytest

from orchestrator.engines.worker.limits import DEEPEST, MOST_ENTRIES, describe_excess


def test_a_stream_and_a_few_strays_are_no_excess(tmp_path: Path):
    (tmp_path / "stream.arrow").write_bytes(b"x" * 10**6)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "stray").touch()
    os.mkfifo(tmp_path / "pipe")
    assert describe_excess(tmp_path) == ""
    assert describe_excess(tmp_path / "nowhere") == ""


@pytest.mark.parametrize("place", ["", "folder"])
def test_bytes_count_wherever_they_are_and_as_the_disk_has_them(tmp_path: Path, place: str):
    folder = tmp_path / place
    folder.mkdir(exist_ok=True)
    with (folder / "hole").open("wb") as hole:
        hole.truncate(2**40)
    assert describe_excess(tmp_path, most_bytes=2**20) == ""
    for number in range(3):
        (folder / str(number)).write_bytes(b"x" * 2**19)
    assert describe_excess(tmp_path, most_bytes=2**20) == "takes more than 1 MiB"


def test_many_files_are_too_much_though_they_are_empty(tmp_path: Path):
    for number in range(MOST_ENTRIES):
        (tmp_path / str(number)).touch()
    assert describe_excess(tmp_path) == ""
    (tmp_path / "more").touch()
    assert describe_excess(tmp_path) == f"holds more than {MOST_ENTRIES} files"


def test_links_are_not_followed(tmp_path: Path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "root").symlink_to("/usr")
    (tmp_path / "results" / "self").symlink_to(".")
    assert describe_excess(tmp_path / "results") == ""


def test_folders_in_folders_without_end_are_too_much(tmp_path: Path):
    for depth in range(DEEPEST):
        tmp_path.joinpath(*"a" * depth).mkdir(exist_ok=True)
    assert describe_excess(tmp_path) == ""
    tmp_path.joinpath(*"a" * (DEEPEST + 1)).mkdir(parents=True)
    assert describe_excess(tmp_path) == f"is more than {DEEPEST} levels deep"


@pytest.mark.skipif(os.getuid() == 0, reason="root can look into any folder")
def test_a_folder_that_is_closed_is_too_much(tmp_path: Path):
    (tmp_path / "closed").mkdir(mode=0)
    assert describe_excess(tmp_path) == "cannot be looked into: Permission denied"
