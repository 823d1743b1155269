"""No link below a root is followed, whatever it is that is read or written."""

import errno
import os
import stat
from pathlib import Path

import pytest

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.files import RefusedEntry

MOST = 1000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "in").mkdir(parents=True)
    (tmp_path / "victim").write_text("precious")
    return tmp_path / "root"


def test_a_file_is_read_whole(root: Path):
    (root / "in" / "file").write_bytes(b"content")
    assert files.read(root, root / "in" / "file", MOST) == b"content"


def test_a_file_that_is_too_large_is_not_read(root: Path):
    too_large(root)
    with pytest.raises(OSError, match="more than"):
        files.read(root, root / "in" / "file", MOST)


def test_the_root_itself_may_be_a_link(root: Path, tmp_path: Path):
    (root / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(root)
    assert files.read(tmp_path / "link", tmp_path / "link" / "file", MOST) == b"content"


def link_to_a_file(root: Path) -> None:
    (root / "in" / "file").symlink_to(root.parent / "victim")


def link_to_nothing(root: Path) -> None:
    (root / "in" / "file").symlink_to(root / "nowhere")


def loop(root: Path) -> None:
    (root / "in" / "file").symlink_to("file")


def link_in_the_way(root: Path) -> None:
    (root / "in").rmdir()
    (root.parent / "file").write_text("precious")
    (root / "in").symlink_to(root.parent)


def hard_link(root: Path) -> None:
    os.link(root.parent / "victim", root / "in" / "file")


def pipe(root: Path) -> None:
    os.mkfifo(root / "in" / "file")


def folder(root: Path) -> None:
    (root / "in" / "file").mkdir()


def too_large(root: Path) -> None:
    (root / "in" / "file").write_bytes(b"x" * (MOST + 1))


READS = {
    link_to_a_file: "symbolic link",
    link_to_nothing: "symbolic link",
    loop: "symbolic link",
    link_in_the_way: "symbolic link",
    hard_link: "hard link",
    pipe: "not a regular file",
    folder: "not a regular file",
}


@pytest.mark.parametrize(("plant", "words"), READS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_no_file_of_its_own_is_not_read(root: Path, plant, words: str):
    plant(root)
    with pytest.raises(RefusedEntry, match=words):
        files.read(root, root / "in" / "file", MOST)


@pytest.mark.parametrize("plant", [link_to_a_file, link_to_nothing, loop], ids=lambda plant: plant.__name__)
def test_a_link_in_the_place_of_a_file_is_replaced(root: Path, plant):
    plant(root)
    files.replace(root, root / "in" / "file", b"new")
    assert (root / "in" / "file").read_bytes() == b"new"
    assert not (root / "in" / "file").is_symlink()
    assert (root.parent / "victim").read_text() == "precious"
    assert [path.name for path in (root / "in").iterdir()] == ["file"]


def test_nothing_is_written_through_a_folder_that_is_a_link(root: Path):
    link_in_the_way(root)
    with pytest.raises(RefusedEntry):
        files.replace(root, root / "in" / "victim", b"new")
    with pytest.raises(RefusedEntry):
        files.open_below(root, root / "in" / "victim", os.O_WRONLY | os.O_APPEND)
    assert (root.parent / "victim").read_text() == "precious"


def test_nothing_is_appended_through_a_link(root: Path):
    link_to_a_file(root)
    with pytest.raises(OSError, match="symbolic link"), open(root / "in" / "file", "ab", opener=files.append_opener):
        pass
    assert (root.parent / "victim").read_text() == "precious"


def test_a_file_has_its_permissions_from_the_start(root: Path):
    files.replace(root, root / "file", b"secret", 0o600)
    assert stat.S_IMODE((root / "file").stat().st_mode) == 0o600


def test_a_whole_file_does_not_follow_a_link_that_takes_its_partial_name(root: Path):
    for name in (".file", f".file.{os.getpid()}"):
        (root / name).symlink_to(root.parent / "victim")
    files.write_atomically(root / "file", b"new")
    assert (root / "file").read_bytes() == b"new"
    assert (root.parent / "victim").read_text() == "precious"


def test_a_file_appears_when_all_parts_are_written(root: Path):
    (root / "in" / "file").write_bytes(b"old")
    with files.open_atomically(root / "in" / "file") as file:
        file.write(b"first, ")
        assert (root / "in" / "file").read_bytes() == b"old"
        file.write(b"second")
    assert (root / "in" / "file").read_bytes() == b"first, second"
    assert [path.name for path in (root / "in").iterdir()] == ["file"]


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_a_file_that_is_written_in_part_is_removed(root: Path, failure: type[BaseException]):
    (root / "in" / "file").write_bytes(b"old")

    def write_half() -> None:
        with files.open_atomically(root / "in" / "file") as file:
            file.write(b"half")
            raise failure

    with pytest.raises(failure):
        write_half()
    assert (root / "in" / "file").read_bytes() == b"old"
    assert [path.name for path in (root / "in").iterdir()] == ["file"]


def test_what_a_killed_process_left_in_part_is_removed_and_nothing_behind_a_link(root: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ".plan.json.0123abcd").touch()
    (root / "away").symlink_to(outside)
    (root / "deep").mkdir()
    kept = [root / ".lock", root / "deep" / "plan.json", root / "deep" / ".gitignore", root / ".notes.0123abc"]
    for path in (root / ".plan.json.0123abcd", root / "deep" / ".a.arrow.fedc9876", *kept):
        path.touch()
    before = set(root.rglob("*"))
    files.remove_partial(root)
    assert before - set(root.rglob("*")) == {root / ".plan.json.0123abcd", root / "deep" / ".a.arrow.fedc9876"}
    assert (outside / ".plan.json.0123abcd").exists()


def test_parts_are_not_written_through_a_link(root: Path):
    link_to_a_file(root)
    with files.open_atomically(root / "in" / "file", 0o600) as file:
        file.write(b"new")
    assert not (root / "in" / "file").is_symlink()
    assert stat.S_IMODE((root / "in" / "file").stat().st_mode) == 0o600
    assert (root.parent / "victim").read_text() == "precious"


def test_a_file_written_in_parts_has_the_usual_permissions(root: Path):
    (root / "usual").touch()
    with files.open_atomically(root / "file") as file:
        file.write(b"new")
    assert (root / "file").stat().st_mode == (root / "usual").stat().st_mode


def test_a_folder_appears_when_all_of_it_is_written(root: Path):
    with files.make_folder_atomically(root / "new") as partial:
        (partial / "file").write_text("content")
        assert not (root / "new").exists()
    assert (root / "new" / "file").read_text() == "content"
    assert sorted(path.name for path in root.iterdir()) == ["in", "new"]


def test_a_folder_that_is_written_in_part_is_removed(root: Path):
    def write_half() -> None:
        with files.make_folder_atomically(root / "new") as partial:
            (partial / "file").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert [path.name for path in root.iterdir()] == ["in"]


def test_a_folder_with_content_is_not_replaced(root: Path):
    link_to_a_file(root)
    with pytest.raises(OSError, match=r"not empty|exists"), files.make_folder_atomically(root / "in") as partial:
        (partial / "file").write_text("new")
    assert (root / "in" / "file").is_symlink()
    assert [path.name for path in root.iterdir()] == ["in"]


def test_strangers_are_found_at_any_depth_but_not_where_workers_write(root: Path):
    (root / "results" / "1-1").mkdir(parents=True)
    (root / "results" / "1-1" / "link").symlink_to("/")
    link_to_nothing(root)
    os.mkfifo(root / "pipe")
    (root / "folder").symlink_to(root.parent)
    found = {path.name for path in files.strangers(root, skip=("results",))}
    assert found == {"file", "pipe", "folder"}


def test_what_workers_write_to_may_not_be_a_link_itself(root: Path):
    (root / "results").symlink_to(root.parent)
    assert [path.name for path in files.strangers(root, skip=("results",))] == ["results"]


def test_a_backup_that_shares_its_files_can_still_be_read(root: Path):
    hard_link(root)
    assert files.read(root, root / "in" / "file", MOST, names=None) == b"precious"


def test_a_line_that_does_not_fit_leaves_the_file_as_it_was(root: Path, monkeypatch: pytest.MonkeyPatch):
    files.append(root, root / "file", b"one\n")
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:2]))
    with pytest.raises(OSError, match="No space left"):
        files.append(root, root / "file", b"another\n")
    monkeypatch.undo()
    files.append(root, root / "file", b"two\n")
    assert (root / "file").read_bytes() == b"one\ntwo\n"


def test_folders_are_opened_up_and_links_among_them_are_not(root: Path, tmp_path: Path):
    (tmp_path / "target").mkdir(mode=0o750)
    (root / "in" / "deep").mkdir()
    (root / "link").symlink_to(tmp_path / "target")
    (root / "in" / "deep").chmod(0)
    (root / "in").chmod(0)
    files.open_up(root)
    assert [stat.S_IMODE((root / name).stat().st_mode) for name in ("in", "in/deep")] == [0o700, 0o700]
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o750


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (b"Traceback (most recent call last):\n  File\nImportError: no\n\n", "ImportError: no"),
        (b"x" * 2 * files.LOG_END + b"\nthe end", "the end"),
        (b"y" * 2 * files.LOG_END, "y" * 300),
        (b"\xff\xfe of no encoding\n", "\ufffd\ufffd of no encoding"),
        (b"", ""),
        (
            b"2026-11-26 04:12:33.123456: W tensorflow/x.cc:1] Cannot dlopen\n"
            b"2026-11-26 04:12:33.123457: I tensorflow/y.cc:2] oneDNN\n"
            b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
            b"I0000 00:00:1795667769.640279    7821 port.cc:153] oneDNN custom operations are on.\n",
            "2026-11-26 04:12:33.123456: W tensorflow/x.cc:1] Cannot dlopen",
        ),
    ],
)
def test_what_was_said_last_is_the_last_line_of_a_log(tmp_path: Path, log: bytes, line: str):
    (tmp_path / "log").write_bytes(log)
    assert files.read_last_line(tmp_path / "log") == line


def test_where_there_is_no_log_nothing_was_said(tmp_path: Path):
    assert files.read_last_line(tmp_path / "log") == ""


def test_a_failure_to_write_ends_with_what_to_do(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as told, files.writing("the notes", "take another folder"):
        (tmp_path / "file" / "notes").write_text("lost")
    assert str(told.value) == "cannot write the notes: Not a directory; take another folder"


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is written through to the disk, in order."""
    names: list[str] = []
    real = os.fsync

    def keep(handle: int) -> None:
        real(handle)
        names.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name)

    monkeypatch.setattr(os, "fsync", keep)
    return names


def test_a_file_is_on_the_disk_before_it_has_its_name_and_its_name_after(root: Path, synced: list[str]):
    files.write_atomically(root / "whole", b"content")
    partial, folder = synced
    assert partial.startswith(".whole.")
    assert folder == root.name


def test_what_can_be_made_again_need_not_be_synced(root: Path, synced: list[str]):
    files.write_atomically(root / "whole", b"content", durable=False)
    assert (synced, (root / "whole").read_bytes()) == ([], b"content")


def test_a_folder_of_a_file_system_that_cannot_sync_it_is_no_failure(root: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    files.write_atomically(root / "whole", b"content")
    assert (root / "whole").read_bytes() == b"content"


def test_a_disk_that_fails_is_a_failure_and_leaves_the_old_file(root: Path, monkeypatch: pytest.MonkeyPatch):
    (root / "whole").write_text("old")

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        files.write_atomically(root / "whole", b"new")
    assert sorted(path.name for path in root.iterdir()) == ["in", "whole"]
    assert (root / "whole").read_text() == "old"


def test_files_and_folders_are_synced_without_following_a_link(root: Path, synced: list[str]):
    (root / "deep").mkdir()
    (root / "deep" / "file").touch()
    (root / "link").symlink_to(root / "deep" / "file")
    os.mkfifo(root / "pipe")
    files.sync(root, root / "deep" / "file")
    files.sync(root, root / "deep")
    files.sync(root, root)
    assert synced == ["file", "deep", root.name]
    for name in ("link", "pipe"):
        with pytest.raises(files.RefusedEntry):
            files.sync(root, root / name)


def test_a_tree_is_synced_whole(root: Path, synced: list[str]):
    (root / "deep").mkdir()
    (root / "deep" / "file").touch()
    files.sync_tree(root / "deep")
    files.sync_tree(root / "absent")
    assert sorted(synced) == ["deep", "file"]


def test_a_folder_can_be_left_out_of_a_size(tmp_path: Path):
    for name in ("lib", "home", "lib/home"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"x" * 100_000)
    one = files.tree_size(tmp_path / "home")
    assert one >= 100_000
    assert files.tree_size(tmp_path) == 3 * one
    assert files.tree_size(tmp_path, leave_out=tmp_path / "home") == 2 * one
