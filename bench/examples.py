"""Training loops of other people, not changed: what a run of six minutes decides, with tuned datasets and without.

They are eight example benchmarks of Keras 2.8, which were named before the first measurement and are no part of this
repository. EXAMPLES names a folder with their files, as `git archive v2.8.0 keras/benchmarks` of Keras' own repository
makes them; their hashes are checked.
"""

import hashlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median, stdev
from tempfile import TemporaryDirectory

from bench.bodies import Program, efforts_of, measure, rows_of
from bench.figures import Figure, Section
from bench.store import Store, seconds_of
from orchestrator.model import Pair
from orchestrator.results.evaluation import gather, judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.samples import samples
from orchestrator.results.streams import read_stream
from orchestrator.stats.comparisons import estimate_pair

WORKLOAD = Path(__file__).parent / "workloads" / "examples.py"
HASHES: Mapping[str, str] = {
    "antirectifier_benchmark_test.py": "b1f9e9f1e63238a7e479ee0e9ea843b192605eafd0f57621eb0d6664d10d6521",
    "bidirectional_lstm_benchmark_test.py": "e2824324556b1bbb073a1ac4e96bfba694ecd5d29daed7f030579595e89c15e7",
    "keras_cpu_benchmark_test.py": "d940cd2f38a24a500770d856712897e2244cade7cc15805ff50990ba8e4da0dc",
    "mnist_conv_benchmark_test.py": "bd3639f35bf4236685d2bb1aa654ea7542ab125a03ade5052bd55dea0480102d",
    "mnist_hierarchical_rnn_benchmark_test.py": "bcf54e17f7dedc2bae8c11ca7df731bb2af310df672d6cfd539c014466417fa7",
    "mnist_irnn_benchmark_test.py": "9e91c7decfe2aedf1488335c86f3b5d63827f88383185b9a3c1fa00eaf38cb6d",
    "reuters_mlp_benchmark_test.py": "b90e1584b8d8c2dc0753d5974827b377680942d0932b83150dbc28e5671d9250",
    "text_classification_transformer_benchmark_test.py": (
        "85c17df65c837cae61ada62c2fcfa52b9e62c249bb472189ede94800117a30db"
    ),
}
FULL = Program(("2.8", "2.13", "2.16"), "examples", 360)
DECIDED = 13 / 16
TUNED, UNTUNED = "as it is", "untuned"


def collect(source: Path, folder: Path) -> Path:
    """Put the workload and the files that it asks into a folder; exit if one of these is not what was named."""
    (folder / "fetched").mkdir()
    shutil.copy(WORKLOAD, folder)
    for name, expected in HASHES.items():
        path = next(source.rglob(name), None)
        if path is None or hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            problem = "is missing" if path is None else "has other contents"
            sys.exit(f"examples: {name} {problem} in EXAMPLES={source}; `git archive v2.8.0 keras/benchmarks` has it")
        shutil.copy(path, folder / "fetched" / name)
    return folder


def split_time(run: RunFolder) -> str:
    """Say how many seconds the calls of each kind took, the longest first."""
    names = {"build": "builds", "first": "first calls", "second": "second calls", "burst": "calls that were compared"}
    seconds: Counter[str] = Counter()
    for stream in run.worker_output.streams():
        for row in read_stream(stream.path)[0].to_pylist():
            seconds[names.get(row["phase"], "warm-ups")] += row["wall_ns"] / 1e9
            seconds["calls that lead in a burst"] += (row["untimed_ns"] or 0) / 1e9
    return ", ".join(f"{took:.0f} were {name}" for name, took in seconds.most_common())


def section(program: Program = FULL) -> Section:
    if "EXAMPLES" not in os.environ:
        sys.exit("examples: EXAMPLES must name a folder with the benchmarks of Keras 2.8; bench/examples.py says which")
    store = Store("examples")
    with TemporaryDirectory() as scratch:
        folder = collect(Path(os.environ["EXAMPLES"]), Path(scratch))
        runs = {
            name: RunFolder.open(store.run(name, measure, replace(program, untuned=name == UNTUNED), folder))
            for name in (TUNED, UNTUNED)
        }
    command = f"run --versions {','.join(program.versions)} --engine venv --case {program.selected}"
    lines = [
        "One epoch of `fit` of eight example benchmarks of Keras 2.8, on synthetic data:",
        f"`tfcompare {command} --budget {program.budget_s:.0f}s`, and the same with `--untuned-datasets`.",
        "A cell has the ratio with its interval, the verdict, and the rounds; the last column has bursts x calls in",
        "each version.",
    ]
    figures = []
    for name, run in runs.items():
        said, found = _describe(name, run, program)
        lines += said
        figures += found
    scatters = {name: find_scatters(run) for name, run in runs.items()}
    both = scatters[TUNED].keys() & scatters[UNTUNED].keys()
    if both:
        fall = median(scatters[UNTUNED][pair] / scatters[TUNED][pair] for pair in both)
        of = f"{UNTUNED} of {TUNED}, median of {len(both)} comparisons"
        figures.append(Figure("scatter of a round's ratio", fall, "share", limit=0.5, detail=of))
    store.retire()
    return Section("\n".join(lines), figures)


def find_scatters(run: RunFolder) -> dict[Pair, float]:
    """Return by how much the log ratio of a round scatters, of each comparison with two rounds and more."""
    gathered = gather(run)
    times = samples(gathered.plan, gathered.replicates)
    found = {pair: estimate_pair(times, pair) for pair in gathered.plan.pairs if pair.metric == "time"}
    return {
        pair: stdev(measured.estimate.differences)
        for pair, measured in found.items()
        if measured and len(measured.estimate.differences) > 1
    }


def _describe(name: str, run: RunFolder, program: Program) -> tuple[list[str], list[Figure]]:
    evaluation, seconds = judge_run(run), seconds_of(run.path)
    comparisons = evaluation.comparisons
    decided = sum(comparison.verdict != "inconclusive" for comparison in comparisons)
    by_cpu = sum(comparison.is_decided_by_cpu for comparison in comparisons)
    first, *others = program.versions
    heads = " | ".join(f"{version} against {first}" for version in others)
    lines = [
        "",
        f"| {name} | {heads} | bursts |",
        f"|---|{'---|' * len(program.versions)}",
        *rows_of(comparisons, efforts_of(run)),
        "",
        f"Of {seconds:.0f} s, {split_time(run)}.",
        *(f"The report warns: {warning}." for warning in evaluation.warnings),
    ]
    of, target = f"of {len(comparisons)}", DECIDED if name == UNTUNED else None
    figures = [
        Figure(f"{name}: comparisons decided", decided / len(comparisons), "share", "most", target, detail=of),
        Figure(
            f"{name}: decided, by wall or CPU time", (decided + by_cpu) / len(comparisons), "share", "most", detail=of
        ),
        Figure(f"{name}: time, of the budget", seconds / program.budget_s, "share", limit=1.1),
    ]
    return lines, figures
