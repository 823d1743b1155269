"""The run with everything in it, made once: reading changes nothing in it."""

from pathlib import Path

import pytest

from orchestrator.results.run import Run, load_run
from tests.support.export_runs import everything


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return everything(tmp_path_factory.mktemp("exports") / "run").path


@pytest.fixture(scope="session")
def run(made: Path) -> Run:
    return load_run(made)
