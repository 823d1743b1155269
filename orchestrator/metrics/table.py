"""All metrics: how each is read from a replicate, the words for it, and its margin."""

import math

from orchestrator.metrics.spec import MetricSpec, Values, in_bytes, in_ms, log_of, show_bytes, show_energy
from orchestrator.metrics.units import BYTES_PER_CALL, COUNT, COUNT_PER_CALL
from orchestrator.model import Metric, Replicate
from orchestrator.terminal.durations import format_time

# Fewer calls say nothing about a leak, because allocators keep the memory that they have.
FEWEST_FOR_LEAK = 200
# The kernel counts memory in pages.
PAGE = 4096
# Ten of these calls are beyond the last percentile. Only a run that asks for percentiles makes this many.
FEWEST_FOR_PERCENTILES = 1000
PERCENTILES: dict[Metric, int] = {"p50": 50, "p95": 95, "p99": 99}


def _leak(replicate: Replicate) -> Values:
    """Return by how much memory grows per call, if a replicate made enough calls to show a leak."""
    is_known = replicate.growth_bytes is not None and (replicate.growth_calls or 0) >= FEWEST_FOR_LEAK
    return (float(replicate.growth_bytes or 0),) if is_known else ()


def _percentile(name: Metric, place: int) -> MetricSpec:
    of = f"the {PERCENTILES[name]}th percentile of calls"
    return MetricSpec(
        name=name, about=of.removeprefix("the "), more=f"takes longer at {of}", less=f"takes less time at {of}",
        values=lambda replicate: replicate.percentiles[place : place + 1],
        figure=lambda replicate: math.exp(replicate.percentiles[place]) / 1e6 if replicate.percentiles else None,
        show=format_time, least_calls=FEWEST_FOR_PERCENTILES,
    )  # fmt: skip


SPECS = (
    # The time of a program is that of its whole run.
    MetricSpec(
        name="time", about="time per step", meaning="after the warm-up, per step", more="is slower", less="is faster",
        values=lambda replicate: tuple(replicate.bursts), figure=lambda replicate: replicate.time_ns / 1e6,
        show=format_time,
    ),
    # The first call includes one-time costs such as tracing, which scatter more than a step. A program has no first
    # call.
    MetricSpec(
        name="first", about="first call", meaning="the whole first call", more="takes longer for the first call",
        less="takes less time for the first call",
        values=lambda replicate: log_of(replicate.first_call_ns),
        figure=lambda replicate: in_ms(replicate.first_call_ns), show=format_time, of_openings=True, margin=0.1,
    ),
    # The peak memory of a program is that of the whole process.
    MetricSpec(
        name="memory", about="peak memory",
        meaning="a replicate's peak memory after equally many first calls in every version, without pages of files",
        more="needs more memory", less="needs less memory",
        worse="more", better="less",
        values=lambda replicate: log_of(replicate.memory_kb or replicate.resident_kb),
        figure=lambda replicate: in_bytes(replicate.memory_kb or replicate.resident_kb), unit="bytes", show=show_bytes,
        margin=0.05,
    ),
    # The size of the process does not matter. The calls of a replicate's first burst come before the first reading.
    MetricSpec(
        name="leak", about="growth of memory per call",
        meaning="by how much memory grows per call; needs at least 200 calls", more="grows more with each call",
        less="grows less with each call", worse="more", better="less",
        values=_leak, units=BYTES_PER_CALL, resolution=PAGE / FEWEST_FOR_LEAK,
        figure=lambda replicate: next(iter(_leak(replicate)), None), unit="bytes", show=BYTES_PER_CALL.show,
        margin=1024.0,
        least_calls=FEWEST_FOR_LEAK * 5 // 4,
    ),
    MetricSpec(
        name="build", about="build", meaning="before the first call",
        more="takes longer to build", less="takes less time to build",
        values=lambda replicate: log_of(replicate.build_ns),
        figure=lambda replicate: replicate.build_ns / 1e6,
        show=format_time, of_openings=True, margin=0.1,
    ),
    # The import of TensorFlow in a worker is a property of a target, and not of a case.
    MetricSpec(
        name="import", about="import of TensorFlow", meaning="of TensorFlow, once per worker",
        more="takes longer to import", less="takes less time to import",
        values=lambda replicate: log_of(replicate.import_ns),
        figure=lambda replicate: in_ms(replicate.import_ns),
        show=format_time, margin=0.1, of_targets=True,
    ),
    # A busy machine disturbs CPU time less than wall time.
    MetricSpec(
        name="cpu", about="CPU time per step", meaning="of all its threads and processes, after the warm-up, per step",
        more="uses more CPU time", less="uses less CPU time",
        values=lambda replicate: tuple(replicate.cpu_bursts), figure=lambda replicate: in_ms(replicate.cpu_ns),
        show=format_time,
    ),
    # A run on a CPU has no GPU memory.
    MetricSpec(
        name="gpu_memory", about="peak memory of the GPU", meaning="the most that TensorFlow had in use",
        more="needs more memory of the GPU",
        less="needs less memory of the GPU", worse="more", better="less",
        values=lambda replicate: log_of(replicate.gpu_memory_kb),
        figure=lambda replicate: in_bytes(replicate.gpu_memory_kb), unit="bytes", show=show_bytes, margin=0.05,
    ),
    # A GPU adds to its count of energy every few dozen milliseconds, so a short burst would often see nothing.
    MetricSpec(
        name="energy", about="energy of the GPU", meaning="what the GPU takes while it runs a step",
        more="takes more energy", less="takes less energy", worse="more", better="less",
        values=lambda replicate: log_of(replicate.energy_uj),
        figure=lambda replicate: replicate.energy_uj / 1e6 if replicate.energy_uj else None,
        unit="joules", show=show_energy, margin=0.05, least_burst_s=0.5,
    ),
    # A replicate traces Python functions into graphs. All arms make equally many first calls, whereas a count over all
    # calls would depend on how many an arm makes, and so on its speed. One trace more is a difference, and there is no
    # smaller one.
    MetricSpec(
        name="traces", about="traces of the first five calls",
        meaning="functions traced into graphs by the first five calls", more="traces more functions",
        less="traces fewer functions", worse="more", better="less",
        values=lambda replicate: () if replicate.traces is None else (float(replicate.traces),),
        units=COUNT, figure=lambda replicate: replicate.traces, unit="count", show=COUNT.show, margin=0.5,
        judged_with=("traces_per_call",),
    ),
    MetricSpec(
        name="traces_per_call", about="traces of a later call",
        meaning="functions traced into graphs by a later call", more="traces more functions in later calls",
        less="traces fewer functions in later calls", worse="more", better="less",
        values=lambda replicate: () if replicate.later_traces is None else (replicate.later_traces / 1000,),
        units=COUNT_PER_CALL,
        figure=lambda replicate: None if replicate.later_traces is None else replicate.later_traces / 1000,
        unit="count", show=COUNT_PER_CALL.show, margin=0.1,
    ),
    # A profiler counts Python calls while calls are not timed. Only a run that asks for this metric counts.
    MetricSpec(
        name="calls", about="Python calls", meaning="functions of Python that a call runs, counted and not timed",
        more="runs more Python functions", less="runs fewer Python functions", worse="more", better="less",
        values=lambda replicate: log_of(replicate.python_calls), figure=lambda replicate: replicate.python_calls,
        unit="count", show="{:,.0f}".format, margin=0.01, exact=True,
        read_next=lambda replicate: replicate.next_python_calls, by_python=True,
    ),
    # Operations are counted in the same way, where TensorFlow starts them.
    MetricSpec(
        name="ops", about="TensorFlow operations",
        meaning="operations that a call runs, with the nodes of its graphs before the optimizer, counted and not timed",
        more="runs more operations", less="runs fewer operations", worse="more", better="less",
        values=lambda replicate: log_of(replicate.operations), figure=lambda replicate: replicate.operations,
        unit="count", show="{:,.0f}".format, margin=0.01, exact=True,
        read_next=lambda replicate: replicate.next_operations, of_tensorflow=True,
    ),
    # No replicate has a size. The manifest has that of each environment.
    MetricSpec(
        name="size", about="size of the environment",
        meaning="the packages of a virtual environment, or an image with all that it is built on",
        more="takes more disk", less="takes less disk",
        worse="more", better="less", values=lambda replicate: (), figure=lambda replicate: None,
        unit="bytes", show=show_bytes, margin=0.05, of_targets=True, exact=True,
    ),
    # Only a program that calls Keras' `fit` has this metric.
    MetricSpec(
        name="step", about="a step of fit", meaning="later steps of fit",
        more="is slower in a step of fit", less="is faster in a step of fit",
        values=lambda replicate: log_of(replicate.step_ns), figure=lambda replicate: in_ms(replicate.step_ns),
        show=format_time,
    ),
    # Users of a server wait for its slowest calls.
    *(_percentile(name, place) for place, name in enumerate(PERCENTILES)),
)  # fmt: skip
