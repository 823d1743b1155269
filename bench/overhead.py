"""The overhead of the harness for a timed call and for a forked replicate, and where the time of a whole run goes.

The call is timed next to two bare readings of the clock, and the replicate next to a fresh process. Both sides of each
figure are measured in turn, in one run.
"""

import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.figures import Figure, Section
from orchestrator import catalog
from orchestrator.engines import Environment, WorkerPaths
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.engines.worker.client import Burst, Opened, WorkerClient
from orchestrator.measure.run import plan_and_measure as measure_run
from orchestrator.measure.workers import Workers
from orchestrator.model import Case, Finished, Target
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions
from orchestrator.results import streams
from orchestrator.results.run_folder import RunFolder
from orchestrator.stats.calibrate import MOST_IN_BURST
from orchestrator.terminal.view import View

OWN = Path(__file__).parent / "workloads"
EMPTY = Case("empty", ())
TRAIN = Case(
    "train_loop",
    (
        ("loop", "train_on_batch"),
        ("api", "tf.keras"),
        ("mode", "eager"),
        ("input", "numpy"),
        ("model", "small"),
        ("data", "small"),
    ),
)
CALLS = 20_000
REPLICATES = 5
BURST_CALLS = 50
VERSIONS = ("1.14", "2.0", "2.13")
INSIDE = 0.75
# The round loop waits for these steps, one after the other.
STEPS: Mapping[str, tuple[type, str]] = {
    "start workers": (Workers, "renew"),
    "open": (WorkerClient, "open"),
    "bursts": (WorkerClient, "burst"),
    "close": (WorkerClient, "close_replicate"),
}
# Run by the version's own Python: its interpreter, not the host's, is what times calls.
BARE = f"""
import time
walls = []
for _ in range({CALLS}):
    start = time.perf_counter()
    walls.append(time.perf_counter() - start)
print(sorted(walls)[len(walls) // 2] * 1e9)
"""


@dataclass(frozen=True)
class Overhead:
    version: str
    bare_ns: float
    call_ns: float
    fork_s: float
    fresh_s: float
    host_share: float


def measure(number: str, scratch: Path) -> Overhead:
    (version,) = catalog.resolve_versions([number], fewest=1)
    environment = VenvEngine(EngineOptions()).prepare(version, BuildLog(scratch / "build.log"))
    python = Path(environment.facts.details["path"]) / "bin" / "python"
    forks, fresh, bare, calls, shares = [], [], [], [], []
    client = start(environment, scratch, number, "resident")
    for replicate in range(1, REPLICATES + 1):
        bare.append(float(subprocess.run([python, "-c", BARE], check=True, capture_output=True, text=True).stdout))
        calls.append(timed_call(client, replicate * 2))
        took, share = opening(client, replicate * 2 + 1)
        forks.append(took)
        shares.append(share)
        begun = time.monotonic()
        other = start(environment, scratch, number, f"fresh-{replicate}")
        opening(other, 1)
        fresh.append(time.monotonic() - begun)
        other.quit()
    client.quit()
    middle = statistics.median
    return Overhead(number, middle(bare), middle(calls), middle(forks), middle(fresh), max(shares))


def start(environment: Environment, scratch: Path, number: str, name: str) -> WorkerClient:
    paths = WorkerPaths(run="bench", results=scratch, log=scratch / f"{name}.log", own_workloads=OWN)
    started = environment.start(paths, scratch / f"{number}-{name}.arrow")
    client = WorkerClient(started.channel, Target(number))
    client.hello(
        run="bench", device="cpu", threads=None, folders=started.folders, results=started.results, timeout_s=180
    )
    return client


def timed_call(client: WorkerClient, replicate: int) -> float:
    opened = client.open(EMPTY, replicate=replicate, round=1, position=0, seed=1, warmup=0, timeout_s=60)
    assert isinstance(opened, Opened), opened
    walls: list[int] = []
    while len(walls) < CALLS:
        burst = client.burst(replicate, MOST_IN_BURST, 60)
        assert isinstance(burst, Burst), burst
        walls += burst.walls_ns
    client.close_replicate(replicate, 60)
    return statistics.median(walls)


def opening(client: WorkerClient, replicate: int) -> tuple[float, float]:
    """Return the time until a replicate is open, and the host's share of a core during a burst.

    The time is the seconds until the replicate has built its case and made its first two calls.
    """
    begun = time.monotonic()
    opened = client.open(TRAIN, replicate=replicate, round=1, position=0, seed=1, warmup=0, timeout_s=60)
    took = time.monotonic() - begun
    assert isinstance(opened, Opened), opened
    begun, cpu = time.monotonic(), time.process_time()
    client.burst(replicate, BURST_CALLS, 60)
    share = (time.process_time() - cpu) / (time.monotonic() - begun)
    client.close_replicate(replicate, 60)
    return took, share


@dataclass
class Step:
    """How long the host waited for something, and how often."""

    seconds: float = 0.0
    times: int = 0


@dataclass(frozen=True)
class WholeRun:
    """The seconds of a run after its workers started, in total and per step, and the part of each step inside calls."""

    seconds: float
    steps: Mapping[str, Step]
    inside: Mapping[str, float]

    @property
    def share(self) -> float:
        return sum(self.inside.values()) / self.seconds

    def describe(self) -> Iterator[str]:
        yield "| step | times | of the run | of the run, inside TensorFlow's build and calls | the rest, each time |"
        yield "|---|---|---|---|---|"
        for name, step in self.steps.items():
            inside = self.inside.get(name, 0.0)
            rest_ms = (step.seconds - inside) / max(step.times, 1) * 1e3
            shares = f"{step.seconds / self.seconds:.1%} | {inside / self.seconds:.1%}"
            yield f"| {name} | {step.times} | {shares} | {rest_ms:.1f} ms |"
        else_s = self.seconds - sum(step.seconds for step in self.steps.values())
        yield f"| all else on the host | | {else_s / self.seconds:.1%} | | |"


@contextmanager
def clocked() -> Iterator[Mapping[str, Step]]:
    """Time each step of all runs made inside this context."""
    took = {name: Step() for name in STEPS}

    def timed(step: Step, method: Callable[..., object]) -> Callable[..., object]:
        @wraps(method)
        def call(*given: object, **named: object) -> object:
            begun = time.monotonic()
            try:
                return method(*given, **named)
            finally:
                step.seconds += time.monotonic() - begun
                step.times += 1

        return call

    before = [(name, kind, method, getattr(kind, method)) for name, (kind, method) in STEPS.items()]
    for name, kind, method, plain in before:
        setattr(kind, method, timed(took[name], plain))
    try:
        yield took
    finally:
        for _, kind, method, plain in before:
            setattr(kind, method, plain)


def time_whole_run(scratch: Path) -> WholeRun:
    """Measure which share of the quick suite TensorFlow's build, warm-up and calls take after the workers start."""
    options = RunOptions(versions=VERSIONS, engine="venv", out=scratch / "quick", seed=1)
    with clocked() as took:
        path = measure_run(options, View()).path
    folder = RunFolder.open(path)
    (finished,) = [entry for entry in folder.entries() if isinstance(entry, Finished)]
    inside: Counter[str] = Counter()
    for stream in folder.worker_output.streams():
        table = streams.read_stream(stream.path)[0]
        phases, walls = table["phase"].to_pylist(), table["wall_ns"].to_pylist()
        for phase, wall in zip(phases, walls, strict=True):
            inside["bursts" if phase == "burst" else "open"] += wall / 1e9
        # This is the time of the calls before bursts.
        inside["bursts"] += sum(each or 0 for each in table["untimed_ns"].to_pylist()) / 1e9
    return WholeRun(finished.seconds, took, inside)


def section() -> Section:
    with TemporaryDirectory() as scratch:
        found = [measure(version, Path(scratch)) for version in VERSIONS]
        whole = time_whole_run(Path(scratch))
    rows = [
        f"| {one.version} | {one.bare_ns:.0f} ns | {one.call_ns:.0f} ns | {one.call_ns - one.bare_ns:.0f} ns "
        f"| {one.fork_s:.2f} s | {one.fresh_s:.2f} s | {one.fresh_s / one.fork_s:.1f}x | {one.host_share:.2%} |"
        for one in found
    ]
    body = "\n".join(
        [
            f"Medians of {REPLICATES} repetitions, each of {CALLS} calls of a step that does nothing, next to as many",
            "pairs of clock readings in the same Python; the time until a replicate of the small eager training loop",
            "has built and made its first two calls, forked from a resident worker and in a fresh process; and the CPU",
            f"time of the orchestrator itself during a burst of {BURST_CALLS} calls, in cores (the highest value).",
            "",
            "| version | two clock readings | timed call | added | forked | fresh process | cheaper by | host CPU |",
            "|---|---|---|---|---|---|---|---|",
            *rows,
            "",
            f"The quick suite of {', '.join(VERSIONS)} took {whole.seconds:.0f} s once its workers were up:",
            "",
            *whole.describe(),
        ]
    )
    inside = Figure(
        "time inside TensorFlow's build, warm-up and calls, quick suite", whole.share, "share", "most", INSIDE
    )
    added = [Figure(f"added to a call in {one.version}", one.call_ns - one.bare_ns, "ns") for one in found]
    forks = [Figure(f"a forked replicate in {one.version}", one.fork_s, "s") for one in found]
    return Section(body, [inside, *added, *forks])
