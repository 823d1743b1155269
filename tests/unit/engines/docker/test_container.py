"""Containers of other users are left alone, and a worker's end is not taken for the engine's."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from docker.errors import NotFound

from orchestrator import files
from orchestrator.engines.docker import container
from orchestrator.engines.docker.container import ContainerChannel
from orchestrator.engines.worker.channel import ChannelClosed
from orchestrator.errors import EngineUnavailable, EnvironmentFailed

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


def make_mark(uid: int, pid: int, started: str = STARTED) -> str:
    """Of this machine."""
    here = container.owner().rsplit(":", 3)[0]
    return ":".join([here, str(uid), str(pid), started])


def test_a_container_of_a_live_process_is_not_abandoned():
    assert not container.is_abandoned(container.owner(), "running")
    assert container.owner().rsplit(":", 3)[1] == str(os.getuid())


def test_a_container_of_a_process_that_has_ended_is_abandoned():
    uid = os.getuid()
    assert container.is_abandoned(make_mark(uid, 999999999), "running")
    assert container.is_abandoned(make_mark(uid, os.getpid()), "running"), "another process of the same number"


def test_a_container_of_another_user_is_never_judged():
    for state in ("running", "exited"):
        assert not container.is_abandoned(make_mark(os.getuid() + 1, 999999999), state)


@pytest.mark.usefixtures("_unreadable")
def test_a_process_that_cannot_be_read_is_alive():
    assert not container.is_abandoned(make_mark(os.getuid(), os.getpid()), "running")


def test_of_another_machine_only_what_has_ended_is_abandoned():
    for mark in ("elsewhere/pid:[1]:1000:12:34", "elsewhere/pid:[1]:12:34", "unknown:12:34", "", "nonsense"):
        assert not container.is_abandoned(mark, "running")
        assert container.is_abandoned(mark, "exited")


@pytest.mark.skipif(os.getuid() != 0, reason="only root hands folders over")
def test_a_folder_that_a_worker_has_nested_without_end_is_one_sentence(tmp_path: Path):
    source = "import os\nfor _ in range(5000): os.mkdir('deep'); os.chdir('deep')"
    subprocess.run([sys.executable, "-c", source], cwd=tmp_path, check=True)
    # Later Pythons go down any number of levels.
    refused = pytest.raises(EnvironmentFailed, match="too many nested folders; remove it")
    with refused if sys.version_info < (3, 12) else nullcontext():
        container.hand_over(tmp_path, (65534, 65534))
    files.remove_tree(tmp_path)


def make_frame(stream: int, payload: bytes) -> bytes:
    return struct.pack(">BxxxL", stream, len(payload)) + payload


class Api:
    """An engine with one container, which answers in the way its `states` say, the last one from then on."""

    def __init__(self, output: bytes, states: Sequence[dict[str, Any] | Exception] = ()) -> None:
        self.states = list(states)
        self.here, self.there = socket.socketpair()
        self.there.sendall(output)
        if states:
            self.there.shutdown(socket.SHUT_WR)

    def attach_socket(self, container: str, params: dict[str, int]) -> Any:
        return SimpleNamespace(_sock=self.here, _response=SimpleNamespace(close=lambda: None))

    def start(self, container: str) -> None: ...

    def remove_container(self, container: str, **options: bool) -> None: ...

    def close(self) -> None: ...

    def wait(self, container: str, timeout: float) -> None:
        raise requests.ConnectionError("Read timed out.")

    def inspect_container(self, container: str) -> dict[str, Any]:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, Exception):
            raise state
        return {"State": state}


RUNNING = {"Running": True, "OOMKilled": False, "ExitCode": 0}
KILLED = {"Running": False, "OOMKilled": False, "ExitCode": 137}


@pytest.fixture
def attach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ContainerChannel]]:
    monkeypatch.setattr(container, "END_S", 0.3)
    monkeypatch.setattr(container, "EXIT_S", 0.1)
    with ExitStack() as held:

        def attach(api: Api, log: Path = tmp_path / "log") -> ContainerChannel:
            held.enter_context(api.there)
            client: Any = SimpleNamespace(api=api)
            return held.enter_context(closing(ContainerChannel(client, "c" * 64, "2.0.0", log)))

        yield attach


def test_a_log_that_cannot_be_written_ends_no_worker(
    attach: Callable[..., ContainerChannel], capsys: pytest.CaptureFixture[str]
):
    noise = make_frame(container.STDERR, b"2026 W tensorflow: a warning\n")
    channel = attach(Api(noise * 3 + make_frame(container.STDOUT, b"{}\n")), Path("/dev/full"))
    assert channel.receive(10) == "{}"
    assert capsys.readouterr().err == "warning: /dev/full: No space left on device; lines of this log are missing\n"


def test_stderr_goes_to_the_log(attach: Callable[..., ContainerChannel], tmp_path: Path):
    frames = (make_frame(container.STDERR, b"one\n"), make_frame(container.STDOUT, b"{}\n"))
    attach(Api(b"".join(frames))).receive(10)
    assert (tmp_path / "log").read_text() == "one\n"


def test_stderr_is_cleaned_across_frames_and_to_its_end(attach: Callable[..., ContainerChannel], tmp_path: Path):
    parts = (b"\x1b]52;c;bHM=\x07 caf\xc3", b"\xa9\tone\r", b"\n\x1b[3", b"1mtwo\x1b[0m\xc3")
    frames = [make_frame(container.STDERR, part) for part in parts]
    channel = attach(Api(b"".join(frames), [KILLED]))
    with pytest.raises(ChannelClosed):
        channel.receive(10)
    assert (tmp_path / "log").read_text() == "\\x1b]52;c;bHM=\\x07 caf\u00e9\tone\ntwo\\xc3"


ENDINGS: dict[str, tuple[list[dict[str, Any] | Exception], str]] = {
    "ended": ([KILLED], "killed by SIGKILL"),
    "ends soon": ([RUNNING, RUNNING, KILLED], "killed by SIGKILL"),
    "out of memory": ([{**KILLED, "OOMKilled": True}], "out of memory"),
    "quiet": ([RUNNING], "closed its output but still runs"),
    "removed": ([NotFound("no such container")], "lost: its container was removed"),
}


@pytest.mark.parametrize(("states", "words"), ENDINGS.values(), ids=ENDINGS)
def test_the_end_of_a_worker_is_told_as_its_own(
    attach: Callable[..., ContainerChannel], states: list[dict[str, Any] | Exception], words: str
):
    with pytest.raises(ChannelClosed, match=words):
        attach(Api(b"", states)).receive(10)


def test_only_an_engine_that_cannot_be_asked_is_gone(attach: Callable[..., ContainerChannel]):
    with pytest.raises(EngineUnavailable, match="stopped answering"):
        attach(Api(b"", [RUNNING, requests.ConnectionError("refused")])).receive(10)
