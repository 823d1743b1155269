"""The host's end of the worker protocol: one method per command, and typed answers."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from orchestrator import contract
from orchestrator.engines.worker import events
from orchestrator.engines.worker.channel import Channel, ChannelClosed, ChannelTimeout
from orchestrator.engines.worker.events import (
    AnyEvent,
    ByeEvent,
    ClosedEvent,
    DiedEvent,
    ErrorEvent,
    FailedEvent,
    MeasuredEvent,
    OddEvent,
    OpenedEvent,
    ProbedEvent,
    ProfiledEvent,
    ReadyEvent,
    RefusedEvent,
)
from orchestrator.machine.cuda_start import DriverAnswer
from orchestrator.model import Case, Target

# The worker keeps an order's own deadline; the host waits this much longer before it ends the worker itself.
GRACE_S = 10.0


@dataclass(frozen=True)
class Refused:
    reason: str


@dataclass(frozen=True)
class Died:
    """A replicate that died while the worker is alive."""

    how: str
    reason: str
    log: str = ""


@dataclass(frozen=True)
class Opened:
    first_ns: int
    second_ns: int
    steps: int
    threads: tuple[int, ...] = ()
    build_ns: int = 0
    # Type and shape of the first result.
    output: str = ""


@dataclass(frozen=True)
class Burst:
    """The wall time of each call, and the CPU time of all of them."""

    walls_ns: tuple[int, ...]
    cpu_ns: int


@dataclass(frozen=True)
class Closed:
    rows: int


@dataclass(frozen=True)
class SeenGpu:
    """A GPU as TensorFlow sees it."""

    name: str
    capability: str

    def __str__(self) -> str:
        return self.name + (f" (compute capability {self.capability})" if self.capability else "")


@dataclass(frozen=True)
class Sight:
    """The GPUs that TensorFlow sees; if it sees none, what the driver answers."""

    gpus: tuple[SeenGpu, ...]
    driver: DriverAnswer


@dataclass(frozen=True)
class Ready:
    facts: dict[str, Any]
    import_ns: int


Wanted = TypeVar("Wanted", bound=events.Event)


class WorkerDied(Exception):
    """The worker itself is gone, and every replicate in it."""


class WorkerClient:
    def __init__(self, channel: Channel, target: Target) -> None:
        self.channel = channel
        self.target = target

    @property
    def pid(self) -> int | None:
        """The worker's process, which leads its group; None if the engine hides it, e.g. in a container."""
        return getattr(self.channel, "pid", None)

    def hello(
        self, *, run: str, device: str, threads: Sequence[int] | None, folders: Sequence[str], results: str,
        timeout_s: float, fork: bool = True, gpus: int = 0,
    ) -> Ready:  # fmt: skip
        """Start the session; each replicate has to find this many `gpus`."""
        event = self._ask(
            {
                "kind": "hello",
                "protocol": contract.PROTOCOL,
                "fingerprint": contract.FINGERPRINT,
                "run": run,
                "target": str(self.target),
                "device": device,
                "gpus": gpus,
                "threads": list(threads or ()),
                "fork": fork,
                "folders": list(folders),
                "results": results,
            },
            timeout_s,
        )
        if isinstance(event, FailedEvent):
            raise WorkerDied(f"{event.stage} failed: {event.message}")
        ready = self._expect(event, ReadyEvent)
        return Ready(dict(ready.facts), ready.import_ns)

    def gpus(self, timeout_s: float) -> Sight:
        event = self._ask({"kind": "probe", "timeout_s": timeout_s}, timeout_s + GRACE_S)
        if isinstance(event, DiedEvent):
            raise WorkerDied(f"asking TensorFlow for its GPUs ended the process: {event.reason}")
        probed = self._expect(event, ProbedEvent)
        driver = probed.driver
        return Sight(
            tuple(SeenGpu(gpu.name, gpu.capability) for gpu in probed.gpus),
            DriverAnswer(driver.library, driver.code, driver.driver, tuple(driver.absent)),
        )

    def open(
        self, case: Case, *, replicate: int, round: int, position: int, seed: int, warmup: int, timeout_s: float,
        program: Sequence[str] = (), large: Sequence[str] = (), once: bool = False,
    ) -> Opened | Refused | Died:  # fmt: skip
        """Open a replicate; `once` lets it make its first call and no other."""
        order = {
            "kind": "open",
            "replicate": replicate,
            "case": case.label,
            "workload": case.workload,
            "params": dict(case.params),
            "program": {"words": list(program), "large": list(large)} if program else {},
            "round": round,
            "position": position,
            "seed": seed,
            "warmup": warmup,
            "once": once,
            "timeout_s": timeout_s,
        }
        event = self._order(order, timeout_s, OpenedEvent)
        if not isinstance(event, OpenedEvent):
            return event
        return Opened(event.first_ns, event.second_ns, event.steps, tuple(event.threads), event.build_ns, event.output)

    def burst(self, replicate: int, calls: int, timeout_s: float, least_s: float = 0.0) -> Burst | Died:
        """Time this many calls, and more if they are so short that less than `least_s` has passed."""
        order = {"kind": "burst", "replicate": replicate, "calls": calls, "timeout_s": timeout_s, "least_s": least_s}
        event = self._order(order, timeout_s, MeasuredEvent)
        if isinstance(event, MeasuredEvent):
            return Burst(tuple(event.walls_ns), event.cpu_ns)
        return _only_died(event)

    def close_replicate(self, replicate: int, timeout_s: float) -> Closed | Died:
        order = {"kind": "close", "replicate": replicate, "timeout_s": timeout_s}
        event = self._order(order, timeout_s, ClosedEvent)
        return Closed(event.rows) if isinstance(event, ClosedEvent) else _only_died(event)

    def profile(
        self, case: Case, *, replicate: int, calls: int, seed: int, timeout_s: float
    ) -> dict[str, Any] | Refused | Died:
        """Return where the time of this many calls went, as reported by the worker.

        The replicate has ended by then.
        """
        order = {
            "kind": "profile",
            "replicate": replicate,
            "case": case.label,
            "workload": case.workload,
            "params": dict(case.params),
            "seed": seed,
            "calls": calls,
            "timeout_s": timeout_s,
        }
        event = self._order(order, timeout_s, ProfiledEvent)
        return dict(event.profile) if isinstance(event, ProfiledEvent) else event

    def quit(self) -> bool:
        """End the worker; return whether it closed its stream and left in order."""
        try:
            return isinstance(self._ask({"kind": "quit"}, GRACE_S), ByeEvent)
        except WorkerDied:
            return False
        finally:
            self.channel.close()

    def _order(self, order: dict[str, Any], timeout_s: float, wanted: type[Wanted]) -> Wanted | Refused | Died:
        """Send an order to a replicate and return its answer.

        An answer that cannot be true costs this replicate, but no other.
        """
        number = order["replicate"]
        try:
            event = self._request(order, timeout_s + GRACE_S)
            if getattr(event, "replicate", number) != number:
                raise OddEvent(f"{event.kind}.replicate: another number than the one asked")
        except OddEvent as odd:
            if order["kind"] not in ("close", "profile"):
                self._forget(number)
            return Died("contract", f"its answer to {order['kind']} cannot be true: {odd}")
        if isinstance(event, RefusedEvent):
            return Refused(event.reason)
        if isinstance(event, DiedEvent):
            return Died(event.how, event.reason, event.log)
        return self._expect(event, wanted)

    def _forget(self, number: int) -> None:
        """End a replicate whose rows will not count; the worker may already have ended it."""
        with suppress(OddEvent):
            self._request({"kind": "close", "replicate": number, "timeout_s": GRACE_S}, 2 * GRACE_S)

    def _ask(self, command: dict[str, Any], timeout_s: float) -> AnyEvent:
        try:
            return self._request(command, timeout_s)
        except OddEvent as odd:
            self.channel.close()
            raise WorkerDied(f"broke the contract: {odd}") from odd

    def _request(self, command: dict[str, Any], timeout_s: float) -> AnyEvent:
        try:
            if command["kind"] == "profile":
                self.channel.send(contract.encode(command), contract.LONGEST_LARGE_LINE)
            else:
                self.channel.send(contract.encode(command))
            return events.parse_event(self.channel.receive(timeout_s))
        except ChannelClosed as closed:
            raise WorkerDied(str(closed)) from closed
        except ChannelTimeout as timeout:
            self.channel.close()
            raise WorkerDied(f"timeout: no answer to {command['kind']} within {timeout_s:.0f} s; ended") from timeout
        except contract.ContractError as error:
            self.channel.close()
            raise WorkerDied(f"broke the contract: {events.clean(str(error))}") from error

    def _expect(self, event: AnyEvent, wanted: type[Wanted]) -> Wanted:
        if isinstance(event, wanted):
            return event
        self.channel.close()
        detail = f": {event.message}" if isinstance(event, ErrorEvent) else ""
        raise WorkerDied(f"broke the contract: {event.kind} instead of {wanted.kind_name()}{detail}")


def _only_died(event: Refused | Died) -> Died:
    """Return the death of a replicate; an open one has nothing left to refuse, so that is a breach of contract."""
    return event if isinstance(event, Died) else Died("contract", f"it refused after it was opened: {event.reason}")
