"""The workload folder of a run, copied when the run starts so that a file edited meanwhile changes nothing."""

import hashlib
import os
import shlex
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from orchestrator import contract
from orchestrator import files as confined
from orchestrator.errors import UsageError
from orchestrator.model import LargeFile

MOST_BYTES_EACH, MOST_BYTES = 10 * 10**6, 100 * 10**6
# Each large file or folder is a separate mount in a container.
MOST_LARGE = 50
MOST_FILES = 20_000
# A folder with any of these files is the folder of a run, a profile or a search.
OUTPUT_MARKERS = {"begun.json", "plan.json", "profile.json", "bisect.json"}


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield every file below a folder with its relative name.

    Hidden files, caches and tfcompare's own output are left out. Links that stay in the folder are followed once.
    """
    return ((name, folder / name) for name, status in _walk(folder) if status)


def folders(folder: Path) -> list[str]:
    """Return the names of all folders below a folder that `files` searches, including those without any file."""
    return [name for name, status in _walk_all(folder) if status and stat.S_ISDIR(status.st_mode)]


def find_outside_links(folder: Path) -> dict[str, Path]:
    """Return the links in a folder that lead out of it or to hidden names, each with the path that it leads to."""
    return {name: Path(os.path.realpath(folder / name)) for name, status in _walk(folder) if not status}


def _walk(folder: Path) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield the names that `files` yields, each with its status, or None for a link that leads out of the folder."""
    return ((name, status) for name, status in _walk_all(folder) if not status or stat.S_ISREG(status.st_mode))


def _walk_all(folder: Path) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield the names that `_walk` yields, and each subfolder before its contents."""
    seen: set[tuple[int, int]] = set()
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        entries: dict[str, os.stat_result | None] = {}
        try:
            with confined.open_inside(folder, inner) as handle:
                own = os.fstat(handle)
                names = os.listdir(f"/proc/self/fd/{handle}")
                for name in sorted(name for name in names if not confined.is_hidden(name)):
                    # The name may be a broken link, or that of a file that was removed meanwhile.
                    with suppress(OSError):
                        entries[name] = _read_status(folder, inner, name, handle)
        except OSError:
            # This user may not be allowed to list the folder.
            continue
        if (own.st_dev, own.st_ino) in seen or (inner and OUTPUT_MARKERS & set(names)):
            continue
        seen.add((own.st_dev, own.st_ino))
        if inner:
            yield inner, own
        folders = []
        for name, status in entries.items():
            path = f"{inner}/{name}" if inner else name
            if status is None or stat.S_ISREG(status.st_mode):
                yield path, status
            elif stat.S_ISDIR(status.st_mode):
                folders.append(path)
        waiting += reversed(folders)


def _read_status(folder: Path, inner: str, name: str, within: int) -> os.stat_result | None:
    """Return the status of the file or folder that a name in an open folder leads to, or None if it is outside."""
    status = os.stat(name, dir_fd=within, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        return status
    try:
        with confined.open_inside(folder, f"{inner}/{name}") as handle:
            return os.fstat(handle)
    except confined.LeavesRoot:
        # A broken link does no harm. This raises OSError for one, and the caller ignores it.
        os.stat(folder / inner / name)
        return None


def divide_files(
    folder: Path, outside: Mapping[str, Path] | None = None
) -> tuple[list[tuple[str, Path]], tuple[LargeFile, ...]]:
    """Return the files of a workload folder to copy, and those that are not copied.

    Files that are not copied are large, or the user allows them outside of the folder. If many are large, whole folders
    of data take their place. `outside` maps names in the folder to the paths outside that the user allows; if it is
    None, links out of the folder are left out. Raises UsageError.
    """
    try:
        return _divide(folder, outside)
    except OSError as error:
        raise _unusable(folder, error) from error


def _divide(folder: Path, outside: Mapping[str, Path] | None) -> tuple[list[tuple[str, Path]], tuple[LargeFile, ...]]:
    sizes: dict[str, int] = {}
    folders = 0
    for name, status in _walk_all(folder):
        if not name.isprintable():
            raise UsageError(f"--workload-folder {folder}: a name in it cannot be printed: {name!a}; rename the file")
        if status and stat.S_ISDIR(status.st_mode):
            folders += 1
        elif status:
            sizes[name] = status.st_size
        elif outside is not None and name not in outside:
            place = os.path.realpath(folder / name)
            raise UsageError(
                f"--workload-folder {folder}: {name} is a link to {place!r}, which is outside of the folder or hidden; "
                f"{advise_to_allow(name, place, folder)}"
            )
        if len(sizes) + folders > MOST_FILES:
            raise UsageError(
                f"--workload-folder {folder}: it holds more than {MOST_FILES} files and folders; keep data in another "
                "folder"
            )
    beyond = _find_large_files(sizes)
    if len(beyond) > MOST_LARGE:
        with_code = {_top(name) for name in sizes if name.endswith(".py")}
        beyond = {name if _top(name) in with_code else _top(name) for name in beyond}
    if len(beyond) > MOST_LARGE:
        raise UsageError(
            f"--workload-folder {folder}: {len(beyond)} files exceed {MOST_BYTES_EACH // 10**6} MB each or "
            f"{MOST_BYTES // 10**6} MB together, and at most {MOST_LARGE} may; put data into a subfolder without code"
        )
    small = [(name, folder / name) for name in sizes if name not in beyond and _top(name) not in beyond]
    allowed = {name: place for name, place in (outside or {}).items() if not name.startswith(f"{contract.DATA}/")}
    if inner := [name for name in allowed if _top(name) in beyond]:
        raise UsageError(
            f"--workload-folder {folder}: {inner[0]} is a link out of the folder, in a subfolder that is too large to "
            "be copied; move the link into another subfolder"
        )
    places = {name: _find_place(folder, name) for name in beyond} | allowed
    return small, tuple(describe_file(name, places[name]) for name in sorted(places))


def advise_to_allow(name: str, place: object, folder: Path) -> str:
    """Return how a user allows a workload folder to use a file or folder outside of it."""
    flag, command = shlex.join(["--data", f"{name}={place}"]), shlex.join(["tfcompare", "trust", str(folder)])
    return f"`{flag}` allows it, and so does `{command}`"


def _find_place(folder: Path, name: str) -> Path:
    """Return where a file of the folder really is, whichever links lead to it."""
    with confined.open_inside(folder, name) as handle:
        return Path(os.readlink(f"/proc/self/fd/{handle}"))


def _find_large_files(sizes: Mapping[str, int]) -> set[str]:
    """Return the files that are too large, or exceed the total. Code is counted first, then the smallest files."""
    beyond, total = set(), 0
    for _, size, name in sorted((not name.endswith(".py"), size, name) for name, size in sizes.items()):
        if size > MOST_BYTES_EACH or total + size > MOST_BYTES:
            beyond.add(name)
        else:
            total += size
    return beyond


def _top(name: str) -> str:
    """Return the top-level folder that a file is in, or the file itself."""
    return name.partition("/")[0]


def pin(folder: Path, copy: Path, outside: Mapping[str, Path] | None = None) -> tuple[LargeFile, ...]:
    """Copy a workload folder with its empty folders; raise UsageError if that is not possible.

    An empty file or folder takes the place of each one that is not copied.
    """
    try:
        small, large = divide_files(folder, outside or {})
        # Folders are listed before any copy is made, because the copy may be in the folder.
        inner = folders(folder)
        for name, _ in small:
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with confined.read_inside(folder, name) as source, target.open("xb") as file:
                shutil.copyfileobj(source, file)
                os.fchmod(file.fileno(), os.fstat(source.fileno()).st_mode & 0o700)
        for name in inner:
            if not any(name == file.name or name.startswith(f"{file.name}/") for file in large):
                (copy / name).mkdir(parents=True, exist_ok=True)
        _mark(large, copy)
        # All users may read the copy, since workers may run as another user. The run folder keeps other users out.
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    except OSError as error:
        raise _unusable(folder, error) from error
    return large


def _mark(large: Iterable[LargeFile], copy: Path) -> None:
    """Mark the place of each file or folder that is not copied, where it is mounted or linked."""
    for file in large:
        target = copy / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.mkdir() if Path(file.path).is_dir() else target.touch(exist_ok=False)


def place_data(data: Mapping[str, Path], copy: Path) -> tuple[LargeFile, ...]:
    """Mark the place of each data file or folder in the copy of a workload folder; data are never copied."""
    try:
        found = tuple(describe_file(f"{contract.DATA}/{name}", place) for name, place in sorted(data.items()))
        _mark(found, copy)
    except OSError as error:
        raise _unusable(copy, error) from error
    for path in (copy / contract.DATA).rglob("*") if found else ():
        path.chmod(0o755 if path.is_dir() else 0o644)
    return found


def hash_data(file: LargeFile) -> str:
    """Return the digest of a file, or of the names and contents of all files in a folder."""
    digest = hashlib.sha256()
    place = Path(file.path)
    if place.is_dir():
        for name, status in _walk(place):
            if status:
                with confined.read_inside(place, name) as content:
                    digest.update(_hash_line(name, content))
    else:
        with _open_place(place) as handle, open(f"/proc/self/fd/{handle}", "rb") as content:
            digest.update(_hash_line("", content))
    return digest.hexdigest()


def _hash_line(name: str, content: BufferedReader) -> bytes:
    return f"{name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode(errors="surrogateescape")


def hash_all_data(large: Iterable[LargeFile]) -> dict[str, str]:
    """Return the digests of data by the names under which a run records them."""
    return {file.name: hash_data(file) for file in large if find_data_name(file)}


def find_data_name(file: LargeFile) -> str:
    """Return the name of data in the copy of a workload folder, or '' if the file is not data."""
    inner = file.name.removeprefix(f"{contract.DATA}/")
    return "" if inner == file.name else inner


def describe_large_files(large: Sequence[LargeFile]) -> list[str]:
    """Return one line for users per file that is not copied."""
    return [
        f"{file.name} ({file.bytes / 1e6:.0f} MB) is not copied: versions read {file.path}, which must not change "
        "during the run"
        for file in large
    ]


def _unusable(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"--workload-folder {folder}: {error.filename or 'copying it'}: {error.strerror}")


def describe_file(name: str, path: Path) -> LargeFile:
    """Return the size and the last change of a file, or of a folder with all that is in it. The path has no links."""
    with _open_place(path) as handle:
        status = os.fstat(handle)
    inner = [each for _, each in _walk(path) if each] if stat.S_ISDIR(status.st_mode) else [status]
    return LargeFile(
        name=name,
        path=str(path),
        bytes=sum(each.st_size for each in inner),
        modified_ns=max(each.st_mtime_ns for each in (status, *inner)),
    )


@contextmanager
def _open_place(path: Path) -> Iterator[int]:
    """Yield a descriptor of a file or folder; raise OSError if a link has taken its place."""
    handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.readlink(f"/proc/self/fd/{handle}") != str(path):
            raise confined.RefusedEntry("a link has taken its place", path)
        yield handle
    finally:
        os.close(handle)


def find_changed_files(large: Sequence[LargeFile]) -> list[str]:
    """Return the large files that have changed since the run began."""

    def same(file: LargeFile) -> bool:
        try:
            return describe_file(file.name, Path(file.path)) == file
        except OSError:
            return False

    return [file.path for file in large if not same(file)]


def stage_copy(copy: Path, large: Sequence[LargeFile], folder: Path) -> Path:
    """Create the copy as a process without mounts needs it: with links to the large files in their places."""
    stage = folder / "workloads"
    try:
        shutil.copytree(copy, stage, symlinks=True)
        for file in large:
            target = stage / file.name
            target.rmdir() if target.is_dir() else target.unlink()
            target.symlink_to(file.path)
    except OSError as error:
        raise _unusable(copy, error) from error
    return stage
