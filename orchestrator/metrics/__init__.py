"""The metrics by which two arms are compared, each with its figure, its unit, its words and its margin."""

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.metrics.spec import MetricSpec
from orchestrator.metrics.table import SPECS
from orchestrator.model import METRIC_NAMES, Metric, Plan
from orchestrator.stats.scale import MetricScale

METRICS: Mapping[Metric, MetricSpec] = {spec.name: spec for spec in SPECS}
METRIC_NAMES.update(METRICS)
# The results of calls are also compared, but have no ratio.
OUTPUT: Final = "output"
NAMES = (*(name for name in METRICS if name != "step"), OUTPUT)
# A series of nightly runs is one of ratios, or of results.
OF_SERIES = tuple(name for name in NAMES if name == OUTPUT or METRICS[name].units is None)
TIMES: tuple[Metric, ...] = tuple(spec.name for spec in METRICS.values() if spec.worse == "slower")
# Rounds are planned for these.
PLANNED: tuple[Metric, ...] = ("time", "step")
# A run that is judged by CPU time cannot have these: `cpu` is its time, and `step` is only known as wall time.
NOT_BY_CPU: frozenset[Metric] = frozenset(("cpu", "step"))
# A run on a CPU has none of these.
OF_GPUS: frozenset[Metric] = frozenset(("gpu_memory", "energy"))
# A run judges these in addition to times, and one on a GPU also the most memory that it took there. The cases of a
# program have neither a first call nor a result.
USUAL: tuple[Metric, ...] = ("first", "memory")
USUAL_ON_GPU: tuple[Metric, ...] = (*USUAL, "gpu_memory")
OF_PROGRAMS: tuple[Metric, ...] = ("memory",)
# A program has only these metrics, because tfcompare sees neither its calls nor what they return.
OF_ALL_PROGRAMS: tuple[Metric, ...] = (*PLANNED, *OF_PROGRAMS, "cpu", "import", "size")


def describe_verdict(metric: Metric, verdict: str) -> str:
    """Return a verdict, or a title with one, in the words of its metric: more memory is `more`, and not `slower`."""
    spec = METRICS[metric]
    return verdict.replace("slower", spec.worse).replace("faster", spec.better)


def is_counted(metric: Metric) -> bool:
    """Return whether two replicates of each arm are enough for a verdict, if they count the same."""
    return METRICS[metric].read_next is not None


def scale_of(metric: Metric) -> MetricScale:
    return METRICS[metric].scale


def find_margin(plan: Plan, metric: Metric) -> float:
    """Return what counts as a difference of a metric in a run: what the user named, or the metric's own margin."""
    own = METRICS[metric].margin
    return plan.margins.get(metric, plan.margin if own is None else own)


def choose_metrics(names: Iterable[str]) -> tuple[tuple[Metric, ...], bool]:
    """Return the metrics with these names that are judged in addition to times, and whether results are compared."""
    named = tuple(names)
    specs = (METRICS[name] for name in named if name != OUTPUT)
    metrics = dict.fromkeys(metric for spec in specs for metric in (spec.name, *spec.judged_with))
    return tuple(metric for metric in metrics if metric not in PLANNED), OUTPUT in named


def with_output(metrics: Iterable[Metric], *, outputs: bool) -> tuple[str, ...]:
    """Return these metrics, and that of results if results are compared."""
    return (*metrics, *([OUTPUT] if outputs else []))
