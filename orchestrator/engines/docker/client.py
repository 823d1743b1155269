"""The connection to the Docker engine, and what its errors mean."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException
from docker.transport import unixconn

from orchestrator.errors import EngineUnavailable, TfCompareError

# docker-py wraps the errors of plain requests, and lets those of streams through as they are.
UNANSWERED = (DockerException, requests.RequestException, urllib3.exceptions.HTTPError)


class _UnixConnection(unixconn.UnixHTTPConnection):  # type: ignore[misc]
    """A connection that closes its socket if it cannot connect; docker-py's own leaves it open."""

    def connect(self) -> None:
        engine = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            engine.settimeout(self.timeout)
            engine.connect(self.unix_socket)
        except BaseException:
            engine.close()
            raise
        self.sock = engine


# docker-py offers no other way to change the class of its connections.
unixconn.UnixHTTPConnection = _UnixConnection


def connect_engine(timeout_s: float = 60) -> docker.DockerClient:
    """Return a client of the engine that DOCKER_HOST or the default socket names, or raise EngineUnavailable."""
    try:
        # This asks the engine for its version, so an engine that does not answer is noticed here.
        return docker.from_env(timeout=timeout_s)
    except (*UNANSWERED, OSError) as error:
        raise EngineUnavailable(
            f"no Docker engine answers ({find_root_cause(error)})", "start it, set DOCKER_HOST, or use --engine venv"
        ) from error


@contextmanager
def asking(doing: str, refused: type[TfCompareError], target: str = "") -> Iterator[None]:
    """Raise `refused` if the engine refuses, and EngineUnavailable if it no longer answers."""
    try:
        yield
    except APIError as error:
        message = str(error.explanation or error)
        blind = "bind source path does not exist" in message
        advice = "the engine does not see this machine's folders, so DOCKER_HOST must name one that runs here"
        raise refused(
            f"{doing}: the Docker engine refuses: {message}", advice if blind else "", target=target
        ) from error
    except UNANSWERED as error:
        cause = find_root_cause(error)
        raise EngineUnavailable(f"{doing}: the Docker engine stopped answering ({cause})", target=target) from error


def find_root_cause(error: BaseException) -> str:
    """Return in plain words why the engine was not reached."""
    text = str(error)
    if "Permission denied" in text:
        return "permission denied on its socket: is this user in the docker group?"
    if "No such file" in text:
        return "its socket does not exist"
    if "Connection refused" in text:
        return "its socket exists, but no engine listens on it"
    return text.splitlines()[0] if text else type(error).__name__


class Clients:
    """One client per thread.

    Threads cannot safely share a client's connections, and the control arm starts at the same time as its twin.
    """

    def __init__(self) -> None:
        self._local = threading.local()
        self._open = ExitStack()

    def of_thread(self) -> docker.DockerClient:
        if not hasattr(self._local, "client"):
            self._local.client = self._open.enter_context(closing(connect_engine()))
        return self._local.client

    def close(self) -> None:
        self._open.close()
