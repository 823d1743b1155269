"""The summary of a replicate in one row, from which metrics are read."""

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
    # These are arrays, since a tuple holds each number as a separate object.
    bursts: Sequence[float]
    cpu_bursts: Sequence[float]
    position: int
    # This is the whole first call, because costs that occur once, such as tracing, are not a property of a step.
    first_call_ns: float
    items: int | None
    # Only a program that calls Keras' fit has these. The losses of its epochs are JSON.
    first_step_ns: int | None
    step_ns: int | None
    losses: str | None
    # Only replicates on a GPU have these; energy is per step, and only of a run that asks for it.
    device: str | None
    gpu_memory_kb: int | None
    energy_uj: int | None
    # Memory is read after the first calls, and its growth is per later call. Outputs are sketches of what the first and
    # the fifth call returned. Later traces are those of a thousand later calls.
    memory_kb: int | None
    growth_bytes: int | None
    growth_calls: int | None
    output: str | None
    fifth_output: str | None
    later_traces: int | None
    # These are the functions of Python that two further calls ran, one after the other.
    python_calls: int | None
    next_python_calls: int | None
    # These are the TensorFlow operations that two other calls ran.
    operations: int | None
    next_operations: int | None
    # This is the time of the calls before bursts, which are not timed one by one.
    untimed_ns: int | None
    # These are the logs of the 50th, 95th and 99th percentile of its calls in bursts, if there are enough calls.
    percentiles: tuple[float, ...]
    wall_ns: float | None

    @property
    def once(self) -> bool:
        """Whether it made only its first call."""
        return not self.bursts

    @property
    def sitting(self) -> int:
        """A number that replicates share if they were open at once, or nearly share if a worker was missing."""
        return self.number - self.position

    @property
    def arm(self) -> ArmKey:
        return ArmKey(self.case, self.target)
