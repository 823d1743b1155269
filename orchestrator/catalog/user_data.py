"""The user's folders, and the user's own additions to the table of versions.

These are versions that were locked on first use, and image digests that a registry reported.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.file_lock import wait_for_lock

REMEDY = "TFCOMPARE_DATA names another folder"


def folder() -> Path:
    base = os.environ.get("TFCOMPARE_DATA") or os.environ.get("XDG_DATA_HOME")
    return Path(base or home("TFCOMPARE_DATA") / ".local" / "share") / "tfcompare"


def cache() -> Path:
    """Return the folder for everything that can be created again."""
    base = os.environ.get("TFCOMPARE_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(base or home("TFCOMPARE_CACHE") / ".cache") / "tfcompare"


def home(variable: str) -> Path:
    """Return the home of this user.

    If there is none, the error advises setting `variable` to another folder.
    """
    try:
        return Path.home()
    except RuntimeError as error:
        raise UsageError(f"this user has no home folder: set HOME, or {variable} to a folder") from error


def find_user_table() -> Path:
    return folder() / "versions.toml"


def locks() -> Path:
    return folder() / "locks"


def has_lock(name: str) -> bool:
    """Return whether a lock of this name is here; a name from elsewhere leads to no other folder."""
    return os.path.isfile(locks() / f"{Path(name).name}.txt")


def digests_file() -> Path:
    return folder() / "digests.toml"


def digests() -> dict[str, str]:
    """Return the digest of each image, as found by `tfcompare images lock`."""
    path = digests_file()
    try:
        return {str(image): str(digest) for image, digest in tomllib.loads(files.read_text(path)).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}; remove it and run `tfcompare images lock` again") from error


def write_digests(new_digests: Mapping[str, str]) -> Path:
    import tomlkit

    with changing():
        table = tomlkit.dumps({**digests(), **new_digests}, sort_keys=True)
        return write_user_file(digests_file(), "# Written by: tfcompare images lock\n" + table)


@contextmanager
def changing() -> Iterator[None]:
    """Hold the folder's lock while a file in it is read and rewritten.

    Without the lock, what another run writes in between would be lost.
    """
    path = folder() / ".lock"
    with files.writing(path, REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("w")
    with handle:
        wait_for_lock(handle.fileno())
        yield


def write_user_file(path: Path, text: str, mode: int | None = None) -> Path:
    with files.writing(path, REMEDY):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(path, text.encode(), mode)
    return path
