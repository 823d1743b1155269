"""Access to files below a folder into which a container or another person may have put links.

No link is ever followed, except by `open_inside`, which follows those that stay below the root. Every path is walked
from its root one folder at a time, by descriptor. The root itself was named by the user and may be a link.
"""

import errno
import os
import re
import secrets
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator.errors import TfCompareError, UsageError

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Files are opened without blocking, because a pipe in place of a file would make this process wait forever.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# A file that is being written has such a name before it takes its final one.
PARTIAL = re.compile(r"\..+\.[0-9a-f]{8}")
# Files are read in chunks of this size, because the size that a file states may not be true.
CHUNK_BYTES = 2**20
SYNC_THREADS = 8
# The kernel follows as many links in one path.
MOST_LINKS = 40
# Source files and tables are limited to this size, because parsing takes a hundred times as much memory.
MOST_TEXT_BYTES = 2**20
# The last LOG_END bytes of a log show its last message, of which LONGEST_LINE letters are kept.
LOG_END, LONGEST_LINE = 4096, 300
# TensorFlow logs information like this, in its old form and in its new one.
CHATTER = re.compile(r"\d{4}-\d\d-\d\d [\d:.]+: I |I\d{4} [\d:.]+ |WARNING: All log messages before absl::")


class RefusedEntry(OSError):
    """An entry below the root that is not what it should be; `strerror` says what it is."""

    def __init__(self, what: str, path: Path) -> None:
        super().__init__(errno.EPERM, what, str(path))


class LeavesRoot(RefusedEntry):
    """A path that links, or `..`, lead out of its root or to a hidden name."""


@contextmanager
def open_inside(root: Path, name: str) -> Iterator[int]:
    """Yield a descriptor (O_PATH) of what a path below the root stands for.

    Links are followed as long as they stay below the root and away from hidden names; otherwise LeavesRoot is raised.
    Nothing is opened twice by its name, so a link that is exchanged meanwhile changes nothing.
    """
    opened: list[tuple[str, int]] = []
    waiting = name.split("/")[::-1]
    links = 0
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while waiting:
            part = waiting.pop()
            if part == ".." and not opened:
                raise LeavesRoot("it leads out of its folder", root / name)
            if part == "..":
                os.close(opened.pop()[1])
            if part in ("", ".", ".."):
                continue
            if is_hidden(part):
                raise LeavesRoot("it leads to a hidden name", root / name)
            within = opened[-1][1] if opened else top
            handle = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
            opened.append((part, handle))
            if not stat.S_ISLNK(os.fstat(handle).st_mode):
                continue
            target = os.readlink("", dir_fd=handle)
            os.close(opened.pop()[1])
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(root / name))
            if target.startswith("/"):
                whole = Path(os.path.realpath(root))
                if not Path(target).is_relative_to(whole):
                    raise LeavesRoot("it leads out of its folder", root / name)
                target = Path(target).relative_to(whole).as_posix()
                while opened:
                    os.close(opened.pop()[1])
            waiting += target.split("/")[::-1]
        yield opened[-1][1] if opened else top
    finally:
        for _, handle in opened:
            os.close(handle)
        os.close(top)


def is_hidden(name: str) -> bool:
    """Return whether a name is one that no copy of a folder includes."""
    return name.startswith(".") or name == "__pycache__"


@contextmanager
def read_inside(root: Path, name: str) -> Iterator[BufferedReader]:
    """Yield the content of a regular file below the root that `open_inside` finds; raise OSError for anything else."""
    with open_inside(root, name) as handle:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise RefusedEntry("it is not a regular file", root / name)
        with open(f"/proc/self/fd/{handle}", "rb") as file:
            yield file


@contextmanager
def open_folder(root: Path, *parts: str) -> Iterator[int]:
    """Open a folder below the root and yield its descriptor."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, part in enumerate(parts, 1):
            try:
                inner = os.open(part, FOLDER, dir_fd=handle)
            except OSError as error:
                raise _explain(error, root.joinpath(*parts[:depth])) from error
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _explain(error: OSError, path: Path) -> OSError:
    """Return an error that names a symbolic link as the cause.

    The kernel's own error for a link depends on how it was opened.
    """
    if error.errno in (errno.ELOOP, errno.ENOTDIR) and path.is_symlink():
        return RefusedEntry("it is a symbolic link, and a run folder has none", path)
    return error


def read(root: Path, path: Path, most: int, names: int | None = 1) -> bytes:
    """Return the content of a regular file of at most `most` bytes; raise OSError otherwise.

    The file must have exactly `names` names (hard links); with None, their number is not checked.
    """
    handle = open_below(root, path, READ)
    status = os.fstat(handle)
    wrong = "" if stat.S_ISREG(status.st_mode) else "it is not a regular file"
    if names and status.st_nlink != names and not wrong:
        wrong = "it has a second name (a hard link)"
    if wrong:
        os.close(handle)
        raise RefusedEntry(wrong, path)
    return _read_to_end(handle, path, most)


def read_named(path: Path, most: int) -> bytes:
    """Return the content of a file that the user named, at most `most` bytes; raise OSError otherwise.

    A link is followed. A pipe, a device or a folder is an error.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        number, what = (errno.EISDIR, "Is a directory") if stat.S_ISDIR(mode) else (errno.EINVAL, "Not a regular file")
        raise OSError(number, what, str(path))
    return _read_to_end(handle, path, most)


def tree_size(path: Path, leave_out: Path | None = None) -> int:
    """Return how much disk space the files below a folder take; a file with several names counts once.

    The folder `leave_out` in it does not count.
    """
    bytes_by_inode = {}
    for parent, folders, names in os.walk(path):
        folders[:] = [folder for folder in folders if os.path.join(parent, folder) != os.fspath(leave_out or "")]
        for name in names:
            with suppress(OSError):
                status = os.lstat(os.path.join(parent, name))
                bytes_by_inode[status.st_ino] = status.st_blocks * 512
    return sum(bytes_by_inode.values())


def read_text(path: Path) -> str:
    """Return the text of a source file or a table that the user named; raise OSError or UnicodeDecodeError."""
    return read_named(path, MOST_TEXT_BYTES).decode("utf-8")


def read_text_in(path: Path, owner: int | None = None) -> str:
    """Return the text of a file in its folder, as `open_inside` finds it; raise OSError or ValueError.

    If an owner is given, a file of another user is an error.
    """
    with read_inside(path.parent, path.name) as file:
        if owner is not None and os.fstat(file.fileno()).st_uid != owner:
            raise RefusedEntry("it belongs to another user", path)
        data = file.read(MOST_TEXT_BYTES + 1)
    if len(data) > MOST_TEXT_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_TEXT_BYTES / 2**20:.0f} MiB", str(path))
    return data.decode("utf-8")


def read_toml(path: Path, what: str, read: Callable[[Path], str] = read_text) -> tuple[dict[str, Any], str]:
    """Return the tables and the text of a TOML file that the user named; raise UsageError, which calls it `what`."""
    # Shell completion does not need it.
    import tomllib

    try:
        text = read(path)
        return tomllib.loads(text), text
    except OSError as error:
        raise UsageError(f"{path}: {what} cannot be read: {error.strerror}") from error
    # A number of 5,000 digits, or a thousand nested lists, raises an error that is not one of TOML's own.
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not TOML: {error}") from error


def _read_to_end(handle: int, path: Path, most: int) -> bytes:
    """Return the rest of a file, of at most `most` bytes, and close it; raise OSError if it has more."""
    parts: list[bytes] = []
    count = 0
    with os.fdopen(handle, "rb", buffering=0) as file:
        # The file is read in one piece, which is not copied. It may grow meanwhile.
        size = os.fstat(handle).st_size
        while chunk := file.read(min(size, most) if not parts and size else CHUNK_BYTES):
            parts.append(chunk)
            count += len(chunk)
            if count > most or size > most:
                raise OSError(errno.EFBIG, f"it has more than {most / 2**20:.0f} MiB", str(path))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def open_below(root: Path, path: Path, flags: int) -> int:
    """Open a file below the root, or with fitting flags a folder or the root itself, and return its descriptor."""
    *parents, name = path.relative_to(root).parts or (".",)
    with open_folder(root, *parents) as within:
        try:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=within)
        except OSError as error:
            raise _explain(error, path) from error


@contextmanager
def open_replacement(root: Path, path: Path, mode: int | None = None, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a temporary file that takes the place of `path` when the block ends, and is removed if the block raises.

    A link at `path` is replaced, not followed. If `mode` is given, it is set before any content is written. If the file
    is to be durable, content and name are on the disk when the block has ended: after a loss of power there is the old
    file or the new one.
    """
    *parents, name = path.relative_to(root).parts
    partial = f".{name}.{secrets.token_hex(4)}"
    with open_folder(root, *parents) as within:
        handle = os.open(partial, NEW, 0o666 if mode is None else 0o600, dir_fd=within)
        try:
            with os.fdopen(handle, "wb") as file:
                if mode is not None:
                    os.fchmod(handle, mode)
                yield file
                if durable:
                    file.flush()
                    os.fsync(handle)
            os.replace(partial, name, src_dir_fd=within, dst_dir_fd=within)
        except BaseException:
            with suppress(OSError):
                os.unlink(partial, dir_fd=within)
            raise
        if durable:
            _sync_names(within)


def _sync_names(folder: int) -> None:
    """Write the names in an open folder through to the disk."""
    try:
        os.fsync(folder)
    except OSError as error:
        # Some network file systems do this by themselves, and refuse it.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def remove_partial(root: Path) -> None:
    """Remove the files that a process had begun to write when it was killed; no process may be writing there."""
    for *_, names, within in os.fwalk(root):
        for name in filter(PARTIAL.fullmatch, names):
            with suppress(OSError):
                os.unlink(name, dir_fd=within)


def replace(root: Path, path: Path, data: bytes, mode: int | None = None, *, durable: bool = True) -> None:
    """Write a file completely or not at all, as `open_replacement` does."""
    with open_replacement(root, path, mode, durable=durable) as file:
        file.write(data)


def append(root: Path, path: Path, data: bytes) -> None:
    """Append all of the data to a file, or none of it if that fails."""
    handle = open_below(root, path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        before = os.fstat(handle).st_size
        try:
            written = os.write(handle, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle, before)
            raise
    finally:
        os.close(handle)


def sync(root: Path, path: Path) -> None:
    """Write a regular file or a folder through to the disk; raise OSError if it is neither, or gone."""
    handle = open_below(root, path, READ)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            _sync_names(handle)
        elif stat.S_ISREG(mode):
            os.fsync(handle)
        else:
            raise RefusedEntry("it is not a regular file", path)
    finally:
        os.close(handle)


def sync_tree(root: Path) -> None:
    """Write every file and folder below a folder, and the folder itself, through to the disk."""
    paths = [Path(inner, name) for inner, _, names in os.walk(root) for name in (*names, "")]
    # A disk writes in one go what several threads ask for at once.
    with ThreadPoolExecutor(SYNC_THREADS) as pool:
        for _ in pool.map(partial(sync, root), paths):
            pass


def read_last_line(log: Path, since: int = 0) -> str:
    """Return the last line of a log that says something; after a traceback or an abort, it is the cause.

    What was written before the byte `since` is left out.
    """
    with suppress(OSError), log.open("rb") as handle:
        handle.seek(max(since, log.stat().st_size - LOG_END))
        lines = handle.read().decode("utf-8", "replace").splitlines()
        said = (line.strip()[:LONGEST_LINE] for line in reversed(lines) if line.strip() and not CHATTER.match(line))
        return next(said, "")
    return ""


def cut_to_end(log: Path, most: int, kept: int) -> None:
    """Cut a log of more than `most` bytes back to its last `kept` bytes, while other processes may append to it."""
    with suppress(OSError):
        if log.lstat().st_size <= most:
            return
        handle = os.open(log, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            cut = os.fstat(handle).st_size - kept
            end = os.pread(handle, kept, cut)
            os.ftruncate(handle, 0)
            os.write(handle, f"[tfcompare cut {cut} bytes that were before this]\n".encode() + end)
        finally:
            os.close(handle)


def rewrite(log: Path, most: int, change: Callable[[bytes], bytes]) -> None:
    """Change the first `most` bytes of a log in place and drop the rest; anything but a regular file stays as it is."""
    with suppress(OSError):
        handle = os.open(log, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return
            before = os.pread(handle, most, 0)
            if (after := change(before)) != before:
                os.ftruncate(handle, os.pwrite(handle, after, 0))
        finally:
            os.close(handle)


def open_up(root: Path) -> None:
    """Give the owner access to every folder below, whatever its permissions are."""
    with suppress(OSError):
        for _, folders, _, within in os.fwalk(root):
            for name in folders:
                with suppress(OSError):
                    inner = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=within)
                    try:
                        os.chmod(f"/proc/self/fd/{inner}", 0o700)
                    finally:
                        os.close(inner)


def remove_tree(root: Path) -> None:
    """Remove a folder that a worker wrote to, whatever permissions and however many levels it left behind."""
    with suppress(RecursionError):
        open_up(root)
        shutil.rmtree(root, ignore_errors=True)
    if os.path.lexists(root):
        # Python descends only as many levels as it has frames or descriptors. These programs have no such limit.
        for argv in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*argv, "--", str(root)], capture_output=True, check=False)


def strangers(root: Path, skip: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield everything below the root that is neither a folder nor a regular file.

    Folders named in `skip`, directly under the root, are not searched.
    """
    for inner, folders, files in os.walk(root):
        here = Path(inner)
        if here == root:
            folders[:] = [name for name in folders if name not in skip or (here / name).is_symlink()]
        for name in sorted([*folders, *files]):
            # A run in progress writes and removes files meanwhile.
            with suppress(FileNotFoundError):
                mode = (here / name).lstat().st_mode
                if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                    yield here / name


def append_opener(path: str, flags: int) -> int:
    """Open a file for `open(..., opener=)`; a link as the last part of the path is an error."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


@contextmanager
def writing(what: Path | str, remedy: str, failure: type[TfCompareError] = UsageError) -> Iterator[None]:
    """Turn an operating system's error into a `failure`: what cannot be written, why, and what to do."""
    try:
        yield
    except OSError as error:
        raise failure(f"cannot write {what}: {error.strerror or error}; {remedy}") from error


def write_atomically(path: Path, data: bytes, mode: int | None = None, *, durable: bool = True) -> None:
    """Write a file as a whole; if `mode` is given, it is set before any content is written.

    A file of which there are thousands and which can be made again need not be durable: each sync takes milliseconds.
    """
    replace(path.parent, path, data, mode, durable=durable)


def open_atomically(path: Path, mode: int | None = None) -> AbstractContextManager[BinaryIO]:
    """Write a file in parts; it appears as a whole when the block ends, or not at all if the block raises."""
    return open_replacement(path.parent, path, mode)


@contextmanager
def make_folder_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `path` when the block ends, and is removed if the block raises.

    Raises OSError if `path` is a folder with content by then.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    partial.mkdir()
    try:
        yield partial
        os.rename(partial, path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
