"""The location of the history.

It is apart from `store`, which imports pyarrow: `nightly serve` waits for days and does without these 50 MB of memory.
"""

import os
from pathlib import Path

from orchestrator.catalog import user_data

VARIABLE = "TFCOMPARE_HISTORY"


def history_path(asked: Path | None) -> Path:
    """Return the history that was asked for, by a flag or in the environment, or else the user's own."""
    named = asked or os.environ.get(VARIABLE)
    return (Path(named) if named else user_data.directory() / "history").absolute()
