"""The machines of a fleet that ssh reaches: `tfcompare fleet up` asks each what it is, and remembers their names.

Nothing of a fleet runs on them, and nothing listens there, until a run wants something: then ssh starts a process that
does this one thing, carries what it says, and ends it.
"""

import shlex
import socket
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from orchestrator import files
from orchestrator.catalog import user_data
from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.fleet.host import DESCRIBE, END, MEASURE, REPORT
from orchestrator.fleet.host_process import HostProcess
from orchestrator.fleet.model import OF_NAME, Contents, FleetNode, TaskLost, UnitAnswer
from orchestrator.fleet.packets import Packet
from orchestrator.formats import FLEET
from orchestrator.model import STRICT
from orchestrator.terminal.view import View

HERE = "localhost"
# To reach a machine, and for it to say what it is: an engine may take its time.
CONNECT_S, ANSWER_S = 10, 60.0
# So ssh never asks for a password, and notices within 15 s that a network is gone.
UNATTENDED = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}", "-o", "ServerAliveInterval=5")
# A machine that does not say what it is is asked again after this.
AGAIN_S = 60.0
# The messages of units that have not been fetched; more are dropped.
MOST_MESSAGES = 1000
# For units to end politely once a run is over.
CLOSING_S = 10.0
LONGEST = 200


@dataclass(frozen=True, kw_only=True)
class FleetMachine:
    """A machine of a fleet, as ssh knows it, and what `--where` selects it by."""

    __pydantic_config__ = STRICT

    host: str
    labels: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class NamedFleet:
    """The machines of a fleet, the command that reaches them, and their Python."""

    __pydantic_config__ = STRICT

    ssh: tuple[str, ...]
    python: str
    machines: tuple[FleetMachine, ...] = ()

    def words(self, host: str, program: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs a program of tfcompare's on a machine."""
        if host == HERE:
            return (self.python, *program)
        return (*self.ssh, *UNATTENDED, "--", host, shlex.quote(self.python), *program)


NAMED = TypeAdapter(NamedFleet)


def state_file() -> Path:
    return user_data.folder() / "fleet" / "fleet.json"


def read_fleet() -> NamedFleet | None:
    try:
        return NAMED.validate_json(FLEET.unstamp(files.read_text(state_file()).encode()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{state_file()} cannot be used: {str(error).splitlines()[0]}; remove it") from error


def name_machines(
    hosts: Sequence[str], labels: Mapping[str, Mapping[str, str]], ssh: Sequence[str], prefix: Path, view: View
) -> None:
    """Ask machines what they are, and remember those that answer; one that does not costs itself alone."""
    machines = tuple(
        FleetMachine(
            host=host,
            labels={OF_NAME: socket.gethostname() if host == HERE else host.rpartition("@")[2], **labels.get(host, {})},
        )
        for host in hosts
    )
    if len({machine.labels[OF_NAME] for machine in machines}) < len(machines):
        raise UsageError("a machine is named twice: it measures one thing at a time")
    fleet = NamedFleet(ssh=tuple(ssh), python=str(prefix / "bin" / "python"), machines=machines)
    answered = []
    with open_machines(fleet) as reached:
        asked = [(machine, reached.ask(node)) for machine, node in zip(machines, reached.nodes(), strict=True)]
        until = time.monotonic() + ANSWER_S
        for machine, question in asked:
            reached.wait([question], max(until - time.monotonic(), 0.0))
            try:
                REPORT.validate_json(reached.answer(question))
            except (TaskLost, ValidationError) as error:
                said = str(error).splitlines()[0][:LONGEST]
                view.say(
                    f"warning: {machine.host}: {said}; see whether `ssh` reaches it without a password, and whether "
                    f"this tfcompare is in {prefix} there"
                )
                continue
            answered.append(machine)
            view.say(f"{machine.host}: ready ({','.join(f'{name}={value}' for name, value in machine.labels.items())})")
    if not answered:
        raise EngineUnavailable("no machine answers; see above")
    keep_named(replace(fleet, machines=tuple(answered)))


def keep_named(fleet: NamedFleet) -> None:
    with files.writing(state_file(), user_data.REMEDY):
        state_file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write_atomically(state_file(), FLEET.stamp(NAMED.dump_json(fleet, indent=1)) + b"\n", 0o600)


def forget_machines() -> None:
    if not state_file().exists():
        raise UsageError("there is no fleet that `tfcompare fleet up` named")
    with files.writing(state_file(), user_data.REMEDY):
        state_file().unlink()


@contextmanager
def open_machines(fleet: NamedFleet) -> Iterator["SshFleet"]:
    reached = SshFleet(fleet)
    try:
        yield reached
    finally:
        reached.close()


@dataclass(eq=False)
class SshTask:
    """Something that a machine does, and the process here that carries what it says."""

    node: FleetNode
    process: HostProcess
    is_question: bool


class SshFleet:
    """Machines that ssh reaches, as a fleet."""

    def __init__(self, fleet: NamedFleet) -> None:
        self._fleet = fleet
        self._machines = {machine.labels[OF_NAME]: machine for machine in fleet.machines}
        # How often a machine was lost: it then has to say again what it is, since it may have been restarted.
        self._losses = dict.fromkeys(self._machines, 0)
        self._back_at = dict.fromkeys(self._machines, 0.0)
        self._under_way: set[SshTask] = set()
        self._heard: list[tuple[bytes, Contents]] = []
        self._changed = threading.Condition()

    def nodes(self) -> Sequence[FleetNode]:
        return [
            FleetNode(id=f"{name} {self._losses[name]}", name=name, labels=machine.labels)
            for name, machine in self._machines.items()
            if self._back_at[name] <= time.monotonic()
        ]

    def ask(self, node: FleetNode) -> SshTask:
        return self._begin(node, DESCRIBE, Packet(b""), is_question=True)

    def begin(self, node: FleetNode, task: bytes, files: Contents) -> SshTask:
        return self._begin(node, MEASURE, Packet(task, files), is_question=False)

    def _begin(self, node: FleetNode, program: Sequence[str], question: Packet, *, is_question: bool) -> SshTask:
        words = self._fleet.words(self._machines[node.name].host, program)
        task = SshTask(node, HostProcess(words, question, self._hear, at_end=self._notify), is_question)
        self._under_way.add(task)
        return task

    def _hear(self, text: bytes, contents: Contents) -> None:
        with self._changed:
            if len(self._heard) < MOST_MESSAGES:
                self._heard.append((text, contents))

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def wait(self, begun: Collection[SshTask], seconds: float) -> Sequence[SshTask]:
        with self._changed:
            self._changed.wait_for(lambda: any(task.process.ended.is_set() for task in begun), seconds)
        return [task for task in begun if task.process.ended.is_set()]

    def answer(self, begun: SshTask) -> Any:
        """Return the answer of a task; one that has not ended has had its time."""
        self._under_way.discard(begun)
        answer = begun.process.answer
        if answer is None:
            begun.process.kill()
            self._losses[begun.node.name] += 1
            if begun.is_question:
                self._back_at[begun.node.name] = time.monotonic() + AGAIN_S
            raise TaskLost(begun.process.reason or "it does not answer")
        if begun.is_question:
            return answer.text
        try:
            return UnitAnswer(END.validate_json(answer.text), answer.contents)
        except ValidationError as error:
            raise TaskLost("its answer is none of tfcompare's") from error

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        with self._changed:
            heard, self._heard = self._heard, []
        return heard

    def end(self, begun: SshTask) -> None:
        begun.process.end()

    def close(self) -> None:
        """End what is still under way."""
        for task in self._under_way:
            task.process.end()
        until = time.monotonic() + CLOSING_S
        with suppress(KeyboardInterrupt):
            for task in self._under_way:
                task.process.ended.wait(max(until - time.monotonic(), 0.0))
        for task in self._under_way:
            task.process.kill()
