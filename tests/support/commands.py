"""Call the program in this process."""

import sys

import pytest

from orchestrator.cli import main


def called(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    """The exit code of the whole program; warnings and colours as a pipe gets them."""
    monkeypatch.setattr(sys, "argv", ["tfcompare", *argv])
    monkeypatch.setattr("signal.signal", lambda number, action: None)
    with pytest.raises(SystemExit) as left:
        main.main()
    return left.value.code
