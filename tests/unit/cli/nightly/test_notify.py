"""`tfcompare nightly notify-test`: who was reached, and what is said of everybody else."""

from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from orchestrator.cli.nightly import notify as cli_notify
from orchestrator.errors import UsageError
from tests.support.message_servers import Inbox, web

SECRET = "hunter2"


@pytest.fixture
def server() -> Iterator[Inbox]:
    with web() as inbox:
        yield inbox


def test_the_command_tells_who_was_reached(server: Inbox) -> None:
    done = CliRunner().invoke(cli_notify.app, ["--notify", f"json://127.0.0.1:{server.port}/{SECRET}"])
    assert (done.exit_code, done.stderr) == (0, "told json://127.0.0.1/…\n")
    assert len(server.got) == 1


def test_the_command_fails_where_somebody_is_not_reached_or_nobody_is_named(
    server: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = [404]
    monkeypatch.setenv("TFCOMPARE_NOTIFY", f"json://127.0.0.1:{server.port}/")
    failed = CliRunner().invoke(cli_notify.app, [])
    assert isinstance(failed.exception, UsageError)
    assert "it answered 404: is the address right?" in str(failed.exception)
    monkeypatch.delenv("TFCOMPARE_NOTIFY")
    assert "no recipient configured" in str(CliRunner().invoke(cli_notify.app, []).exception)
