"""A fleet of machines that Ray holds together. The only module that knows Ray, an optional extra.

Each node that takes units has a resource, `bench_slot`, and a unit takes all of it. So Ray gives a machine one unit at
a time, also if several people measure on one cluster. We decide which machine gets which unit: each goes to a named
node, and Ray never repeats one by itself.
"""

import logging
import os
import re
import socket
import tempfile
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from orchestrator.catalog import user_data
from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.fleet import host
from orchestrator.fleet.model import (
    BY_CLIENT,
    EXISTING,
    LOCAL,
    OF_NAME,
    ClusterGone,
    Contents,
    FleetNode,
    TaskLost,
    UnitAnswer,
    Work,
)
from orchestrator.parallel import run_parallel
from orchestrator.terminal.view import View

SLOT = "bench_slot"
LOOPBACK = "127.0.0.1"
EXTRA = "pip install 'tfcompare[ray]'"
# For a port to answer; and for Ray's client, three times.
KNOCK_S, PATIENCE_S = 5.0, "4"
ATTEMPTS = 3
# How many machines are spoken to at a time.
AT_ONCE = 32
# The messages of a unit that a driver has not fetched; more are dropped.
MOST_MESSAGES = 1000
PATIENCE = ("RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S", "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S")
# How long Ray's client tries to reach a machine again: our ways to machines do not come back.
AGAIN = {"RAY_CLIENT_RECONNECT_GRACE_PERIOD": "4"}
# Without a connection, Ray would start another cluster.
ONLY_THESE = {"RAY_ENABLE_AUTO_CONNECT": "0"}
AUTH_MODE, TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"
ADDRESS = re.compile(rf"{BY_CLIENT}[^\s/]+:\d{{1,5}}")
# What hosts send: JSON, and contents of files by their names.
ANSWER = TypeAdapter(tuple[bytes, dict[str, bytes]], config=ConfigDict(strict=True))
MESSAGES = TypeAdapter(list[tuple[bytes, dict[str, bytes]]], config=ConfigDict(strict=True))
# Where a user has a token already, these say so.
TOKENS = ("RAY_AUTH_TOKEN", TOKEN_PATH, AUTH_MODE)
# What became of a task, in our words: Ray's own fill a page.
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


def token_file() -> Path:
    """Return where `tfcompare fleet up` keeps the token of its cluster."""
    return user_data.folder() / "fleet" / "token"


def check_address(on: str) -> None:
    """Raise UsageError for what names no fleet."""
    if on not in (LOCAL, EXISTING) and not ADDRESS.fullmatch(on):
        raise UsageError(
            f"--on {on}: it takes {LOCAL}, {EXISTING} for the machines of `tfcompare fleet up` or the cluster of this "
            f"machine, or an address such as {BY_CLIENT}HEAD:10001"
        )


@contextmanager
def connect_cluster(on: str, work: Work | None = None) -> Iterator["Cluster"]:
    """Connect to a cluster; raise UsageError without Ray, and EngineUnavailable if no cluster takes us.

    `work` stands for what a host does with a unit, for a benchmark of everything around it.
    """
    check_address(on)
    ray = _import_ray(on)
    said: list[str] = []
    try:
        with _listening(said):
            _knock(on)
            _init(ray, on)
    except Exception as error:
        raise EngineUnavailable(*_explain(f"--on {on}", error, said)) from error
    cluster = Cluster(ray, work or host.measure_unit)
    try:
        yield cluster
    finally:
        cluster.close()
        ray.shutdown()


@contextmanager
def connect_all(ports: Mapping[str, int], view: View, work: Work | None = None) -> Iterator[dict[str, "Cluster"]]:
    """Connect to the machines of the fleet that was started from here; one that does not answer costs itself alone.

    Each is a cluster, at a port of this machine. They alone get the token of that fleet.
    """
    for variable, value in _token_variables().items():
        os.environ.setdefault(variable, value)
    ray = _import_ray(EXISTING)
    os.environ.update(AGAIN)
    said: list[str] = []
    contexts: list[Any] = []
    clusters: dict[str, Cluster] = {}
    errors: dict[str, Exception] = {}

    def connect_one(name: str) -> None:
        try:
            context = _init(ray, f"{BY_CLIENT}{LOOPBACK}:{ports[name]}", allow_multiple=True)
            contexts.append(context)
            with context:
                clusters[name] = Cluster(ray, work or host.measure_unit, context)
        except Exception as error:
            errors[name] = error

    try:
        with _listening(said):
            run_parallel(connect_one, tuple(ports), AT_ONCE)
        for name, error in errors.items():
            reason, advice = _explain(name, error, said)
            view.say(f"warning: {reason}; {advice}")
        yield clusters
    finally:
        for cluster in clusters.values():
            cluster.close()
        for context in contexts:
            with suppress(Exception):
                context.disconnect()


def _import_ray(on: str) -> Any:
    for variable, value in {**dict.fromkeys(PATIENCE, PATIENCE_S), **ONLY_THESE}.items():
        os.environ.setdefault(variable, value)
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"--on {on} takes Ray, which is not installed: {EXTRA}") from error
    return ray


def is_open_to_all() -> bool:
    """Return whether the cluster that we are connected to asks for no token."""
    return os.environ.get(AUTH_MODE) != "token"


def _token_variables() -> Mapping[str, str]:
    """Return the variables with which Ray uses the token of a fleet that we started, unless the user has others."""
    file = token_file()
    if any(os.environ.get(name) for name in TOKENS) or not file.is_file():
        return {}
    return {AUTH_MODE: "token", TOKEN_PATH: str(file)}


def _init(ray: Any, on: str, **more: bool) -> Any:
    # Nothing of ours is sent with it: the same tfcompare is installed on all machines.
    how = {"address": on, "logging_level": logging.ERROR, "log_to_driver": False, **more}
    for _ in range(ATTEMPTS - 1):
        # The server starts a process for each client, which at times does not come up, above all on a busy machine.
        with suppress(ConnectionAbortedError):
            return ray.init(**how)
    return ray.init(**how)


def _knock(on: str) -> None:
    """Raise OSError at once where nothing listens; Ray would try for minutes."""
    address = on.removeprefix(BY_CLIENT)
    if on == EXISTING:
        # Of the head to which this machine belongs, where Ray itself looks for it.
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
    """Collect what Ray prints and logs about a connection, most of it for its own developers."""

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
    where = "this machine belongs to no cluster" if who.endswith(f" {EXISTING}") else "no cluster answers there"
    return f"{who}: {where} ({_list_lines(error)[0]})", "start one: `tfcompare fleet up`, or docs/fleet.md"


class Mailbox:
    """Holds what units say until the run fetches it. It lives on the head node, which measures nothing."""

    def __init__(self) -> None:
        self._kept: list[tuple[bytes, Contents]] = []

    def put(self, message: bytes, contents: Contents) -> None:
        if len(self._kept) < MOST_MESSAGES:
            self._kept.append((message, contents))

    def take(self) -> list[tuple[bytes, Contents]]:
        kept, self._kept = self._kept, []
        return kept


class Cluster:
    """Ray's machines as a fleet. With a context, what Ray does is about that connection, one of several."""

    def __init__(self, ray: Any, work: Work, context: AbstractContextManager[Any] | None = None) -> None:
        from grpc import RpcError
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray = ray
        # What its client raises once its channel is closed, or the process at the other end is gone.
        self._gone = (ConnectionError, RpcError)
        self._context = context or nullcontext()
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
        named = [node["Labels"].get(OF_NAME) or node["NodeManagerHostname"] for node in found]
        return [
            FleetNode(
                id=node["NodeID"],
                # Two with one name are distinguished by what Ray calls them.
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
            # All that have ended by now.
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
        # Ray has made objects of what the host sent; of these, only bytes and their names are used.
        if isinstance(answer, bytes):
            return answer
        try:
            end, files = ANSWER.validate_python(answer)
            return UnitAnswer(host.END.validate_json(end), files)
        except ValidationError as error:
            raise TaskLost("its answer is none of tfcompare's") from error

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        """Fetch what units say, while the next question is under way already."""
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
        """Let Ray speak over this connection; raise ClusterGone if there is none any more."""
        try:
            with self._context:
                yield
        except self._gone as error:
            raise ClusterGone(_list_lines(error)[0]) from error


def _measure(work: Work, task: bytes, files: Contents, mailbox: Any) -> tuple[bytes, Contents]:
    """Do a unit on the host that Ray chose, which may speak to the run's mailbox meanwhile."""
    return work(task, files, mailbox.put.remote)


def _list_lines(error: BaseException) -> list[str]:
    """Return the lines of an error's message; one without a message has its name."""
    return [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
