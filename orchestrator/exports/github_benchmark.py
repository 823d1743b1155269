"""The list that github-action-benchmark reads as `customSmallerIsBetter`: the time of every arm that has one."""

import json
from collections.abc import Sequence

from orchestrator.exports.common import describe_contrast, quartiles, steady_ns
from orchestrator.exports.escape import key
from orchestrator.reports.summary import by_candidate
from orchestrator.results.run import Run
from orchestrator.terminal.text import escape_unprintable

# The action puts names between backticks into a Markdown table.
UNTABLED = str.maketrans("`|", "'/")


def render(run: Run) -> str:
    times, contrasts = steady_ns(run), by_candidate(run.contrasts)
    entries = []
    for arm in run.arms:
        if arm.median_ms is None:
            continue
        name = arm.key
        contrast = contrasts.get(name)
        lines = [describe_contrast(contrast)] if contrast else []
        lines += [f"died: {arm.reason}"] if arm.outcome == "died" else []
        entries.append(
            {
                "name": key(f"{name.case} {name.version}").translate(UNTABLED),
                "unit": "ms/step",
                "value": arm.median_ms,
                **_range(times.get(name, ())),
                "extra": "\n".join(escape_unprintable(line) for line in (*lines, f"tfcompare run {run.plan.run}")),
            }
        )
    return json.dumps(entries, indent=2, allow_nan=False)


def _range(replicates_ns: Sequence[float]) -> dict[str, str]:
    """Return half the distance between the quartiles of the replicates, which is shown and used for nothing else."""
    if not replicates_ns:
        return {}
    low, high = quartiles(replicates_ns)
    return {"range": f"± {(high - low) / 2e6:.3g}"}
