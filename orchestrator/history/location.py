"""The default location of the history."""

import os
from pathlib import Path

from orchestrator.catalog import user_data

VARIABLE = "TFCOMPARE_HISTORY"


def place(asked: Path | None) -> Path:
    named = asked or os.environ.get(VARIABLE)
    return (Path(named) if named else user_data.directory() / "history").absolute()
