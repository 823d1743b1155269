"""Values that several formats take from a run: an arm's replicates, and a comparison in words."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from orchestrator.metrics import METRICS, describe_verdict, scale_of
from orchestrator.metrics.spec import MetricSpec
from orchestrator.model import ArmKey, ArmResult, Comparison, Target
from orchestrator.reports.magnitudes import show_magnitude
from orchestrator.results.outputs import describe_output
from orchestrator.results.run import Run


def times_ns(run: Run) -> dict[ArmKey, list[float]]:
    """Return the time per step of each replicate that counts, by arm and in the order of its rounds."""
    times: dict[ArmKey, list[float]] = defaultdict(list)
    for replicate in sorted(run.replicates, key=lambda replicate: replicate.round):
        times[replicate.arm].append(replicate.time_ns)
    return dict(times)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    low, high = np.quantile(values, (0.25, 0.75))
    return float(low), float(high)


def verdict(comparison: Comparison) -> str:
    """Return the verdict with its margin, if that is not the run's, and with a mark if it is exploratory."""
    metric, margin = comparison.pair.metric, comparison.pair.margin
    within = f" within {scale_of(metric).show_margin(margin)}" if comparison.verdict == "same" and margin else ""
    word = describe_verdict(metric, comparison.shown_verdict)
    return f"{word}{within}{' (exploratory)' if comparison.exploratory else ''}"


def describe_comparison(comparison: Comparison) -> str:
    """Describe a comparison as in `slower 3.84x (3.46-4.27) against 1.14.0`, and give the reason if there is one."""
    figures = show_magnitude(comparison, comparison.pair.metric)
    why = f": {comparison.reason}" if comparison.reason else ""
    return f"{verdict(comparison)}{f' {figures}' if figures else ''} against {comparison.pair.arms[0].target}{why}"


def metrics_of_arms(run: Run) -> Iterator[tuple[MetricSpec, ArmResult, float]]:
    """Yield the metrics that were compared in addition to times, with the figure of each arm."""
    for metric in run.evaluation.metrics:
        spec = METRICS[metric]
        for arm in run.arms:
            if metric in arm.figures:
                yield spec, arm, arm.figures[metric]


def describe_other_metrics(run: Run) -> dict[ArmKey, list[str]]:
    """Return, by arm, one line for each result in addition to its time: memory, first calls and results."""
    lines: dict[ArmKey, list[str]] = defaultdict(list)
    for comparison in run.evaluation.of_metrics:
        about = METRICS[comparison.pair.metric].about
        lines[comparison.pair.arms[1]].append(f"{about}: {describe_comparison(comparison)}")
    for output in run.evaluation.outputs:
        text = describe_output(output.verdict, output.difference, output.reason)
        lines[ArmKey(output.case.label, output.candidate)].append(text)
    return lines


def python_of(run: Run, target: Target) -> str | None:
    """Return the Python that a version's worker reported or, if none started, the one of its environment."""
    facts = run.manifest.environments.get(target)
    python = run.manifest.workers.get(target, {}).get("python") or (facts.python if facts else None)
    return str(python) if python else None
