"""What git says about this repository, or about another folder."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def git(*arguments: str, root: Path = ROOT) -> str | None:
    """Return what git prints; None where it fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip("\n") if done.returncode == 0 else None


def current_commit() -> str:
    """Return the short hash of the commit that is checked out; nothing outside of a clone."""
    return git("rev-parse", "--short=8", "HEAD") or ""
