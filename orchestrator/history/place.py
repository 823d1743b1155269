"""The default location of the history."""

import os
from pathlib import Path

from orchestrator.catalog import own

VARIABLE = "TFCOMPARE_HISTORY"


def place(asked: Path | None) -> Path:
    named = asked or os.environ.get(VARIABLE)
    return (Path(named) if named else own.folder() / "history").absolute()
