"""The host's end of the worker protocol: one method a command, typed answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.engines.channel import Channel, ChannelClosed, ChannelTimeout
from orchestrator.model import Case
from workloads import contract

# The worker keeps an order's own deadline; the host waits this much longer before it ends the worker itself.
GRACE_S = 10.0


@dataclass(frozen=True)
class Refused:
    reason: str


@dataclass(frozen=True)
class Died:
    """The replicate is dead, the worker lives."""

    how: str
    reason: str
    log: str = ""


@dataclass(frozen=True)
class Opened:
    first_ns: int
    second_ns: int
    steps: int


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
class Ready:
    facts: dict[str, Any]
    import_ns: int


class WorkerDied(Exception):
    """The worker itself is gone, and every replicate in it."""


class WorkerClient:
    def __init__(self, channel: Channel, version: str) -> None:
        self.channel = channel
        self.version = version

    def hello(
        self, *, run: str, device: str, threads: Sequence[int] | None, folders: Sequence[str], results: str,
        timeout_s: float, fork: bool = True,
    ) -> Ready:  # fmt: skip
        event = self._ask(
            {
                "kind": "hello",
                "protocol": contract.PROTOCOL,
                "fingerprint": contract.FINGERPRINT,
                "run": run,
                "version": self.version,
                "device": device,
                "threads": list(threads or ()),
                "fork": fork,
                "folders": list(folders),
                "results": results,
            },
            timeout_s,
        )
        if event["kind"] == "failed":
            raise WorkerDied(f"{event['stage']} failed: {event['message']}")
        return Ready(self._expect(event, "ready")["facts"], event["import_ns"])

    def gpus(self, timeout_s: float) -> list[SeenGpu]:
        event = self._ask({"kind": "probe", "timeout_s": timeout_s}, timeout_s + GRACE_S)
        if event["kind"] == "died":
            raise WorkerDied(f"asking TensorFlow for its GPUs ended the process: {event['reason']}")
        seen = self._expect(event, "probed")["gpus"]
        return [SeenGpu(str(gpu.get("name", "")), str(gpu.get("capability", ""))) for gpu in seen]

    def open(
        self, case: Case, *, replicate: int, round: int, position: int, seed: int, warmup: int, timeout_s: float
    ) -> Opened | Refused | Died:
        order = {
            "kind": "open",
            "replicate": replicate,
            "case": case.label,
            "workload": case.workload,
            "params": dict(case.params),
            "round": round,
            "position": position,
            "seed": seed,
            "warmup": warmup,
            "timeout_s": timeout_s,
        }
        event = self._ask(order, timeout_s + GRACE_S)
        if ended := _ended(event):
            return ended
        self._expect(event, "opened")
        return Opened(event["first_ns"], event["second_ns"], event["steps"])

    def burst(self, replicate: int, calls: int, timeout_s: float, least_s: float = 0.0) -> Burst | Died:
        """So many calls, and more of them where they are so short that less than `least_s` has passed."""
        order = {"kind": "burst", "replicate": replicate, "calls": calls, "timeout_s": timeout_s, "least_s": least_s}
        event = self._ask(order, timeout_s + GRACE_S)
        if event["kind"] == "died":
            return _died(event)
        self._expect(event, "measured")
        return Burst(tuple(event["walls_ns"]), event["cpu_ns"])

    def close_replicate(self, replicate: int, timeout_s: float) -> Closed | Died:
        order = {"kind": "close", "replicate": replicate, "timeout_s": timeout_s}
        event = self._ask(order, timeout_s + GRACE_S)
        return _died(event) if event["kind"] == "died" else Closed(self._expect(event, "closed")["rows"])

    def profile(
        self, case: Case, *, replicate: int, calls: int, seed: int, timeout_s: float
    ) -> dict[str, Any] | Refused | Died:
        """Where the time of so many calls went, as the worker tells it; the replicate has ended by then."""
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
        event = self._ask(order, timeout_s + GRACE_S)
        return _ended(event) or dict(self._expect(event, "profiled")["profile"])

    def quit(self) -> bool:
        """Whether the worker closed its stream and left in order."""
        try:
            return bool(self._ask({"kind": "quit"}, GRACE_S)["kind"] == "bye")
        except WorkerDied:
            return False
        finally:
            self.channel.close()

    def _ask(self, command: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        try:
            self.channel.send(contract.encode(command))
            return contract.decode(self.channel.receive(timeout_s), contract.EVENTS)
        except ChannelClosed as closed:
            raise WorkerDied(str(closed)) from closed
        except ChannelTimeout as timeout:
            self.channel.close()
            raise WorkerDied(f"timeout: no answer to {command['kind']} within {timeout_s:.0f} s; ended") from timeout
        except contract.ContractError as error:
            self.channel.close()
            raise WorkerDied(f"broke the contract: {error}") from error

    def _expect(self, event: dict[str, Any], kind: str) -> dict[str, Any]:
        if event["kind"] != kind:
            self.channel.close()
            raise WorkerDied(f"broke the contract: {event['kind']} instead of {kind}: {event.get('message', '')}")
        return event


def _ended(event: dict[str, Any]) -> Refused | Died | None:
    """What came of a replicate that did not begin."""
    if event["kind"] == "refused":
        return Refused(event["reason"])
    return _died(event) if event["kind"] == "died" else None


def _died(event: dict[str, Any]) -> Died:
    return Died(event["how"], event["reason"], event["log"])
