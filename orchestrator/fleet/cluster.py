"""A fleet of machines in a Ray cluster. This is the only module that knows Ray, an optional extra.

Each node that takes units has a resource, `bench_slot`, and a unit takes all of it. So Ray gives a machine one unit at
a time, even if several people measure on one cluster. tfcompare decides which machine gets which unit: each is sent to
a named node, and Ray never repeats one by itself.
"""

import logging
import os
import re
import socket
import tempfile
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.fleet import host
from orchestrator.fleet.model import (
    CLIENT_SCHEME,
    EXISTING,
    LOCAL,
    NAME_LABEL,
    Contents,
    FleetNode,
    MeasureUnit,
    TaskLost,
    UnitAnswer,
)
from orchestrator.terminal.view import View

SLOT = "bench_slot"
EXTRA = "pip install 'tfcompare[ray]'"
# A port has KNOCK_S to answer, and Ray's client PATIENCE_S for each attempt.
KNOCK_S, PATIENCE_S = 5.0, "4"
ATTEMPTS = 3
# Only this many messages wait to be fetched; more are dropped.
MOST_MESSAGES = 1000
PATIENCE = ("RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S", "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S")
# Ray would otherwise start a cluster if it finds none.
ONLY_THESE = {"RAY_ENABLE_AUTO_CONNECT": "0"}
AUTH_MODE, TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"
ADDRESS = re.compile(rf"{CLIENT_SCHEME}[^\s/]+:\d{{1,5}}")
# Hosts send JSON, and the contents of files by name.
ANSWER = TypeAdapter(tuple[bytes, dict[str, bytes]], config=ConfigDict(strict=True))
MESSAGES = TypeAdapter(list[tuple[bytes, dict[str, bytes]]], config=ConfigDict(strict=True))
# These words replace the messages of Ray's errors, which fill a page.
LOSSES = {
    "WorkerCrashedError": "its process on the host died",
    "NodeDiedError": "its host is gone",
    "TaskCancelledError": "it was ended",
    "TaskUnschedulableError": "its host is gone",
    "RaySystemError": "Ray failed on its host",
    "OutOfMemoryError": "its host ran out of memory",
    "LocalRayletDiedError": "its host is gone",
}
OPEN_CLUSTER = (
    "warning: this cluster has no token, so everyone who reaches its ports can run code on all its machines: "
    "docs/fleet.md says how to start one with a token"
)


def check_address(on: str) -> None:
    """Raise UsageError if a value of --on names no fleet."""
    if on not in (LOCAL, EXISTING) and not ADDRESS.fullmatch(on):
        raise UsageError(
            f"--on {on}: it takes {LOCAL}, {EXISTING} for the machines of `tfcompare fleet up` or the cluster of this "
            f"machine, or an address such as {CLIENT_SCHEME}HEAD:10001"
        )


@contextmanager
def connect_cluster(on: str, view: View, work: MeasureUnit | None = None) -> Iterator["Cluster"]:
    """Connect to a cluster; raise UsageError without Ray, and EngineUnavailable if no cluster accepts it.

    `work` replaces what a host does with a unit, so that a benchmark can measure everything around it.
    """
    check_address(on)
    ray = _import_ray(on)
    said: list[str] = []
    try:
        with _listening(said):
            _try_port(on)
            _init(ray, on)
    except Exception as error:
        raise EngineUnavailable(*_explain(f"--on {on}", error, said)) from error
    if os.environ.get(AUTH_MODE) != "token":
        view.say(OPEN_CLUSTER)
    cluster = Cluster(ray, work or host.measure_unit)
    try:
        yield cluster
    finally:
        cluster.close()
        ray.shutdown()


def _import_ray(on: str) -> Any:
    for variable, value in {**dict.fromkeys(PATIENCE, PATIENCE_S), **ONLY_THESE}.items():
        os.environ.setdefault(variable, value)
    try:
        import ray
    except ImportError as error:
        lacking = ": `tfcompare fleet up` named no machines, and a cluster" if on == EXISTING else ""
        raise UsageError(f"--on {on}{lacking} takes Ray, which is not installed: {EXTRA}") from error
    return ray


def _init(ray: Any, on: str) -> Any:
    # No code has to be sent, since the same tfcompare is installed on all machines.
    how = {"address": on, "logging_level": logging.ERROR, "log_to_driver": False}
    for _ in range(ATTEMPTS - 1):
        # The server starts a process for each client, which sometimes fails, mostly on a busy machine.
        with suppress(ConnectionAbortedError):
            return ray.init(**how)
    return ray.init(**how)


def _try_port(on: str) -> None:
    """Raise OSError at once where nothing listens; Ray would try for minutes."""
    address = on.removeprefix(CLIENT_SCHEME)
    if on == EXISTING:
        # Ray itself looks in these places for the address of the head to which this machine belongs.
        address = os.environ.get("RAY_ADDRESS", "")
        kept = Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp", "ray", "ray_current_cluster")  # noqa: S108
        if not address and not kept.is_file():
            raise ConnectionError("Ray was not started on it")
        if ":" not in address:
            address = kept.read_text().strip()
    host_name, _, port = address.rpartition(":")
    with socket.create_connection((host_name, int(port)), KNOCK_S):
        pass


@contextmanager
def _listening(said: list[str]) -> Iterator[None]:
    """Collect what Ray prints and logs about a connection, most of which is meant for Ray's developers."""

    class RayLog(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    ear, logger = RayLog(), logging.getLogger("ray.util.client.worker")
    before, level = os.dup(2), logger.level
    logger.addHandler(ear)
    logger.setLevel(logging.DEBUG)
    with tempfile.TemporaryFile() as printed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.dup2(printed.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            logger.removeHandler(ear)
            logger.setLevel(level)
            printed.seek(0)
            said.append(printed.read().decode("utf-8", "replace"))


def _explain(who: str, error: BaseException, said: Sequence[str]) -> tuple[str, str]:
    """Return what went wrong with a connection, and what to do."""
    text = "\n".join([str(error), *said])
    lower = text.lower()
    if "version mismatch" in lower or ("versions" in lower and "python" in lower):
        return f"{who}: {' '.join(str(error).split())}", "install the same Python and the same Ray on all machines"
    if "authtoken" in lower or "unauthenticated" in lower or "authentication token" in lower:
        return f"{who}: the cluster refuses this token", f"put its token into a file and name that in {TOKEN_PATH}"
    if who.endswith(f" {EXISTING}"):
        return (
            f"{who}: `tfcompare fleet up` named no machines, and this one belongs to no cluster "
            f"({_list_lines(error)[0]})",
            "docs/fleet.md says how to begin",
        )
    return f"{who}: no cluster answers there ({_list_lines(error)[0]})", "docs/fleet.md says how to start one"


class Mailbox:
    """A store of messages of units until the run fetches them. It is on the head node, which measures nothing."""

    def __init__(self) -> None:
        self._kept: list[tuple[bytes, Contents]] = []

    def put(self, message: bytes, contents: Contents) -> None:
        if len(self._kept) < MOST_MESSAGES:
            self._kept.append((message, contents))

    def take(self) -> list[tuple[bytes, Contents]]:
        kept, self._kept = self._kept, []
        return kept


class Cluster:
    """A fleet of the machines of a Ray cluster."""

    def __init__(self, ray: Any, work: MeasureUnit) -> None:
        from grpc import RpcError
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray = ray
        # Ray's client raises these once its channel is closed or the process at the other end is gone.
        self._gone = (ConnectionError, RpcError)
        self._on_node = NodeAffinitySchedulingStrategy
        self._report = ray.remote(num_cpus=0, max_retries=0)(host.describe_host)
        self._work = work
        self._unit = ray.remote(num_cpus=0, resources={SLOT: 1}, max_retries=0)(_measure)
        head = {"node:__internal_head__": 0.001}
        self._mailbox = ray.remote(num_cpus=0, resources=head, max_restarts=0)(Mailbox).remote()
        self._fetching: Any = None

    def nodes(self) -> Sequence[FleetNode]:
        with self._speak():
            listed = self._ray.nodes()
        found = [node for node in listed if node["Alive"] and node["Resources"].get(SLOT)]
        named = [node["Labels"].get(NAME_LABEL) or node["NodeManagerHostname"] for node in found]
        return [
            FleetNode(
                id=node["NodeID"],
                # Nodes of the same name are distinguished by their ids in Ray.
                name=name if named.count(name) == 1 else f"{name}-{node['NodeID'][:6]}",
                labels={key: value for key, value in node["Labels"].items() if not key.startswith("ray.io/")},
            )
            for node, name in zip(found, named, strict=True)
        ]

    def ask(self, node: FleetNode) -> Any:
        with self._speak():
            return self._report.options(scheduling_strategy=self._on_node(node.id, soft=False)).remote()

    def begin(self, node: FleetNode, task: bytes, files: Contents) -> Any:
        with self._speak():
            placed = self._unit.options(scheduling_strategy=self._on_node(node.id, soft=False))
            return placed.remote(self._work, task, dict(files), self._mailbox)

    def wait(self, begun: Collection[Any], seconds: float) -> Sequence[Any]:
        if not begun:
            time.sleep(seconds)
            return ()
        with self._speak():
            ended, _ = self._ray.wait(list(begun), num_returns=1, timeout=seconds)
            if not ended:
                return ()
            # Others may have ended at the same time.
            ended, _ = self._ray.wait(list(begun), num_returns=len(begun), timeout=0)
        return list(ended)

    def answer(self, begun: Any) -> Any:
        try:
            with self._speak():
                answer = self._ray.get(begun)
        except self._ray.exceptions.RayTaskError as error:
            raise TaskLost(_list_lines(error)[-1]) from error
        except self._ray.exceptions.RayError as error:
            name = type(error).__name__
            raise TaskLost(LOSSES.get(name, f"{name}: {_list_lines(error)[0]}")) from error
        # Ray has turned what the host sent into objects, of which only bytes and names are accepted.
        if isinstance(answer, bytes):
            return answer
        try:
            end, files = ANSWER.validate_python(answer)
            return UnitAnswer(host.END.validate_json(end), files)
        except ValidationError as error:
            raise TaskLost("its answer is not one of tfcompare's") from error

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        """Return what has been fetched from the mailbox, without waiting for a fetch that is under way."""
        with self._speak():
            if self._fetching is None:
                self._fetching = self._mailbox.take.remote()
            ended, _ = self._ray.wait([self._fetching], timeout=0)
            if not ended:
                return ()
            fetched, self._fetching = self._fetching, None
            with suppress(self._ray.exceptions.RayError, ValidationError):
                return MESSAGES.validate_python(self._ray.get(fetched))
        return ()

    def end(self, begun: Any) -> None:
        with self._speak():
            self._ray.cancel(begun)

    def close(self) -> None:
        with suppress(Exception), self._speak():
            self._ray.kill(self._mailbox)

    @contextmanager
    def _speak(self) -> Iterator[None]:
        """Call Ray in this block; raise EngineUnavailable if the cluster no longer answers."""
        try:
            yield
        except self._gone as error:
            raise EngineUnavailable(f"the cluster no longer answers: {_list_lines(error)[0]}") from error


def _measure(work: MeasureUnit, task: bytes, files: Contents, mailbox: Any) -> tuple[bytes, Contents]:
    """Measure a unit on this host, whose messages go to the mailbox of the run."""
    return work(task, files, mailbox.put.remote)


def _list_lines(error: BaseException) -> list[str]:
    """Return the lines of an error's message, or the error's name if it has no message."""
    return [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
