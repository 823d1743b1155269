"""Machines that are reached by ssh: `tfcompare fleet up` asks each to describe itself, and stores their names.

No part of tfcompare runs or listens on them until a run needs something. Then ssh starts a process for this one task,
carries its messages, and ends it.
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
from orchestrator.fleet.model import NAME_LABEL, Contents, FleetNode, TaskLost, UnitAnswer
from orchestrator.fleet.packets import Packet
from orchestrator.formats import FLEET
from orchestrator.model import STRICT
from orchestrator.terminal.view import View

HERE = "localhost"
# A machine has to be reached within CONNECT_S, and to describe itself within ANSWER_S, since its engines may be slow.
CONNECT_S, ANSWER_S = 10, 60.0
# These options keep ssh from asking for a password, and let it notice within 15 s that a network is gone.
UNATTENDED = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}", "-o", "ServerAliveInterval=5")
# A machine that does not describe itself is asked again after this time.
RETRY_S = 60.0
# Only this many messages wait to be fetched; more are dropped.
MOST_MESSAGES = 1000
# Units have this long to end politely once a run is over.
CLOSING_S = 10.0
LONGEST = 200


@dataclass(frozen=True, kw_only=True)
class FleetMachine:
    """A machine of a fleet: its name for ssh, and the labels by which `--where` selects it."""

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

    def build_command(self, host: str, program: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs a program of tfcompare on a machine."""
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


def register_machines(
    hosts: Sequence[str], labels: Mapping[str, Mapping[str, str]], ssh: Sequence[str], prefix: Path, view: View
) -> None:
    """Ask machines to describe themselves, and store those that answer; warn of those that do not."""
    machines = tuple(
        FleetMachine(
            host=host,
            labels={
                NAME_LABEL: socket.gethostname() if host == HERE else host.rpartition("@")[2],
                **labels.get(host, {}),
            },
        )
        for host in hosts
    )
    if len({machine.labels[NAME_LABEL] for machine in machines}) < len(machines):
        raise UsageError("a machine is named twice, but it can measure only one unit at a time")
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
                reason = str(error).splitlines()[0][:LONGEST]
                view.say(
                    f"warning: {machine.host}: {reason}; check that `ssh` reaches it without a password, and that "
                    f"this version of tfcompare is installed in {prefix} there"
                )
                continue
            answered.append(machine)
            view.say(f"{machine.host}: ready ({','.join(f'{name}={value}' for name, value in machine.labels.items())})")
    if not answered:
        raise EngineUnavailable("no machine answers; see above")
    write_fleet(replace(fleet, machines=tuple(answered)))


def write_fleet(fleet: NamedFleet) -> None:
    with files.writing(state_file(), user_data.REMEDY):
        state_file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write_atomically(state_file(), FLEET.stamp(NAMED.dump_json(fleet, indent=1)) + b"\n", 0o600)


def forget_machines() -> None:
    if not state_file().exists():
        raise UsageError("no fleet is stored; `tfcompare fleet up` stores one")
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
    """A task of a machine, and the process here that carries its messages."""

    node: FleetNode
    process: HostProcess
    is_question: bool


class SshFleet:
    """A fleet of machines that are reached by ssh."""

    def __init__(self, fleet: NamedFleet) -> None:
        self._fleet = fleet
        self._machines = {machine.labels[NAME_LABEL]: machine for machine in fleet.machines}
        # A machine that was lost gets a new id and has to describe itself again, since it may have been restarted.
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
        words = self._fleet.build_command(self._machines[node.name].host, program)
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
        """Return the answer of a task; kill a task that has not ended, since its time is over."""
        self._under_way.discard(begun)
        answer = begun.process.answer
        if answer is None:
            begun.process.kill()
            self._losses[begun.node.name] += 1
            if begun.is_question:
                self._back_at[begun.node.name] = time.monotonic() + RETRY_S
            raise TaskLost(begun.process.reason or "it does not answer")
        if begun.is_question:
            return answer.text
        try:
            return UnitAnswer(END.validate_json(answer.text), answer.contents)
        except ValidationError as error:
            raise TaskLost("its answer is not one of tfcompare's") from error

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        with self._changed:
            heard, self._heard = self._heard, []
        return heard

    def end(self, begun: SshTask) -> None:
        begun.process.end()

    def close(self) -> None:
        """End the tasks that are still under way."""
        for task in self._under_way:
            task.process.end()
        until = time.monotonic() + CLOSING_S
        with suppress(KeyboardInterrupt):
            for task in self._under_way:
                task.process.ended.wait(max(until - time.monotonic(), 0.0))
        for task in self._under_way:
            task.process.kill()
