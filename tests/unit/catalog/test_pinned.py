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


def test_folders_without_a_file_are_copied(mine: Path, tmp_path: Path):
    write(mine / "kept" / ".gitkeep", "")
    (mine / "logs" / "deep").mkdir(parents=True)
    (mine / ".hidden" / "empty").mkdir(parents=True)
    pinned.pin(mine, tmp_path / "copy")
    folders = [path for path in (tmp_path / "copy").rglob("*") if path.is_dir()]
    assert {path.relative_to(tmp_path / "copy").as_posix() for path in folders} == {"kept", "logs", "logs/deep"}
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o755}


def test_what_can_be_executed_can_be_executed_in_the_copy(mine: Path, tmp_path: Path):
    write(mine / "run.sh", "#!/bin/sh\n").chmod(0o700)
    pinned.pin(mine, tmp_path / "copy")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "copy").iterdir()}
    assert modes == {"run.sh": 0o755, "one.py": 0o644}


def test_a_large_file_is_not_copied_and_is_recorded(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pinned, "MOST_BYTES_EACH", 1000)
    write(mine / "data" / "large.bin", "x" * 1001)
    (large,) = pinned.pin(mine, tmp_path / "copy")
    assert (large.name, large.path, large.bytes) == ("data/large.bin", str(mine / "data" / "large.bin"), 1001)
    assert (tmp_path / "copy" / "data" / "large.bin").read_text() == "", "the place to mount it"
    stage = pinned.stage_copy(tmp_path / "copy", (large,), tmp_path / "stage")
    assert (stage / "data" / "large.bin").read_text() == "x" * 1001
    assert (stage / "one.py").read_text() == BUILD
    assert "large.bin" in pinned.describe_large_files((large,))[0]
    assert pinned.find_changed_files([large]) == []
    write(mine / "data" / "large.bin", "y" * 1001)
    os.utime(mine / "data" / "large.bin", ns=(1, 1))
    assert pinned.find_changed_files([large]) == [large.path]
    (mine / "data" / "large.bin").unlink()
    assert pinned.find_changed_files([large]) == [large.path]


def test_code_and_small_files_are_copied_before_the_total_is_reached(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pinned, "MOST_BYTES", 1000)
    write(mine / "a.bin", "x" * 700)
    write(mine / "b.bin", "x" * 300)
    write(mine / "z.py", "#" * 600)
    assert [file.name for file in pinned.pin(mine, tmp_path / "copy")] == ["a.bin"]


def test_links_that_stay_in_the_folder_are_copied_and_a_loop_of_folders_ends(mine: Path, tmp_path: Path):
    write(mine / "real" / "data.csv", "content")
    (mine / "data.csv").symlink_to("real/data.csv")
    (mine / "there").symlink_to(mine / "real")
    (mine / "real" / "up").symlink_to("..")
    (mine / "round").symlink_to("round")
    (mine / "nowhere").symlink_to(tmp_path / "absent")
    os.mkfifo(mine / "pipe")
    pinned.pin(mine, tmp_path / "copy")
    # Which of its names a folder has is the first that is found.
    assert names(tmp_path / "copy") == ["data.csv", "one.py", "real/data.csv"]
    assert (tmp_path / "copy" / "data.csv").read_text() == "content"
    assert not any(path.is_symlink() for path in (tmp_path / "copy").rglob("*"))


PRIVATE = "PRIVATE-KEY"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "secret"
    write(folder / "id_rsa", PRIVATE).chmod(0o600)
    return folder


# A link, and where it leads to from the workload folder.
LEAVING = {
    "to a folder": ("assets", "../secret"),
    "to a file": ("assets", "../secret/id_rsa"),
    "by its whole path": ("assets", "{outside}"),
    "through the folder and out of it": ("sub/assets", "../../secret"),
    "by another link": ("assets", "hop"),
    "by a whole path that begins in the folder": ("assets", "{mine}/../secret"),
    "to a hidden file of the folder": ("assets", ".env"),
    "to a hidden folder": ("assets", ".git/config"),
}


@pytest.mark.parametrize(("name", "target"), LEAVING.values(), ids=LEAVING)
def test_a_link_that_leads_out_of_the_folder_is_refused_with_what_allows_it(
    mine: Path, secret: Path, tmp_path: Path, name: str, target: str
):
    for hidden in (".env", ".git/config"):
        write(mine / hidden, PRIVATE)
    if target == "hop":
        (mine / ".hop").symlink_to(secret)
        target = ".hop"
    (mine / name).parent.mkdir(exist_ok=True)
    (mine / name).symlink_to(target.format(outside=secret, mine=mine))
    place = (mine / name).resolve()
    with pytest.raises(UsageError) as refused:
        pinned.pin(mine, tmp_path / "copy")
    message = str(refused.value)
    assert "\n" not in message
    assert f"{name} is a link to {str(place)!r}" in message
    assert f"`--data {name}={place}` allows it, and so does `tfcompare trust {mine}`" in message
    assert PRIVATE not in message
    assert not list(tmp_path.rglob("copy/**/*"))


def test_what_the_user_names_in_the_place_of_a_link_is_used_where_it_is(mine: Path, secret: Path, tmp_path: Path):
    (mine / "assets").symlink_to(secret)
    write(tmp_path / "other" / "data.csv", "content")
    (large,) = pinned.pin(mine, tmp_path / "copy", {"assets": tmp_path / "other"})
    assert (large.name, large.path) == ("assets", str(tmp_path / "other"))
    assert names(tmp_path / "copy") == ["one.py"]
    stage = pinned.stage_copy(tmp_path / "copy", (large,), tmp_path / "stage")
    assert [path.name for path in (stage / "assets").iterdir()] == ["data.csv"]


def test_a_file_that_becomes_a_link_after_it_was_listed_is_not_followed(
    mine: Path, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(mine / "sub" / "data.csv", "content")
    divide = pinned.divide_files

    def exchange(*arguments: object) -> object:
        found = divide(*arguments)
        (mine / "sub" / "data.csv").unlink()
        (mine / "sub").rmdir()
        write(secret / "data.csv", PRIVATE)
        (mine / "sub").symlink_to(secret)
        return found

    monkeypatch.setattr(pinned, "divide_files", exchange)
    with pytest.raises(UsageError, match="it leads out of its folder"):
        pinned.pin(mine, tmp_path / "copy")
    assert PRIVATE not in "".join(path.read_text() for path in (tmp_path / "copy").rglob("*") if path.is_file())


def test_a_large_file_that_becomes_a_link_counts_as_changed(
    mine: Path, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pinned, "MOST_BYTES_EACH", 1000)
    write(mine / "large.bin", "x" * 1001)
    (large,) = pinned.pin(mine, tmp_path / "copy")
    (mine / "large.bin").rename(secret / "large.bin")
    (mine / "large.bin").symlink_to(secret / "large.bin")
    assert pinned.find_changed_files([large]) == [large.path]
    with pytest.raises(OSError, match=r"a link has taken its place|symbolic link"):
        pinned.hash_data(large)


def test_links_in_a_folder_of_data_are_neither_followed_nor_hashed(tmp_path: Path, secret: Path):
    write(tmp_path / "data" / "one.csv", "content")
    before = pinned.hash_data(pinned.describe_file("data", tmp_path / "data"))
    (tmp_path / "data" / "two.csv").symlink_to(secret / "id_rsa")
    described = pinned.describe_file("data", tmp_path / "data")
    assert described.bytes == len("content")
    assert pinned.hash_data(described) == before


@pytest.mark.parametrize("name", ["a\nb.csv", "a\x1b[31m.csv", "a\udcff.csv"])
def test_a_name_that_cannot_be_printed_is_refused_in_one_printable_line(mine: Path, tmp_path: Path, name: str):
    write(mine / name, "content")
    with pytest.raises(UsageError, match="a name in it cannot be printed") as refused:
        pinned.pin(mine, tmp_path / "copy")
    assert str(refused.value).isprintable()


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
    assert pinned.find_changed_files([large]) == []
    write(mine / "images" / "train" / "9.png", "x")
    assert pinned.find_changed_files([large]) == [large.path]


def test_what_tfcompare_itself_wrote_is_not_part_of_a_workload_folder(mine: Path, tmp_path: Path):
    """As with --workload-folder . where runs lie beside the workloads."""
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


def test_the_copy_has_the_digest_of_its_folder(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pinned, "MOST_BYTES_EACH", 1000)
    write(mine / "one.py", f"import _helper\n{BUILD}")
    write(mine / "_helper.py", "x = 1\n")
    write(mine / "table.json", "[1]")
    write(mine / "empty.json", "")
    write(mine / "inner" / "labels.txt", "a b")
    (mine / "labels.txt").symlink_to("inner/labels.txt")
    write(mine / "large.bin", "x" * 1001)
    pinned.pin(mine, tmp_path / "copy")
    assert digest(tmp_path / "copy") == digest(mine)
    of_folder, of_copy = (
        workloads.source_hashes([workloads.all_workloads(folder)["one"]]) for folder in (mine, tmp_path / "copy")
    )
    assert of_folder == of_copy
    neighbours = {f"workloads/{name}" for name in ("table.json", "inner/labels.txt", "labels.txt")}
    assert of_folder.keys() == {"worker", "one", *neighbours}


def test_built_in_workloads_have_no_neighbours(mine: Path):
    write(mine / "one.py", BUILD)
    write(mine / "table.json", "[1]")
    of = workloads.all_workloads(mine)
    assert workloads.source_hashes([of["power"]]).keys() == {"worker", "power"}
    assert workloads.source_hashes([of["power"], of["one"]]).keys() == {
        "worker",
        "power",
        "one",
        "workloads/table.json",
    }
