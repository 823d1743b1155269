"""The results folder of airspeed velocity: a machine, benchmarks by workload and metric, and one file per version."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from orchestrator.exports.common import python_of, quartiles, times_ns
from orchestrator.exports.escape import file_name, key
from orchestrator.exports.files import new_folder, write_json
from orchestrator.metrics import METRICS
from orchestrator.metrics.spec import MetricSpec, Unit
from orchestrator.model import ArmKey, ArmResult, Case, Target
from orchestrator.results.run import Run
from orchestrator.stats.paired import Estimate

MACHINE_FORMAT, BENCHMARKS_FORMAT, RESULTS_FORMAT = 1, 2, 2
COLUMNS = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25",
    "stats_q_75", "stats_number", "stats_repeat", "samples", "profile",
)  # fmt: skip
STATS = ("ci_99_a", "ci_99_b", "q_25", "q_75", "number", "repeat")
# If the parameters of a workload have more combinations than this, its cases become the only parameter.
MOST_COMBINATIONS = 10_000

# Each unit has asv's type and unit, and the factor that converts a figure to that.
UNITS: Mapping[Unit, tuple[str, str, float]] = {
    "ms": ("time", "seconds", 1e-3),
    "bytes": ("peakmemory", "bytes", 1.0),
    "joules": ("track", "joules", 1.0),
    "count": ("track", "count", 1.0),
}


@dataclass(frozen=True)
class Benchmark:
    """A workload, and the position of each of its cases in the product of its parameters."""

    name: str
    digest: str
    parameters: dict[str, list[str]]
    cases: tuple[Case | None, ...]
    # The benchmark is about this metric, or about times if there is none.
    metric: MetricSpec | None = None

    @property
    def values(self) -> list[list[str]]:
        return list(self.parameters.values())


def write(run: Run, folder: Path) -> tuple[Path, ...]:
    new_folder(folder)
    machine = _machine(run)
    of_times = [_benchmark(run, workload) for workload in dict.fromkeys(case.workload for case in run.plan.cases)]
    of_others = [_of_metric(benchmark, METRICS[metric]) for metric in run.evaluation.metrics for benchmark in of_times]
    if run.plan.judge == "cpu":
        of_times = [replace(_of_metric(benchmark, METRICS["cpu"]), metric=None) for benchmark in of_times]
    benchmarks = [*of_times, *of_others]
    own = new_folder(folder / machine["machine"])
    listed: dict[str, Any] = {}
    for benchmark in benchmarks:
        kind, unit, _ = UNITS[benchmark.metric.unit if benchmark.metric else "ms"]
        listed[benchmark.name] = {
            "name": benchmark.name,
            "code": f"# {benchmark.name}, measured by tfcompare",
            "params": benchmark.values,
            "param_names": list(benchmark.parameters),
            "type": kind,
            "unit": unit,
            "timeout": run.plan.timeout_s,
            "version": benchmark.digest,
        }
    files = [
        write_json(folder / "benchmarks.json", {**listed, "version": BENCHMARKS_FORMAT}),
        write_json(own / "machine.json", {**machine, "version": MACHINE_FORMAT}),
    ]
    for target in run.plan.targets:
        result = _result(run, target, machine, benchmarks)
        files.append(write_json(own / f"{result['commit_hash'][:8]}-{result['env_name']}.json", result))
    return tuple(files)


def _machine(run: Run) -> dict[str, str]:
    """Return the facts about the machine under its stable id, since the host's name is not recorded."""
    host = {name: "" if fact is None else str(fact) for name, fact in run.manifest.host.items()}
    return {
        "machine": file_name(f"machine-{host.get('id', 'unknown')}"),
        "os": f"{host.get('system', '')} {host.get('kernel', '')}".strip(),
        "arch": "",
        "cpu": host.get("cpu", ""),
        "num_cpu": host.get("cores", ""),
        "ram": f"{host['memory_mb']} MB" if host.get("memory_mb") else "",
    }


def _benchmark(run: Run, workload: str) -> Benchmark:
    cases = [case for case in run.plan.cases if case.workload == workload]
    names = dict.fromkeys(name for case in cases for name, _ in case.params)
    # Values are in the order of their first use, as Python writes them; None means that a case lacks the parameter.
    parameters = {name: list(dict.fromkeys(repr(dict(case.params).get(name)) for case in cases)) for name in names}
    if math.prod(map(len, parameters.values())) > max(MOST_COMBINATIONS, len(cases)):
        parameters = {"case": [repr(case.label) for case in cases]}
        placed: tuple[Case | None, ...] = tuple(cases)
    else:
        by_values = {tuple(repr(dict(case.params).get(name)) for name in parameters): case for case in cases}
        placed = tuple(by_values.get(combination) for combination in product(*parameters.values()))
    # The name has a prefix, since a workload called `version` would be taken for the version of the format.
    name = key(f"tfcompare.{workload}")
    source = run.manifest.sources.get(workload) or repr(sorted(parameters.items()))
    return Benchmark(name, hashlib.sha256(source.encode()).hexdigest(), parameters, placed)


def _of_metric(benchmark: Benchmark, metric: MetricSpec) -> Benchmark:
    return replace(benchmark, name=key(f"{benchmark.name}.{metric.name}"), metric=metric)


def _result(run: Run, target: Target, machine: dict[str, str], benchmarks: Sequence[Benchmark]) -> dict[str, Any]:
    environment = run.manifest.environments.get(target)
    python = python_of(run, target) or ""
    arms = {arm.key: arm for arm in run.arms}
    times = times_ns(run)
    moment = int(run.plan.created.timestamp() * 1000)
    return {
        "commit_hash": commit_hash(target, environment.lock if environment else ""),
        "env_name": file_name(f"{environment.kind if environment else 'none'}-py{python}"),
        "date": moment,
        "params": {**machine, "python": python, "tensorflow": target.name},
        "python": python,
        "requirements": {"tensorflow": target.name},
        "env_vars": {},
        "result_columns": list(COLUMNS),
        "results": {benchmark.name: _row(benchmark, target, arms, times, moment) for benchmark in benchmarks},
        "durations": {},
        "version": RESULTS_FORMAT,
    }


def commit_hash(target: Target, lock: str) -> str:
    """Return a stable number in the form of a commit hash for a version and its lock.

    asv files every result under a commit, and here there is none.
    """
    return hashlib.sha256(f"tensorflow {target} {lock}".encode()).hexdigest()[:40]


def _row(
    benchmark: Benchmark, target: Target, arms: dict[ArmKey, ArmResult], times: dict[ArmKey, list[float]], moment: int
) -> list[Any]:
    """Return the columns in the order of COLUMNS; what was not measured is null in all of them."""
    row = [arms.get(ArmKey(case.label, target)) if case else None for case in benchmark.cases]
    if metric := benchmark.metric:
        figures = [arm.figures.get(metric.name) if arm else None for arm in row]
        factor = UNITS[metric.unit][2]
        results = [None if figure is None else figure * factor for figure in figures]
        return [results, benchmark.values, benchmark.digest, moment, *[None] * (len(COLUMNS) - 4)]
    results = [None if arm is None or arm.time_ms is None else arm.time_ms / 1e3 for arm in row]
    samples = [[max(ns, 1.0) / 1e9 for ns in times.get(arm.key, ())] if arm and arm.rounds else None for arm in row]
    stats = [_stats(seconds) if seconds else {} for seconds in samples]
    columns = [[values.get(name) for values in stats] for name in STATS]
    return [results, benchmark.values, benchmark.digest, moment, None, *columns, samples]


def _stats(seconds: Sequence[float]) -> dict[str, float]:
    """Return the statistics of an arm's replicates.

    asv's interval at 99 % is computed from them on the log scale, and is not that of any ratio.
    """
    low, high = quartiles(seconds)
    stats: dict[str, float] = {"q_25": low, "q_75": high, "number": 1, "repeat": len(seconds)}
    if len(seconds) > 1:
        estimate = Estimate(tuple(math.log(value) for value in seconds))
        width = estimate.half_width(0.01)
        stats |= {"ci_99_a": math.exp(estimate.theta - width), "ci_99_b": math.exp(estimate.theta + width)}
    return stats
