"""What a large run costs to read: 500 cases in 6 versions, 20 rounds of 50 calls.

These are three million rows, written as workers write them. Each report is a fresh process, timed next to one that only
starts Python.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from bench import plain
from bench.figures import Figure, Section
from orchestrator import contract, files
from orchestrator.catalog.selectors import MARGIN
from orchestrator.catalog.workloads import all_workloads
from orchestrator.machine.host import host_facts
from orchestrator.metrics import USUAL
from orchestrator.model import Case, EnvironmentFacts, Finished, Manifest, Plan, Target
from orchestrator.plan.pairs import ALPHA, LOOKS, plan_pairs
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.streams import check_rows, compact_stream, read_stream
from workloads.sketches import sketch

VERSIONS = ("1.14.0", "2.0.0", "2.3.4", "2.8.4", "2.13.0", "2.20.0")
CASES, ROUNDS, CALLS = 500, 20, 50
BEFORE = ("build", "first", "second", "warmup")
REPEATS = 5
KILLED = "report RUN, of a run whose workers were killed"
# These are the most seconds and MiB that a command is meant to take.
MOST_S = {KILLED: 2.0, "report RUN": 2.0, "report RUN --format html": 4.0}
MOST_MIB = {"report RUN": 300.0}
COMMAND = "from orchestrator.cli.main import main; main()"
COMPACT = "import pathlib, sys; from bench.report import compact_run; compact_run(pathlib.Path(sys.argv[1]))"
MAKE = "import pathlib, sys; from bench.report import write_run; print(write_run(pathlib.Path(sys.argv[1])))"
RUN = "20260102-030405-abcd"
# What a worker on a CPU knows of a replicate whose call returned five numbers.
VALUES = [0.5, 0.25, 0.125, 1.0, 2.0]
SKETCH = sketch(np.array(VALUES, "float32"))
OF_REPLICATE = {
    **{field.name: 1 for field in contract.FIELDS if field.nullable and field.type != "label"},
    "device": "", "output": SKETCH, "fifth_output": SKETCH,
    **dict.fromkeys(("losses", "first_step_ns", "step_ns", "gpu_memory_kb")),
}  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """The cost of one command.

    This is the best of several runs, less what starting Python takes, and the most memory that the command held.
    """

    seconds: float
    peak_mb: float
    written_mb: float


def section() -> Section:
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "run"
        # Elsewhere: what a process has held counts as held by those that it starts.
        made = subprocess.run([sys.executable, "-c", MAKE, path], check=True, capture_output=True, text=True)
        rows = int(made.stdout)
        started = min(_timed(["-c", "pass"])[0] for _ in range(REPEATS))
        ask = ["report", str(path)]
        costs = {KILLED: _cost(started, ask)}
        subprocess.run([sys.executable, "-c", COMPACT, path], check=True)
        costs["report RUN"] = _cost(started, ask)
        costs["report RUN --only slower --sort ratio"] = _cost(started, [*ask, "--only", "slower", "--sort", "ratio"])
        costs["report RUN --format html"] = _cost(started, [*ask, "--format", "html"], path / "report.html", repeats=2)
        read_s, check_s = _validation(path)
    millions = rows / 1e6
    body = f"""A made run: {CASES} cases in {len(VERSIONS)} versions, {ROUNDS} rounds of {CALLS} calls in bursts,
{millions:.2f} million rows. A worker writes one batch per replicate, and the host merges them into one when the worker
has closed its stream; workers that were killed leave them as they are. Each figure is of a fresh process, the best of
{REPEATS} (html: two), less the {started * 1e3:.0f} ms of
`python -c pass`. The table of `report RUN` has {costs["report RUN"].written_mb:.1f} MiB, and the page
{costs["report RUN --format html"].written_mb:.1f} MiB.

Reading the streams takes {read_s:.2f} s ({millions / read_s:.1f} million rows/s), of which checking every value against
the contract takes {check_s:.2f} s ({millions / check_s:.0f} million rows/s), in one thread. Most of the
rest is spent on judging comparisons: of times, of CPU times, and of each metric that a run compares unasked."""
    times = [Figure(command, cost.seconds, "s", limit=MOST_S.get(command)) for command, cost in costs.items()]
    peaks = [
        Figure(f"{command}, peak memory", cost.peak_mb, "MiB", limit=MOST_MIB.get(command))
        for command, cost in costs.items()
    ]
    return Section(body, [*times, *peaks, Figure("reading the streams", read_s, "s")])


def write_run(path: Path, count: int = CASES) -> int:
    """Write a run folder with times drawn around one median per arm; return its number of rows."""
    draw = np.random.default_rng(1)
    cases = tuple(
        Case("power", (("style", style), ("size", str(number))))
        for style in ("eager", "function")
        for number in range(count // 2)
    )
    run = RunFolder.create(path)
    run.write_plan(_plan(cases))
    run.write_manifest(_manifest())
    rows = 0
    for place, version in enumerate(VERSIONS):
        medians = 10 ** draw.uniform(5, 8, len(cases)) * (1 + 0.1 * place)
        rows += _stream(run, version, place, cases, medians, draw)
    run.record(Finished(how="", seconds=3600.0, start_s=0.0, cut=False, at_budget=False))
    return rows


def compact_run(path: Path) -> None:
    """Compact the streams of a run, as the host does when workers have closed them."""
    for stream in RunFolder.open(path).worker_output.streams():
        files.write_atomically(stream.path, compact_stream(stream.path, stream.path.read_bytes()))


def _plan(cases: tuple[Case, ...]) -> Plan:
    targets = tuple(map(Target, VERSIONS))
    return Plan(
        run=RUN, created=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), suite="full", engine="venv", device="cpu",
        targets=targets, cases=cases, pairs=plan_pairs(cases, targets, all_workloads()), looks=LOOKS, alpha=ALPHA,
        margin=MARGIN, budget_s=None, seed=1, threads=None, untuned_datasets=False, keeps_xla_code=False,
        timeout_s=600.0,
        **(plain.PLAN | {"metrics": USUAL, "outputs": True}),
    )  # fmt: skip


def _manifest() -> Manifest:
    environments = {
        Target(version): EnvironmentFacts(
            target=version, kind="venv", identity="made", lock="made", python="3.11.7", **plain.ENVIRONMENT
        )
        for version in VERSIONS
    }
    return Manifest(
        tool="0.1.0", contract=contract.FINGERPRINT, command=("run",), host=host_facts(), sources={},
        environments=environments, workers={}, **plain.MANIFEST,
    )  # fmt: skip


def _stream(
    run: RunFolder, version: str, place: int, cases: tuple[Case, ...], medians: np.ndarray, draw: np.random.Generator
) -> int:
    """Write a stream as a worker does: one flushed batch per replicate, each with separate dictionaries."""
    schema, rows = contract.arrow_schema(pa), 0
    phases = [*BEFORE, *["burst"] * CALLS]
    with (run.settled / f"{version}-0.arrow").open("wb") as file, pa.ipc.new_stream(file, schema) as stream:
        for number in range(1, ROUNDS + 1):
            for which, case in enumerate(cases):
                walls = medians[which] * np.exp(draw.normal(0, 0.03) + draw.normal(0, 0.05, len(phases)))
                replicate = ((number - 1) * len(cases) + which) * len(VERSIONS) + place + 1
                stream.write_batch(_batch(schema, version, case, number, replicate, phases, walls.astype(np.int64)))
                rows += len(phases)
    return rows


def _batch(
    schema: pa.Schema, version: str, case: Case, number: int, replicate: int, phases: list[str], walls: np.ndarray
) -> pa.RecordBatch:
    many = len(phases)
    same = {
        "run": RUN, "target": version, "case": case.label, "round": number, "position": 0, "replicate": replicate,
        "burst": 1, "steps": 1,
    }  # fmt: skip
    columns = {name: [value] * many for name, value in same.items()}
    columns |= {name: [known, *[None] * (many - 1)] for name, known in OF_REPLICATE.items()}
    columns |= {"phase": phases, "ordinal": list(range(many))}
    columns |= {"wall_ns": walls, "cpu_ns": walls}
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def _cost(started: float, arguments: list[str], written: Path | None = None, repeats: int = REPEATS) -> Cost:
    found = [_timed(["-c", COMMAND, *arguments]) for _ in range(repeats)]
    size = written.stat().st_size if written else found[0][2]
    return Cost(min(one[0] for one in found) - started, max(one[1] for one in found), size / 2**20)


def _timed(arguments: list[str]) -> tuple[float, float, int]:
    """Return the wall seconds and the peak MiB of a fresh Python, and how many bytes it printed."""
    begun = time.perf_counter()
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        printed = len(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begun
    if process.returncode != 0:
        raise SystemExit(f"{json.dumps(arguments)} ended with {process.returncode}")
    return seconds, usage.ru_maxrss / 1024, printed


def _validation(path: Path) -> tuple[float, float]:
    read_s = check_s = 0.0
    for stream in RunFolder.open(path).worker_output.streams():
        begun = time.perf_counter()
        table, _ = read_stream(stream.path, stream.root)
        between = time.perf_counter()
        check_rows(stream.path, table, RUN, stream.target)
        read_s += time.perf_counter() - begun
        check_s += time.perf_counter() - between
    return read_s, check_s
