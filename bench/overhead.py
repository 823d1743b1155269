"""What the harness costs: a timed call beside two bare readings of the clock, and a forked replicate beside a fresh
process. Both sides of each figure are measured in turn, in one run."""

import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator import catalog
from orchestrator.engines import EngineOptions, Environment, WorkerPlace
from orchestrator.engines.client import Opened, WorkerClient
from orchestrator.engines.setting import BuildLog
from orchestrator.engines.venv import VenvEngine
from orchestrator.model import Case

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


def measure(number: str, scratch: Path) -> Overhead:
    version = next(version for version in catalog.all_versions() if number in version.aliases)
    environment = VenvEngine(EngineOptions()).prepare(version, BuildLog(scratch / "build.log", lambda line: None))
    python = Path(environment.facts.details["path"]) / "bin" / "python"
    forks, fresh, bare, calls = [], [], [], []
    client = start(environment, scratch, number, "resident")
    for replicate in range(1, REPLICATES + 1):
        bare.append(float(subprocess.run([python, "-c", BARE], check=True, capture_output=True, text=True).stdout))
        calls.append(timed_call(client, replicate * 2))
        forks.append(opening(client, replicate * 2 + 1))
        begun = time.monotonic()
        other = start(environment, scratch, number, f"fresh-{replicate}")
        opening(other, 1)
        fresh.append(time.monotonic() - begun)
        other.quit()
    client.quit()
    middle = statistics.median
    return Overhead(number, middle(bare), middle(calls), middle(forks), middle(fresh))


def start(environment: Environment, scratch: Path, number: str, name: str) -> WorkerClient:
    place = WorkerPlace(run="bench", results=scratch, log=scratch / f"{name}.log", own_workloads=OWN)
    started = environment.start(place, scratch / f"{number}-{name}.arrow")
    client = WorkerClient(started.channel, number)
    client.hello(
        run="bench", device="cpu", threads=None, folders=started.folders, results=started.results, timeout_s=180
    )
    return client


def timed_call(client: WorkerClient, replicate: int) -> float:
    client.open(EMPTY, replicate=replicate, round=1, position=0, seed=1, warmup=0, timeout_s=60)
    burst = client.burst(replicate, CALLS, 60)
    client.close_replicate(replicate, 60)
    return statistics.median(burst.walls_ns)


def opening(client: WorkerClient, replicate: int) -> float:
    """Seconds until a replicate has built its case and made its first two calls."""
    begun = time.monotonic()
    opened = client.open(TRAIN, replicate=replicate, round=1, position=0, seed=1, warmup=0, timeout_s=60)
    took = time.monotonic() - begun
    assert isinstance(opened, Opened), opened
    client.burst(replicate, 1, 60)
    client.close_replicate(replicate, 60)
    return took


def section(versions: tuple[str, ...]) -> str:
    with TemporaryDirectory() as scratch:
        found = [measure(version, Path(scratch)) for version in versions]
    rows = [
        f"| {one.version} | {one.bare_ns:.0f} ns | {one.call_ns:.0f} ns | {one.call_ns - one.bare_ns:.0f} ns "
        f"| {one.fork_s:.2f} s | {one.fresh_s:.2f} s | {one.fresh_s / one.fork_s:.1f}x |"
        for one in found
    ]
    return "\n".join(
        [
            "## Overhead",
            "",
            f"Medians of {REPLICATES} repetitions, each of {CALLS} calls of a step that does nothing, beside as many",
            "pairs of clock readings in the same Python; and the time until a replicate of the small eager training",
            "loop has built and made its first two calls, forked from a resident worker and in a fresh process.",
            "",
            "| version | two clock readings | timed call | added | forked | fresh process | fork is cheaper by |",
            "|---|---|---|---|---|---|---|",
            *rows,
        ]
    )
