"""What a user's own folder adds to the table of versions: versions locked on first use, and digests that a registry
named."""

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from orchestrator import whole
from orchestrator.errors import UsageError


def folder() -> Path:
    base = os.environ.get("TFCOMPARE_DATA") or os.environ.get("XDG_DATA_HOME")
    return Path(base or Path.home() / ".local" / "share") / "tfcompare"


def table() -> Path:
    return folder() / "versions.toml"


def locks() -> Path:
    return folder() / "locks"


def digests_file() -> Path:
    return folder() / "digests.toml"


def digests() -> dict[str, str]:
    """By image, as `tfcompare images lock` found them."""
    path = digests_file()
    try:
        return {str(image): str(digest) for image, digest in tomllib.loads(path.read_text()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}; remove it and run `tfcompare images lock` again") from error


def write_digests(found: Mapping[str, str]) -> Path:
    known = {**digests(), **found}
    lines = [f"{json.dumps(image)} = {json.dumps(known[image])}\n" for image in sorted(known)]
    return write(digests_file(), "# Written by: tfcompare images lock\n" + "".join(lines))


def write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole.write(path, text.encode())
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}; TFCOMPARE_DATA names another folder") from error
    return path
