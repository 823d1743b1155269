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
    InvalidEvent,
    MeasuredEvent,
    OpenedEvent,
    ProbedEvent,
    ProfiledEvent,
    ReadyEvent,
    RefusedEvent,
    Warned,
    WarnedEvent,
)
from orchestrator.model import Case, Target

# The keys are the codes that cuInit returns; the values explain them and say what to do.
CODES = {
    2: "the GPU has no memory left for another process: check with `nvidia-smi`",
    3: "the driver is not initialised in this process: this happens if the process was forked after the driver was "
    "initialised",
    34: "the loaded libcuda.so.1 is a stub from the image, not the driver's own: the container toolkit has not mounted "
    "the driver's libraries. Update the toolkit, or try --gpu-request cdi",
    46: "the GPU is in use and takes no second process (its compute mode): --gpu-exclusive opens one at a time",
    100: "the driver finds no GPU: none was handed over, or CUDA_VISIBLE_DEVICES hides it",
    101: "the driver does not know the GPU that CUDA_VISIBLE_DEVICES names",
    304: "the operating system refuses access: see who may open /dev/nvidia*, and whether a security module forbids it",
    802: "the driver is not ready: on machines whose GPUs are linked by NVSwitch, the fabric manager has to run. "
    "`systemctl start nvidia-fabricmanager` starts it",
    803: "the driver in the kernel and its libraries have different versions, as after an update: restart the machine",
    804: "the image has CUDA compatibility libraries that this GPU does not support: install a newer driver",
    999: "the driver gives no reason: its module nvidia_uvm may not be loaded; `nvidia-modprobe -u` loads it",
}


@dataclass(frozen=True)
class DriverAnswer:
    """The driver's answer: `library` says why libcuda.so.1 was not loaded, and `code` is what cuInit returned.

    `version` is the newest CUDA that the driver can run, such as 12040 for 12.4. `absent` lists the libraries that
    TensorFlow did not find.
    """

    library: str = ""
    code: int = 0
    version: int = 0
    absent: Sequence[str] = ()

    def __str__(self) -> str:
        if self.library:
            return f"the driver's library is missing ({self.library}): libcuda.so.1 was not provided"
        if self.code > 0:
            known = CODES.get(self.code, "see NVIDIA's list of CUresult codes")
            return f"cuInit returned {self.code}: {known}"
        if self.absent:
            return f"TensorFlow does not find {', '.join(self.absent)}"
        return ""


# The worker enforces the deadline of an order; the host waits this much longer before it ends the worker.
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
    # This is the type and shape of the first result.
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
class VisibleGpu:
    """A GPU as TensorFlow sees it."""

    name: str
    capability: str

    def __str__(self) -> str:
        return self.name + (f" (compute capability {self.capability})" if self.capability else "")


@dataclass(frozen=True)
class VisibleGpus:
    """The GPUs that TensorFlow sees, and the driver's answer if it sees none."""

    gpus: tuple[VisibleGpu, ...]
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
        timeout_s: float, fork: bool = True, gpus: int = 0, untuned: bool = False,
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
                "untuned": untuned,
                "folders": list(folders),
                "results": results,
            },
            timeout_s,
        )
        if isinstance(event, FailedEvent):
            raise WorkerDied(f"{event.stage} failed: {event.message}")
        ready = self._expect(event, ReadyEvent)
        return Ready(dict(ready.facts), ready.import_ns)

    def gpus(self, timeout_s: float) -> VisibleGpus:
        event = self._ask({"kind": "probe", "timeout_s": timeout_s}, timeout_s + GRACE_S)
        if isinstance(event, DiedEvent):
            raise WorkerDied(f"asking TensorFlow for its GPUs ended the process: {event.reason}")
        probed = self._expect(event, ProbedEvent)
        driver = probed.driver
        return VisibleGpus(
            tuple(VisibleGpu(gpu.name, gpu.capability) for gpu in probed.gpus),
            DriverAnswer(driver.library, driver.code, driver.driver, tuple(driver.absent)),
        )

    def open(
        self, case: Case, *, replicate: int, round: int, position: int, seed: int, warmup: int, timeout_s: float,
        program: Sequence[str] = (), large: Sequence[str] = (), once: bool = False,
        count: Sequence[str] = (),
    ) -> Opened | Refused | Died:  # fmt: skip
        """Open a replicate; with `once`, it makes only its first call; each name in `count` adds two counted calls."""
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
            "count": list(count),
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
        return reject_refusal(event)

    def close_replicate(self, replicate: int, timeout_s: float) -> Closed | Died:
        order = {"kind": "close", "replicate": replicate, "timeout_s": timeout_s}
        event = self._order(order, timeout_s, ClosedEvent)
        return Closed(event.rows) if isinstance(event, ClosedEvent) else reject_refusal(event)

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

    def warn(
        self, case: Case, *, replicate: int, seed: int, timeout_s: float, program: Sequence[str], large: Sequence[str]
    ) -> tuple[Warned, ...] | Refused | Died:
        """Run the case or the program once, and return the warnings it received. The replicate has ended by then."""
        order = {
            "kind": "warn",
            "replicate": replicate,
            "case": case.label,
            "workload": case.workload,
            "params": dict(case.params),
            "program": {"words": list(program), "large": list(large)} if program else {},
            "seed": seed,
            "timeout_s": timeout_s,
        }
        event = self._order(order, timeout_s, WarnedEvent)
        return tuple(event.warnings) if isinstance(event, WarnedEvent) else event

    def quit(self) -> bool:
        """End the worker; return whether it closed its stream and exited cleanly."""
        try:
            return isinstance(self._ask({"kind": "quit"}, GRACE_S), ByeEvent)
        except WorkerDied:
            return False
        finally:
            self.channel.close()

    def _order(self, order: dict[str, Any], timeout_s: float, wanted: type[Wanted]) -> Wanted | Refused | Died:
        """Send an order to a replicate and return its answer.

        An answer that cannot be true ends this replicate, but no other.
        """
        number = order["replicate"]
        try:
            event = self._request(order, timeout_s + GRACE_S)
            if getattr(event, "replicate", number) != number:
                raise InvalidEvent(f"{event.kind}.replicate: not the number of the replicate that was asked")
        except InvalidEvent as odd:
            if order["kind"] not in ("close", "profile", "warn"):
                # The rows of this replicate will not count, and the worker may already have ended it.
                with suppress(InvalidEvent):
                    self._request({"kind": "close", "replicate": number, "timeout_s": GRACE_S}, 2 * GRACE_S)
            return Died("contract", f"its answer to {order['kind']} cannot be true: {odd}")
        if isinstance(event, RefusedEvent):
            return Refused(event.reason)
        if isinstance(event, DiedEvent):
            return Died(event.how, event.reason, event.log)
        return self._expect(event, wanted)

    def _ask(self, command: dict[str, Any], timeout_s: float) -> AnyEvent:
        try:
            return self._request(command, timeout_s)
        except InvalidEvent as odd:
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


def reject_refusal(event: Refused | Died) -> Died:
    """Return the death of a replicate; a refusal after it was opened is a breach of contract."""
    return event if isinstance(event, Died) else Died("contract", f"it refused after it was opened: {event.reason}")
