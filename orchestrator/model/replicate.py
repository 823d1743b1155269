"""What a replicate told, in one row: what metrics are read of."""

from collections.abc import Sequence
from typing import NamedTuple

from orchestrator.model.cases import ArmKey, Target


class Replicate(NamedTuple):
    """The summary of one replicate.

    The times of calls are per step; `calls_ns` is the time of all calls together. `bursts` and `cpu_bursts` are the
    logs of the mean wall and CPU times of its bursts, in order; `time_ns` and `cpu_ns` are their
    middle means. `rise` is how the later half of the bursts differs from the earlier half, as a log ratio. Where CPU
    time is judged, `bursts`, `time_ns` and `rise` are of CPU times as well, and `wall_ns` keeps the wall time.
    """

    target: Target
    case: str
    round: int
    number: int
    build_ns: int
    first_ns: float
    second_ns: float
    calls_ns: float
    time_ns: float
    cpu_ns: float
    rise: float
    import_ns: int | None
    resident_kb: int | None
    minor_faults: int | None
    major_faults: int | None
    involuntary_switches: int | None
    steal_ns: int | None
    psi_us: int | None
    traces: int | None
    calls: int | None
    # In arrays, since a tuple holds each number as a separate object.
    bursts: Sequence[float]
    cpu_bursts: Sequence[float]
    position: int
    # The whole first call: what it costs once, such as tracing, is no property of a step.
    first_call_ns: float
    items: int | None
    # Of a program that calls Keras' fit; the loss of each epoch is JSON.
    first_step_ns: int | None
    step_ns: int | None
    losses: str | None
    # On a GPU.
    device: str | None
    gpu_memory_kb: int | None
    # What it held after the first calls, by how much later ones made that grow, sketches of what the first and the
    # fifth call returned, and the functions that a thousand later calls trace.
    memory_kb: int | None
    growth_bytes: int | None
    growth_calls: int | None
    output: str | None
    fifth_output: str | None
    later_traces: int | None
    # The calls before bursts, which are not timed one by one.
    untimed_ns: int | None
    # Logs of the 50th, 95th and 99th percentile of its calls in bursts, if there are enough of them.
    percentiles: tuple[float, ...]
    wall_ns: float | None

    @property
    def once(self) -> bool:
        """Whether it made its first call and no other."""
        return not self.bursts

    @property
    def sitting(self) -> int:
        """A number that replicates have in common if they were open at once, and nearly so if a worker was missing."""
        return self.number - self.position

    @property
    def arm(self) -> ArmKey:
        return ArmKey(self.case, self.target)
