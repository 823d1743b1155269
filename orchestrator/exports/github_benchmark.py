"""The list that github-action-benchmark reads as `customSmallerIsBetter`: one entry for each figure of an arm."""

from collections.abc import Mapping

from orchestrator.exports.common import describe_comparison, metrics_of_arms, quartiles, times_ns
from orchestrator.exports.escape import key
from orchestrator.metrics.spec import Unit
from orchestrator.reports.summary import by_candidate
from orchestrator.results.run import Run
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import escape_unprintable

UNITS: Mapping[Unit, tuple[str, float]] = {
    "ms": ("ms", 1.0), "bytes": ("MiB", 2.0**-20), "joules": ("J", 1.0), "count": ("count", 1.0),
}  # fmt: skip
# The action puts names between backticks into a Markdown table.
SAFE_IN_TABLES = str.maketrans("`|", "'/")


def render(run: Run) -> str:
    times, comparisons = times_ns(run), by_candidate(run.comparisons)
    entries = []
    # CPU time has the same name as when it is compared in addition to wall time.
    of_cpu = " cpu" if run.plan.judge == "cpu" else ""
    for arm in run.arms:
        if arm.time_ms is None:
            continue
        name = arm.key
        comparison = comparisons.get(name)
        lines = [describe_comparison(comparison)] if comparison else []
        lines += [f"died: {arm.reason}"] if arm.outcome == "died" else []
        spread = {}
        if name in times:
            # The range is half the distance between the quartiles of the replicates, and is only shown.
            low, high = quartiles(times[name])
            spread = {"range": f"± {(high - low) / 2e6:.3g}"}
        entries.append(
            {
                "name": key(f"{name.case} {name.target}{of_cpu}").translate(SAFE_IN_TABLES),
                "unit": "ms/step",
                "value": arm.time_ms,
                **spread,
                "extra": "\n".join(escape_unprintable(line) for line in (*lines, f"tfcompare run {run.plan.run}")),
            }
        )
    for spec, arm, figure in metrics_of_arms(run):
        unit, factor = UNITS[spec.unit]
        entries.append(
            {
                "name": key(f"{arm.case.label} {arm.target} {spec.name}").translate(SAFE_IN_TABLES),
                "unit": unit,
                "value": figure * factor,
                "extra": f"tfcompare run {run.plan.run}",
            }
        )
    return strict_json.dump(entries, indent=2)
