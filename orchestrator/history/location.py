"""The location of the history.

It is separate from `store`, which imports pyarrow: `nightly serve` waits for days, and pyarrow would take 50 MB.
"""

import os
import shlex
from pathlib import Path

from orchestrator.catalog import user_data

VARIABLE = "TFCOMPARE_HISTORY"


def history_path(asked: Path | None) -> Path:
    """Return the history that a flag or the environment names, or else the user's own."""
    named = asked or os.environ.get(VARIABLE)
    return Path(named).absolute() if named else _own()


def name_in_commands(history: Path) -> str:
    """Return the flag that names a history in a command, or '' for the user's own."""
    return "" if history == _own() else f" --history {shlex.quote(str(history))}"


def _own() -> Path:
    return (user_data.folder() / "history").absolute()
