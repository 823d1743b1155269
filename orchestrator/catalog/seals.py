"""Seals on folders that this user created on this machine. They reveal folders that another user created or changed.

A seal is a digest made with a key that is kept in the user's data folder. It is stored in the sealed folder, and so
moves with it.
"""

import hmac
import os
import secrets
import shlex
from contextlib import suppress
from pathlib import Path

from orchestrator import files
from orchestrator.catalog import trust, user_data
from orchestrator.errors import UsageError

NAME = "seal"
KEY_BYTES, MOST_BYTES = 32, 2**16


def write_seal(folder: Path, content: bytes) -> None:
    """Add a seal of this content to the seals of a folder; do nothing if no key can be stored."""
    with suppress(UsageError, OSError):
        seals = dict.fromkeys([*_read(folder), _make(content)])
        files.replace(folder, folder / NAME, "".join(f"{seal}\n" for seal in seals).encode(), 0o600)


def require(folder: Path, content: bytes) -> None:
    """Raise UsageError unless the user has sealed this content of the folder, or trusts all folders."""
    if trust.is_everything_trusted() or any(hmac.compare_digest(seal, _make(content)) for seal in _read(folder)):
        return
    command = shlex.join(["tfcompare", "trust", str(folder)])
    raise UsageError(
        f"{folder} was created by another user or was changed: `{command}` shows what would run and asks you to confirm"
    )


def remove_seals(folder: Path) -> bool:
    """Remove the seals of a folder; return whether there were any."""
    there = os.path.lexists(folder / NAME)
    with files.writing(folder / NAME, "remove it yourself"):
        (folder / NAME).unlink(missing_ok=True)
    return there


def _read(folder: Path) -> list[str]:
    try:
        return files.read(folder, folder / NAME, MOST_BYTES).decode("ascii").split()
    except (OSError, UnicodeDecodeError):
        return []


def _make(content: bytes) -> str:
    return hmac.new(_key(), content, "sha256").hexdigest()


def _key() -> bytes:
    """Return the user's key, which is made when it is first needed."""
    path = user_data.folder() / "key"
    with user_data.changing():
        try:
            return files.read(path.parent, path, KEY_BYTES)
        except FileNotFoundError:
            key = secrets.token_bytes(KEY_BYTES)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}; {user_data.REMEDY}") from error
        with files.writing(path, user_data.REMEDY):
            files.write_atomically(path, key, 0o600)
    return key
