"""Containers of other users are left alone, and a worker's end is not taken for the engine's."""

import os
from pathlib import Path

import pytest

from orchestrator.engines import container

STARTED = "1234"


@pytest.fixture
def _unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under hidepid=1."""
    read_text = Path.read_text

    def refuse(path: Path, *args: str, **kwargs: str) -> str:
        if path.name == "stat":
            raise PermissionError(13, "Permission denied", str(path))
        return read_text(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", refuse)


def make_mark(uid: int | None, pid: int, started: str = STARTED) -> str:
    """Of this machine; without a user as older versions wrote it."""
    here = container.owner().rsplit(":", 3)[0]
    return ":".join([here, *([] if uid is None else [str(uid)]), str(pid), started])


def test_a_container_of_a_live_process_is_not_abandoned():
    assert not container.abandoned(container.owner(), "running")
    here, uid, pid, started = container.owner().rsplit(":", 3)
    assert uid == str(os.getuid())
    assert not container.abandoned(f"{here}:{pid}:{started}", "running"), "an older mark"


@pytest.mark.parametrize("uid", [None, os.getuid()])
def test_a_container_of_a_process_that_has_ended_is_abandoned(uid: int | None):
    assert container.abandoned(make_mark(uid, 999999999), "running")
    assert container.abandoned(make_mark(uid, os.getpid()), "running"), "another process of the same number"


def test_a_container_of_another_user_is_never_judged():
    for state in ("running", "exited"):
        assert not container.abandoned(make_mark(os.getuid() + 1, 999999999), state)


@pytest.mark.usefixtures("_unreadable")
def test_a_process_that_cannot_be_read_is_alive():
    for uid in (None, os.getuid()):
        assert not container.abandoned(make_mark(uid, os.getpid()), "running")


def test_a_hidden_process_is_alive_unless_it_would_be_shown(monkeypatch: pytest.MonkeyPatch):
    """Under hidepid=2 a user's processes are shown to the user, and those of others look like none."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not container.abandoned(make_mark(None, 999999999), "running")
    assert container.abandoned(make_mark(os.getuid(), 999999999), "running")


def test_of_another_machine_only_what_has_ended_is_abandoned():
    for mark in ("elsewhere/pid:[1]:1000:12:34", "elsewhere/pid:[1]:12:34", "unknown:12:34", "", "nonsense"):
        assert not container.abandoned(mark, "running")
        assert container.abandoned(mark, "exited")
