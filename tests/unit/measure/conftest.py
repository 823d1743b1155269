"""A clock that only the plays of a test move."""

from types import SimpleNamespace

import pytest

from tests.support.clock import Clock


@pytest.fixture(autouse=True)
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs that a test writes by hand be continued: whose they are is not what these tests are about."""
    monkeypatch.setenv("TFCOMPARE_TRUST", "1")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in ("budget", "rounds", "visit", "workers"):
        monkeypatch.setattr(f"orchestrator.measure.{module}.time", SimpleNamespace(monotonic=lambda: made.now))
    return made
