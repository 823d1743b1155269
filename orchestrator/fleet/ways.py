"""The ways to the machines of a fleet: to those that `tfcompare fleet up` started, or to another cluster.

Started machines listen to themselves alone, so ssh carries their orders and answers. Nothing of that is on a network
unencrypted, and no machine can give orders to another.
"""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from orchestrator.child_process import end_child
from orchestrator.errors import EngineUnavailable
from orchestrator.fleet.cluster import AT_ONCE, LOOPBACK, Cluster, connect_all, connect_cluster
from orchestrator.fleet.machines import CONNECT_S, HERE, UNATTENDED, FleetMachine, StartedFleet, read_started
from orchestrator.fleet.model import EXISTING, ClusterGone, Contents, Fleet, FleetNode, TaskLost, Work
from orchestrator.parallel import run_parallel
from orchestrator.terminal.view import View

# Between two looks at what has ended.
LOOK_S = 0.05
# A machine that is silent for three of these is gone.
SILENT_S = 5
ANSWER_S, CLOSING_S = 1.0, 5.0
ENDED = "its Ray has ended: `tfcompare fleet down` and `tfcompare fleet up` start it again"
# Stands for a task on a machine that was gone when it should begin.
NEVER = "never begun"

Handle = tuple[str, Hashable]
Answer = TypeVar("Answer")


@contextmanager
def join(on: str, view: View, work: Work | None = None) -> Iterator[Fleet]:
    """Connect to the fleet that was started from here, or to the cluster that `on` names.

    `work` stands for what a host does with a unit, for a benchmark of everything around it.
    """
    started = read_started() if on == EXISTING and not os.environ.get("RAY_ADDRESS") else None
    if started is None:
        with connect_cluster(on, work) as cluster:
            yield cluster
        return
    with _open_ways(started, view) as ports, connect_all(ports, view, work) as clusters:
        if not clusters:
            raise EngineUnavailable(f"--on {on}: no machine of the fleet answers; see above")
        yield SeparateMachines(clusters)


@contextmanager
def _open_ways(started: StartedFleet, view: View) -> Iterator[dict[str, int]]:
    """Open a way to each machine, and return the ports at which they are reached from here."""
    with ExitStack() as held:
        # All begin before the first is waited for.
        ways = [held.enter_context(_begin_way(machine, started.ssh)) for machine in started.machines]
        ports = {}
        for machine, (port, process) in zip(started.machines, ways, strict=True):
            if reason := _await_way(port, process):
                view.say(f"warning: {machine.host} is left out: {reason}")
            else:
                ports[machine.host] = port
        yield ports


@contextmanager
def _begin_way(machine: FleetMachine, ssh: Sequence[str]) -> Iterator[tuple[int, "subprocess.Popen[str] | None"]]:
    if machine.host == HERE:
        yield machine.port, None
        return
    with socket.create_server((LOOPBACK, 0)) as probe:
        port = probe.getsockname()[1]
    # Of a command that is killed, this ends as well: `cat` ends with its input, and ssh with `cat`.
    words = [
        *ssh, *UNATTENDED, "-o", "ExitOnForwardFailure=yes", "-o", f"ServerAliveInterval={SILENT_S}",
        "-L", f"{LOOPBACK}:{port}:{LOOPBACK}:{machine.port}", "--", machine.host, "cat",
    ]  # fmt: skip
    # An interrupt at the terminal is not for it: units are ended by way of it.
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield port, process
        finally:
            end_child(process, CLOSING_S)


def _await_way(port: int, process: "subprocess.Popen[str] | None") -> str:
    """Wait until a machine's Ray answers, and return why it does not, or ''."""
    until = time.monotonic() + CONNECT_S
    while (process is None or process.poll() is None) and time.monotonic() < until:
        try:
            with socket.create_connection((LOOPBACK, port), ANSWER_S) as probe:
                return "" if probe.recv(1) else ENDED
        except TimeoutError:
            # It waits for our words, or is busy.
            return ""
        except OSError:
            if process is None:
                return ENDED
        time.sleep(LOOK_S)
    if process is None or process.poll() is None:
        return "ssh does not get through"
    assert process.stderr
    return (process.stderr.read().strip().splitlines() or ["ssh ended"])[-1]


class SeparateMachines:
    """Machines that each are a separate cluster, as one fleet."""

    def __init__(self, clusters: Mapping[str, Cluster]) -> None:
        self._clusters = dict(clusters)
        # The machine of each node.
        self._of_node: dict[str, str] = {}

    def nodes(self) -> Sequence[FleetNode]:
        found = self._ask_all(self._clusters, lambda name, cluster: cluster.nodes())
        self._of_node |= {node.id: name for name, nodes in found.items() for node in nodes}
        return [node for nodes in found.values() for node in nodes]

    def ask(self, node: FleetNode) -> Handle:
        return self._begin(node, lambda cluster: cluster.ask(node))

    def begin(self, node: FleetNode, task: bytes, files: Contents) -> Handle:
        return self._begin(node, lambda cluster: cluster.begin(node, task, files))

    def wait(self, begun: Collection[Handle], seconds: float) -> Sequence[Handle]:
        until = time.monotonic() + seconds
        while True:
            ended = self._list_ended(begun)
            left = until - time.monotonic()
            if ended or left <= 0:
                return ended
            time.sleep(min(LOOK_S, left) if begun else left)

    def answer(self, begun: Handle) -> Any:
        name, task = begun
        with self._may_be_gone(name):
            if name in self._clusters:
                return self._clusters[name].answer(task)
        raise TaskLost("its host is gone")

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        heard = self._ask_all(self._clusters, lambda name, cluster: cluster.heard())
        return [message for messages in heard.values() for message in messages]

    def end(self, begun: Handle) -> None:
        name, task = begun
        with self._may_be_gone(name):
            if name in self._clusters:
                self._clusters[name].end(task)

    def _begin(self, node: FleetNode, begin: Callable[[Cluster], Hashable]) -> Handle:
        name = self._of_node[node.id]
        with self._may_be_gone(name):
            if name in self._clusters:
                return name, begin(self._clusters[name])
        return name, NEVER

    def _list_ended(self, begun: Collection[Handle]) -> list[Handle]:
        tasks: dict[str, list[Hashable]] = {}
        for name, task in begun:
            if name in self._clusters and task != NEVER:
                tasks.setdefault(name, []).append(task)
        ended = self._ask_all(tasks, lambda name, cluster: cluster.wait(tasks[name], 0))
        # Those of a machine that is gone have ended.
        return [(name, task) for name, task in begun if name not in ended or task == NEVER or task in ended[name]]

    def _ask_all(self, names: Iterable[str], question: Callable[[str, Cluster], Answer]) -> dict[str, Answer]:
        """Ask machines side by side, since each is far away; one that turns out to be gone gives no answer."""
        names, answers = tuple(names), {}

        def ask(name: str) -> None:
            with self._may_be_gone(name):
                answers[name] = question(name, self._clusters[name])

        run_parallel(ask, names, AT_ONCE)
        return {name: answers[name] for name in names if name in answers}

    @contextmanager
    def _may_be_gone(self, name: str) -> Iterator[None]:
        """Do without a machine from now on if it turns out to be gone."""
        try:
            yield
        except ClusterGone:
            self._clusters.pop(name, None)
