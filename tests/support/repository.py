"""Repositories of git for tests, made without the settings of this machine."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

OWN = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"} | {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "tests"), ("EMAIL", "tests@invalid"), ("DATE", "2024-03-01T12:00:00Z"))
}


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """What git prints."""
    done = subprocess.run(
        ["git", "-C", folder, *arguments], env={**os.environ, **OWN}, input=stdin, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def begin(folder: Path) -> Path:
    """A folder with an empty repository."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def commit(folder: Path, files: Mapping[str, str], tag: str = "") -> str:
    """Write files, and return their commit."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", tag or "a change")
    if tag:
        git(folder, "tag", tag)
    return git(folder, "rev-parse", "HEAD")
