"""The user's trust in folders that other people wrote: in their settings, and in places outside that they use."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from orchestrator import files
from orchestrator.catalog import user_data
from orchestrator.errors import UsageError
from orchestrator.formats import TRUST

# The variable is for machines that run what was reviewed elsewhere.
VARIABLE = "TFCOMPARE_TRUST"
MOST_BYTES = 10 * 2**20


@dataclass(frozen=True)
class Trust:
    """The trust in one folder: the digest of its settings, and places outside of it by their names in it."""

    settings: str = ""
    outside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Trusted:
    """The content of the file: what is trusted, by the folders' paths without links."""

    folders: Mapping[str, Trust]


TRUSTED = TypeAdapter(Trusted)


def is_everything_trusted() -> bool:
    return os.environ.get(VARIABLE) == "1"


def file() -> Path:
    return user_data.folder() / "trusted.json"


def read_all() -> dict[str, Trust]:
    """Return what the user trusts, by the folders' paths without links."""
    try:
        return dict(TRUSTED.validate_json(TRUST.unstamp(files.read_named(file(), MOST_BYTES))).folders)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file()} cannot be used: {str(error).splitlines()[0]}; remove it, and trust again"
        ) from error


def find_trust(folder: Path) -> Trust:
    return read_all().get(str(folder.resolve()), Trust())


def record_trust(trusted: Mapping[Path, Trust]) -> None:
    """Record the user's trust in some folders, which replaces what was recorded for them before."""
    with user_data.changing():
        _write({**read_all(), **{str(folder.resolve()): trust for folder, trust in trusted.items()}})


def remove_trust(folder: Path) -> list[str]:
    """Remove the trust in a folder and in those inside it, and return their paths."""
    with user_data.changing():
        before = read_all()
        removed = [path for path in before if Path(path).is_relative_to(folder.resolve())]
        if removed:
            _write({path: trust for path, trust in before.items() if path not in removed})
    return removed


def _write(trusted: Mapping[str, Trust]) -> None:
    with files.writing(file(), user_data.REMEDY):
        files.write_atomically(file(), TRUST.stamp(TRUSTED.dump_json(Trusted(trusted), indent=1)) + b"\n", 0o600)
