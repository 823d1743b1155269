"""The types that the parts of a fleet exchange, and the interface of a fleet."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestrator.machine.gpu import Gpu
from orchestrator.model import STRICT
from orchestrator.plan.request import RunOptions

# The keys are names of files.
Contents = Mapping[str, bytes]
# This function is called with a message as JSON, and any files that belong to it.
SendMessage = Callable[[bytes, Contents], object]
# This function takes the task as JSON, the workloads and a SendMessage, measures the unit, and returns a UnitEnd as
# JSON and files.
MeasureUnit = Callable[[bytes, Contents, SendMessage], tuple[bytes, Contents]]
LOCAL, EXISTING, CLIENT_SCHEME = "local", "auto", "ray://"
# Every host has this label, whose value is its name.
NAME_LABEL = "host"


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """The choice of a fleet, of hosts in it, and of the number of hosts that measure each case."""

    __pydantic_config__ = STRICT

    on: str = LOCAL
    where: tuple[tuple[str, str], ...] = ()
    replicate_hosts: int = 1

    @property
    def is_local(self) -> bool:
        return self.on == LOCAL


@dataclass(frozen=True, kw_only=True)
class FleetNode:
    """A machine as the fleet knows it."""

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
    # The keys are engines; the values say why one does not answer, or are ''.
    engines: dict[str, str]
    gpus: tuple[Gpu, ...] = ()
    free_mb: int = 0
    # If simulated hosts share a machine, this is the name of this host.
    simulated: str = ""

    @property
    def id(self) -> str:
        """Return the id by which a machine is known in any cluster; hosts that share a machine add their names."""
        of_machine = str(self.facts.get("id", "unknown"))
        return f"{of_machine}-{self.simulated}" if self.simulated else of_machine


@dataclass(frozen=True, kw_only=True)
class SentFolder:
    """The folders of the workloads that are sent, and which of their files are executable."""

    __pydantic_config__ = STRICT

    folders: tuple[str, ...] = ()
    executable: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UnitTask:
    """A unit that a host has to measure: a run of some cases."""

    __pydantic_config__ = STRICT

    unit: int
    # If several hosts measure each case, this is the number of the host's copy.
    copy: int = 1
    attempt: int
    # The host sends its results so far at most once in this time.
    sent_every_s: float
    options: RunOptions
    workloads: SentFolder = SentFolder()


@dataclass(frozen=True, kw_only=True)
class UnitMessage:
    """A message that a host sends while it measures a unit."""

    __pydantic_config__ = STRICT

    unit: int
    copy: int = 1
    attempt: int
    text: str = ""
    # A text that stays is printed on a line that later messages do not replace.
    stays: bool = False


@dataclass(frozen=True, kw_only=True)
class UnitEnd:
    """The outcome of a unit on a host: success, or an error of tfcompare."""

    __pydantic_config__ = STRICT

    exit_code: int
    error: str = ""
    # If only other work occupied the machine, the unit may succeed later.
    occupied: bool = False


@dataclass(frozen=True)
class UnitAnswer:
    """The outcome of a unit, and the files of its run folder."""

    end: UnitEnd
    files: Contents


class TaskLost(Exception):
    """A task ended without an answer: its process or its machine died, or it never began."""


class Fleet(Protocol):
    """The machines that measure. `ask` and `begin` return a handle of the task that they begin."""

    def nodes(self) -> Sequence[FleetNode]:
        """Return the machines that are alive and take units."""

    def ask(self, node: FleetNode) -> Any:
        """Begin to ask a machine for its description; the answer is a HostReport as JSON."""

    def begin(self, node: FleetNode, task: bytes, files: Contents) -> Any:
        """Begin a unit on a machine; the answer is a UnitAnswer."""

    def wait(self, begun: Collection[Any], seconds: float) -> Sequence[Any]:
        """Wait this long at most, and return the tasks that have ended; without any task, wait the whole time."""

    def answer(self, begun: Any) -> Any:
        """Return the answer of a task that has ended; raise TaskLost if there is none."""

    def heard(self) -> Sequence[tuple[bytes, Contents]]:
        """Return the messages since the last call, each as JSON, with any files that belong to it."""

    def end(self, begun: Any) -> None:
        """Ask a task to end, and let it finish cleanly if it can."""
