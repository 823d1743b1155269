"""The workload folder of a run: copied when the run starts, so that a file edited meanwhile changes nothing."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.model import LargeFile

MOST_BYTES_EACH, MOST_BYTES = 10 * 10**6, 100 * 10**6
# Each is a mount of its own in a container.
MOST_LARGE = 50
MOST_FILES = 20_000


def files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file below a folder by its relative name, without hidden ones and caches. Links are followed once."""
    seen: set[tuple[int, int]] = set()
    for inner, folders, names in os.walk(folder, followlinks=True):
        found = os.stat(inner)
        if (found.st_dev, found.st_ino) in seen:
            folders.clear()
            continue
        seen.add((found.st_dev, found.st_ino))
        folders[:] = sorted(name for name in folders if not (name.startswith(".") or name == "__pycache__"))
        for name in sorted(names):
            path = Path(inner, name)
            if not name.startswith(".") and path.is_file():
                yield path.relative_to(folder).as_posix(), path


def divide(folder: Path) -> tuple[list[tuple[str, Path]], tuple[LargeFile, ...]]:
    """The files of a workload folder that are copied, and those that are not; raises UsageError."""
    sizes = sorted((not name.endswith(".py"), path.stat().st_size, name, path) for name, path in files(folder))
    if len(sizes) > MOST_FILES:
        raise UsageError(f"--workloads {folder}: it holds more than {MOST_FILES} files; keep data in another folder")
    small, large, total = [], [], 0
    # Code first, then the smallest.
    for _, size, name, path in sizes:
        if size > MOST_BYTES_EACH or total + size > MOST_BYTES:
            large.append(describe(name, path))
        else:
            total += size
            small.append((name, path))
    if len(large) > MOST_LARGE:
        raise UsageError(
            f"--workloads {folder}: {len(large)} files exceed {MOST_BYTES_EACH // 10**6} MB each or "
            f"{MOST_BYTES // 10**6} MB together, and at most {MOST_LARGE} may; join them, or move them elsewhere"
        )
    return small, tuple(large)


def pin(folder: Path, copy: Path) -> tuple[LargeFile, ...]:
    """Copy a workload folder; an empty file keeps the place of each that is too large. Raises UsageError."""
    try:
        small, large = divide(folder)
        for name, source in (*small, *((file.name, None) for file in large)):
            place = copy / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if source:
                shutil.copyfile(source, place)
            else:
                place.touch()
        # Workers may run as another user; other people do not get past the run directory.
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    except OSError as error:
        raise _unusable(folder, error) from error
    return large


def noted(large: Sequence[LargeFile]) -> list[str]:
    """One line for people per file that is not copied."""
    return [
        f"{file.name} ({file.bytes / 1e6:.0f} MB) is not copied: versions read {file.path}, which must not change "
        "during the run"
        for file in large
    ]


def _unusable(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"--workloads {folder}: {error.filename or 'copying it'}: {error.strerror}")


def describe(name: str, path: Path) -> LargeFile:
    found = path.stat()
    return LargeFile(name=name, path=str(path.resolve()), bytes=found.st_size, modified_ns=found.st_mtime_ns)


def changed(large: Sequence[LargeFile]) -> list[str]:
    """The large files that are no longer what they were when the run began."""

    def same(one: LargeFile) -> bool:
        try:
            return describe(one.name, Path(one.path)) == one
        except OSError:
            return False

    return [one.path for one in large if not same(one)]


def staged(copy: Path, large: Sequence[LargeFile], folder: Path) -> Path:
    """The copy as a process without mounts sees it: with the large files in their places."""
    stage = folder / "workloads"
    try:
        shutil.copytree(copy, stage)
        for one in large:
            place = stage / one.name
            place.unlink()
            place.symlink_to(one.path)
    except OSError as error:
        raise _unusable(copy, error) from error
    return stage
