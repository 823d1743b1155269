"""What the parts of a fleet tell each other."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestrator.machine.gpu import Gpu
from orchestrator.model import STRICT
from orchestrator.plan.request import RunOptions

# Contents of files by their names.
Contents = Mapping[str, bytes]
# Receives a message as JSON, and files if there are any.
Tell = Callable[[bytes, Contents], object]
# Does a unit: takes the task as JSON, workloads and what to tell, and returns its end as JSON, and files.
Work = Callable[[bytes, Contents, Tell], tuple[bytes, Contents]]
LOCAL, EXISTING, BY_CLIENT = "local", "auto", "ray://"
# The label that every host has by itself: its name.
OF_NAME = "host"


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """Which fleet measures, on which of its hosts, and on how many of them each case."""

    __pydantic_config__ = STRICT

    on: str = LOCAL
    where: tuple[tuple[str, str], ...] = ()
    replicate_hosts: int = 1

    @property
    def is_local(self) -> bool:
        return self.on == LOCAL


@dataclass(frozen=True, kw_only=True)
class FleetNode:
    """A machine as the cluster knows it."""

    id: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class HostReport:
    """A machine as it describes itself."""

    __pydantic_config__ = STRICT

    tool: str
    contract: str
    facts: dict[str, str | int | float | None]
    # By engine, why it does not answer; '' if it does.
    engines: dict[str, str]
    gpus: tuple[Gpu, ...] = ()
    free_mb: int = 0
    # What simulates a host, where several share a machine.
    simulated: str = ""

    @property
    def id(self) -> str:
        """Return the id by which a machine is known in any cluster; hosts that share a machine add their names."""
        of_machine = str(self.facts.get("id", "unknown"))
        return f"{of_machine}-{self.simulated}" if self.simulated else of_machine


@dataclass(frozen=True, kw_only=True)
class SentFolder:
    """What is not content of the workloads that are sent: their folders, and which of their files can be executed."""

    __pydantic_config__ = STRICT

    folders: tuple[str, ...] = ()
    executable: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UnitTask:
    """What a host has to measure: a run of some cases."""

    __pydantic_config__ = STRICT

    unit: int
    # With several hosts a case, which of them this is for.
    copy: int = 1
    attempt: int
    # What was measured so far is sent at most this often.
    sent_every_s: float
    options: RunOptions
    workloads: SentFolder = SentFolder()


@dataclass(frozen=True, kw_only=True)
class UnitMessage:
    """What a host says while it measures a unit."""

    __pydantic_config__ = STRICT

    unit: int
    copy: int = 1
    attempt: int
    text: str = ""
    # Whether the text is worth a line that stays.
    stays: bool = False


@dataclass(frozen=True, kw_only=True)
class UnitEnd:
    """How a unit ended on a host: by itself, or with an error of tfcompare."""

    __pydantic_config__ = STRICT

    exit_code: int
    error: str = ""
    # Whether only something else on the machine was in the way.
    occupied: bool = False


@dataclass(frozen=True)
class UnitAnswer:
    """How a unit ended, and the files of its run folder."""

    end: UnitEnd
    files: Contents


class TaskLost(Exception):
    """A task ended without an answer: its process or its machine died, or it never began."""


class Fleet(Protocol):
    """The machines that measure. What it returns for a task that was begun stands for that task."""

    def nodes(self) -> Sequence[FleetNode]:
        """Return the machines that are alive and take units."""

    def ask(self, node: FleetNode) -> Any:
        """Begin to ask a machine what it is; the answer is a HostReport as JSON."""

    def begin(self, node: FleetNode, task: bytes, files: Contents) -> Any:
        """Begin a unit on a machine; the answer is a UnitAnswer, with its end as JSON."""

    def wait(self, begun: Collection[Any], seconds: float) -> Sequence[Any]:
        """Return those that have ended, after this time at most; without any, wait that long."""

    def answer(self, begun: Any) -> Any:
        """Return the answer of one that has ended; raise TaskLost if there is none."""

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        """Return the messages since the last call, each as JSON, and with files if there are any."""

    def end(self, begun: Any) -> None:
        """Let a task end, as politely as it can."""
