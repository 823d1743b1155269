"""pyperf's JSON: one suite per version, one run per replicate, one value per run.

Each version has a separate file, since `pyperf compare_to` compares files.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.errors import ContractBroken, UsageError
from orchestrator.exports.common import describe_comparison, python_of
from orchestrator.exports.escape import file_name, key
from orchestrator.exports.files import new_folder, write_json
from orchestrator.model import ArmKey, Comparison, Replicate
from orchestrator.reports.summary import by_candidate
from orchestrator.results import tables
from orchestrator.results.run import Run
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.streams import labels
from orchestrator.terminal.text import escape_unprintable

FORMAT = "1.0"

Metadata = dict[str, str | int | float]


@dataclass(frozen=True)
class TimedReplicate:
    """One replicate's rows in order, as arrays, since Python numbers for millions of rows would fill the memory."""

    replicate: Replicate
    phases: Any
    seconds: Any
    steps: Any


def write(run: Run, folder: Path) -> tuple[Path, ...]:
    """Write one file for each version that has a time."""
    timed = {arm.key for arm in run.arms if arm.time_ms is not None}
    if not timed and run.evaluation.broken:
        raise ContractBroken("\n".join(run.evaluation.broken))
    if not timed:
        raise UsageError(f"run {run.plan.run} has no time in any version; there is nothing to write for pyperf")
    new_folder(folder)
    calls, comparisons = _calls(run), by_candidate(run.comparisons)
    host = run.manifest.host
    cores = host.get("cores")
    files = []
    for target in run.plan.targets:
        names = [arm.key for arm in run.arms if arm.target == target and arm.key in timed]
        if names:
            suite = {
                "version": FORMAT,
                "metadata": _metadata(
                    tfcompare_run=run.plan.run,
                    tfcompare_version=str(target),
                    tfcompare_tool=run.manifest.tool,
                    tfcompare_engine=run.plan.engine,
                    tfcompare_device=run.plan.device,
                    tfcompare_judge=run.plan.judge,
                    tensorflow_version=target.name,
                    python_version=python_of(run, target),
                    cpu_model_name=str(host.get("cpu") or ""),
                    cpu_count=cores if isinstance(cores, int) else None,
                ),
                "benchmarks": [_benchmark(name, calls[name], comparisons.get(name)) for name in names],
            }
            files.append(write_json(folder / f"{file_name(str(target))}.json", suite))
    return tuple(files)


def _calls(run: Run) -> dict[ArmKey, list[TimedReplicate]]:
    replicates = {(str(replicate.target), replicate.number): replicate for replicate in run.replicates}
    by_arm: dict[ArmKey, list[TimedReplicate]] = defaultdict(list)
    column = "cpu_ns" if run.plan.judge == "cpu" else "wall_ns"
    for table in tables.streams_of_calls(RunFolder.open(run.path), run.replicates):
        if table.num_rows == 0:
            continue
        ordered = table.sort_by([("replicate", "ascending"), ("ordinal", "ascending")]).combine_chunks()
        words, codes = labels(ordered, "phase")
        phases = np.array(words, dtype=object)[codes]
        steps = ordered["steps"].to_numpy()
        # pyperf does not accept a time of zero; verdicts also count at least a nanosecond.
        seconds = np.maximum(ordered[column].to_numpy() / steps, 1.0) / 1e9
        numbers, starts = np.unique(ordered["replicate"].to_numpy(), return_index=True)
        for number, begin, end in zip(numbers, starts, [*starts[1:], len(steps)], strict=True):
            replicate = replicates.get((ordered["target"][begin].as_py(), int(number)))
            if replicate:
                timed = TimedReplicate(replicate, phases[begin:end], seconds[begin:end], steps[begin:end])
                by_arm[replicate.arm].append(timed)
    return by_arm


def _benchmark(name: ArmKey, calls: Sequence[TimedReplicate], comparison: Comparison | None) -> dict[str, Any]:
    about = _metadata(name=key(name[0]), unit="second")
    if comparison:
        about |= _metadata(
            tfcompare_verdict=comparison.verdict,
            tfcompare_size=comparison.size,
            tfcompare_against=str(comparison.pair.arms[0].target),
            tfcompare_ratio=comparison.ratio,
            tfcompare_ci_low=comparison.ci_low,
            tfcompare_ci_high=comparison.ci_high,
            tfcompare_told=describe_comparison(comparison),
        )
    return {
        "metadata": about,
        "runs": [_run(timed) for timed in sorted(calls, key=lambda timed: timed.replicate.round)],
    }


def _run(calls: TimedReplicate) -> dict[str, Any]:
    """Return a pyperf run: its value is the typical time of a step, and earlier calls except the build are warm-up.

    The replicate is what repeats, and `pyperf compare_to` wants equally many values on both sides.
    """
    replicate, in_bursts = calls.replicate, calls.phases == "burst"
    before = ~in_bursts & (calls.phases != "build")
    about = _metadata(
        loops=int(calls.steps[in_bursts].sum()),
        duration=replicate.calls_ns / 1e9,
        mem_max_rss=None if replicate.resident_kb is None else replicate.resident_kb * 1024,
        tfcompare_round=replicate.round,
        tfcompare_replicate=replicate.number,
    )
    warmups = zip(calls.steps[before].tolist(), calls.seconds[before].tolist(), strict=True)
    return {
        "metadata": about,
        "warmups": [list(pair) for pair in warmups],
        "values": [max(replicate.time_ns, 1.0) / 1e9],
    }


def _metadata(**facts: str | int | float | None) -> Metadata:
    """Return metadata without missing and blank values and with texts in one line, as pyperf requires."""
    clean = {name: escape_unprintable(fact).strip() if isinstance(fact, str) else fact for name, fact in facts.items()}
    return {name: fact for name, fact in clean.items() if fact is not None and fact != ""}
