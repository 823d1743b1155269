"""What a stranger's folder asks for is not done: nothing is sent, no address is spoken to, no code of a run is run.

Each attack is a real command in a cloned folder, with a server on this machine that counts what arrives.
"""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from tests.conftest import run_command
from tests.support.message_servers import Inbox, web

PACE = Path(__file__).parent / "workloads" / "pace.py"
PLANTED = "AKIAplanted123"
TOKEN = "FLEETTOKENplanted" + "0" * 47


class Stranger:
    """A folder of a stranger, and commands of a user in it."""

    def __init__(self, tfcompare: str, folder: Path, env: dict[str, str]) -> None:
        self.tfcompare, self.folder = tfcompare, folder
        self.user = folder.parent / "user"
        self.env = {**env, "TFCOMPARE_DATA": str(self.user), "SECRET_PLANTED": PLANTED}

    def write(self, text: str) -> None:
        (self.folder / "tfcompare.toml").write_text(text)

    def call(self, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return run_command(self.tfcompare, *words, env={**self.env, **more}, cwd=self.folder)


@pytest.fixture
def stranger(tfcompare: str, stub_cache: dict[str, str], tmp_path: Path) -> Stranger:
    (tmp_path / "clone" / "own").mkdir(parents=True)
    copy(PACE, tmp_path / "clone" / "own")
    (tmp_path / "clone" / "own" / "pace.json").write_text('{"1.14": [10, 20, 1.0], "2.0": [12, 20, 1.0]}')
    return Stranger(tfcompare, tmp_path / "clone", stub_cache)


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with web() as made:
        yield made


NIGHT = """
workload-folder = "own"
[nightly]
versions = "1.14,2.0"
rounds = 2
heartbeat = true
notify = ["json://127.0.0.1:{port}/{path}"]
"""
VENV = ("--engine", "venv")


@pytest.mark.slow
def test_no_variable_goes_to_a_recipient_that_a_folder_names(stranger: Stranger, inbox: Inbox) -> None:
    pytest.importorskip("apprise")
    night = ("nightly", "run", *VENV, "--workload-folder", "own", "--case", "pace", "--backfill", "0", "--history", "h")
    stranger.write(NIGHT.format(port=inbox.port, path="${SECRET_PLANTED}"))
    for trusts in ("0", "1"):
        done = stranger.call(*night, TFCOMPARE_TRUST=trusts)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert "notify: ${...} is filled in only where you write it yourself" in done.stderr
    stranger.write(NIGHT.format(port=inbox.port, path="plain"))
    done = stranger.call(*night)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "heartbeat, notify count only in a folder that you trust" in done.stderr
    assert inbox.got == []
    # The user's own words are filled in, and what the user trusts is sent to.
    assert stranger.call("trust", "--yes").returncode == 0
    own = ("--notify", f"json://127.0.0.1:{inbox.port}/${{SECRET_PLANTED}}")
    done = stranger.call(*night)
    assert done.returncode == 0, done.stderr
    done = stranger.call(*night, "--again", *own)
    assert done.returncode == 0, done.stderr
    assert [path for path, _ in inbox.got] == ["/plain", f"/{PLANTED}"]


@contextmanager
def speaking_grpc() -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Yield the port of a server that poses as a cluster's, and what it hears: methods and metadata of calls."""
    grpc = pytest.importorskip("grpc")
    heard: list[tuple[str, str]] = []

    class Listens(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, call: Any) -> None:
            heard.append((call.method, repr(call.invocation_metadata)))

    server = grpc.server(futures.ThreadPoolExecutor(4), handlers=[Listens()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port, heard
    finally:
        server.stop(None).wait()


@contextmanager
def counting_connections() -> Iterator[tuple[int, list[object]]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[object] = []

        def take() -> None:
            with suppress(OSError):
                while True:
                    connection, address = server.accept()
                    connection.close()
                    connections.append(address)

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield server.getsockname()[1], connections
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_no_cluster_that_a_folder_names_is_spoken_to(stranger: Stranger) -> None:
    with counting_connections() as (port, connections):
        stranger.write(f'versions = "1.14,2.0"\non = "ray://127.0.0.1:{port}"\n')
        for words in ((), ("--engine", "docker"), (*VENV, "--dry-run")):
            done = stranger.call("run", "--case", "power", *words)
            assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
            assert "on counts only in a folder that you trust" in done.stderr
        assert connections == []


@pytest.mark.slow
def test_a_token_goes_to_the_cluster_that_it_was_named_for(stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    kept = stranger.user / "token"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(TOKEN)
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    words = ("run", "--versions", "1.14,2.0", "--case", "power", *VENV)
    with speaking_grpc() as (port, heard):
        done = stranger.call(*words, "--on", f"ray://127.0.0.1:{port}")
        assert done.returncode == 4, done.stderr
        assert heard
        assert not any(TOKEN in metadata for _, metadata in heard)
        heard.clear()
        # A token that the user names goes to the cluster that the user names.
        own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(kept)}
        stranger.call(*words, "--on", f"ray://127.0.0.1:{port}", **own)
        assert any(TOKEN in metadata for _, metadata in heard)


@pytest.mark.slow
def test_a_run_of_a_stranger_is_not_continued_without_a_question(stranger: Stranger, tmp_path: Path) -> None:
    begun = stranger.call(
        "run", "--versions", "1.14,2.0", "--workload-folder", "own", "--rounds", "2", *VENV, "--output", "theirs",
        TFCOMPARE_DATA=str(tmp_path / "stranger"),
    )  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    shutil.move(stranger.folder / "theirs", tmp_path / "downloaded")
    run = tmp_path / "downloaded"
    more = ("run", "--resume", run, "--rounds", "2")
    done = stranger.call(*more)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert f"`tfcompare trust {run}` shows what would run and asks you to confirm" in done.stderr
    shown = stranger.call("trust", run, "--yes")
    assert shown.returncode == 0, shown.stderr
    assert "engine: venv" in shown.stdout
    assert f"code: {run}/workloads/pace.py" in shown.stdout
    assert stranger.call(*more).returncode in (0, 3)
    # The one who began it needs no word, wherever it lies.
    os.rename(run, tmp_path / "back")
    done = stranger.call(
        "run", "--resume", tmp_path / "back", "--rounds", "2", TFCOMPARE_DATA=str(tmp_path / "stranger")
    )
    assert done.returncode in (0, 3), done.stderr
    (tmp_path / "back" / "workloads" / "pace.json").write_text("{}")
    done = stranger.call(
        "run", "--resume", tmp_path / "back", "--rounds", "2", TFCOMPARE_DATA=str(tmp_path / "stranger")
    )
    assert done.returncode == 2
    assert "was measured: workloads/pace.json" in done.stderr
