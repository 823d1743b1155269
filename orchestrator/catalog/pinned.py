"""The workload folder of a run, copied when the run starts so that a file edited meanwhile changes nothing."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from orchestrator import contract
from orchestrator.errors import UsageError
from orchestrator.model import LargeFile

MOST_BYTES_EACH, MOST_BYTES = 10 * 10**6, 100 * 10**6
# In a container each is a separate mount.
MOST_LARGE = 50
MOST_FILES = 20_000
# A folder with any of these files is the directory of a run, a profile or a search.
OURS = {"begun.json", "plan.json", "profile.json", "bisect.json"}


def files(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield every file below a folder with its relative name.

    Hidden files, caches and what tfcompare writes are left out. Links are followed once.
    """
    seen: set[tuple[int, int]] = set()
    for inner, directories, names in os.walk(directory, followlinks=True):
        status = os.stat(inner)
        if (status.st_dev, status.st_ino) in seen or (inner != str(directory) and OURS & set(names)):
            directories.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        directories[:] = sorted(name for name in directories if not (name.startswith(".") or name == "__pycache__"))
        for name in sorted(names):
            path = Path(inner, name)
            if not name.startswith(".") and path.is_file():
                yield path.relative_to(directory).as_posix(), path


def divide(directory: Path) -> tuple[list[tuple[str, Path]], tuple[LargeFile, ...]]:
    """Return the files of a workload folder to copy, and those that are not copied.

    The latter are large files or, if there are many, whole folders of data. Raises UsageError.
    """
    paths = dict(files(directory))
    if len(paths) > MOST_FILES:
        raise UsageError(
            f"--workload-dir {directory}: it holds more than {MOST_FILES} files; keep data in another folder"
        )
    beyond = _beyond(paths)
    if len(beyond) > MOST_LARGE:
        with_code = {_top(name) for name in paths if name.endswith(".py")}
        beyond = {name if _top(name) in with_code else _top(name) for name in beyond}
    if len(beyond) > MOST_LARGE:
        raise UsageError(
            f"--workload-dir {directory}: {len(beyond)} files exceed {MOST_BYTES_EACH // 10**6} MB each or "
            f"{MOST_BYTES // 10**6} MB together, and at most {MOST_LARGE} may; put data into a subfolder without code"
        )
    small = [(name, path) for name, path in paths.items() if name not in beyond and _top(name) not in beyond]
    return small, tuple(describe(name, directory / name) for name in sorted(beyond))


def _beyond(paths: Mapping[str, Path]) -> set[str]:
    """Return the files that are too large, or exceed the total. Code counts first, then the smallest files."""
    sizes = sorted((not name.endswith(".py"), path.stat().st_size, name) for name, path in paths.items())
    beyond, total = set(), 0
    for _, size, name in sizes:
        if size > MOST_BYTES_EACH or total + size > MOST_BYTES:
            beyond.add(name)
        else:
            total += size
    return beyond


def _top(name: str) -> str:
    """Return the top-level folder that a file is in, or the file itself."""
    return name.partition("/")[0]


def pin(directory: Path, copy: Path) -> tuple[LargeFile, ...]:
    """Copy a workload folder; an empty file or folder marks the place of what is too large. Raises UsageError."""
    try:
        small, large = divide(directory)
        for name, source in (*small, *((file.name, Path(file.path)) for file in large)):
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                target.mkdir()
            elif any(name == file.name for file in large):
                target.touch()
            else:
                shutil.copyfile(source, target)
        # Workers may run as another user; other people do not get past the run directory.
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    except OSError as error:
        raise _unusable(directory, error) from error
    return large


def place_data(data: Mapping[str, Path], copy: Path) -> tuple[LargeFile, ...]:
    """Mark the place of data in the copy of a workload folder, by their name there; they are never copied."""
    found = tuple(describe(f"{contract.DATA}/{name}", place) for name, place in sorted(data.items()))
    for file in found:
        target = copy / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.mkdir() if Path(file.path).is_dir() else target.touch()
    for path in (copy / contract.DATA).rglob("*") if found else ():
        path.chmod(0o755 if path.is_dir() else 0o644)
    return found


def hash_data(file: LargeFile) -> str:
    """Return the digest of a file, or of the names and contents of all files in a folder."""
    digest = hashlib.sha256()
    place = Path(file.path)
    for name, path in files(place) if place.is_dir() else [("", place)]:
        with path.open("rb") as content:
            digest.update(f"{name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def hash_all_data(large: Iterable[LargeFile]) -> dict[str, str]:
    """Return the digests of data by the names under which a run records them."""
    return {file.name: hash_data(file) for file in large if find_data_name(file)}


def find_data_name(file: LargeFile) -> str:
    """Return the name of data in the copy of a workload folder, or '' for another file of it."""
    inner = file.name.removeprefix(f"{contract.DATA}/")
    return "" if inner == file.name else inner


def notes_on(large: Sequence[LargeFile]) -> list[str]:
    """Return one line for people per file that is not copied."""
    return [
        f"{file.name} ({file.bytes / 1e6:.0f} MB) is not copied: versions read {file.path}, which must not change "
        "during the run"
        for file in large
    ]


def _unusable(directory: Path, error: OSError) -> UsageError:
    return UsageError(f"--workload-dir {directory}: {error.filename or 'copying it'}: {error.strerror}")


def describe(name: str, path: Path) -> LargeFile:
    """Return the size and the last change of a file, or of a folder with all that is in it."""
    contents = [path, *(file for _, file in files(path))] if path.is_dir() else [path]
    statuses = [item.stat() for item in contents]
    return LargeFile(
        name=name,
        path=str(path.resolve()),
        bytes=sum(status.st_size for status in statuses[path.is_dir() :]),
        modified_ns=max(status.st_mtime_ns for status in statuses),
    )


def changes_of(large: Sequence[LargeFile]) -> list[str]:
    """Return the large files that have changed since the run began."""

    def same(file: LargeFile) -> bool:
        try:
            return describe(file.name, Path(file.path)) == file
        except OSError:
            return False

    return [file.path for file in large if not same(file)]


def stage_copy(copy: Path, large: Sequence[LargeFile], directory: Path) -> Path:
    """Create the copy as a process without mounts needs it: with links to the large files in their places."""
    stage = directory / "workloads"
    try:
        shutil.copytree(copy, stage)
        for file in large:
            target = stage / file.name
            target.rmdir() if target.is_dir() else target.unlink()
            target.symlink_to(file.path)
    except OSError as error:
        raise _unusable(copy, error) from error
    return stage
