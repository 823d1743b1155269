"""`python -m bench.workers` measures how much workers of one version differ, beyond what their forks explain.

All replicates of a round that belong to one version are forks of one worker, so they all have its address layout and
its hashes. Here the arms of a run are workers of one version that live as long as the run, each with its own layout and
its own hash seed. In every round each worker opens a fork, one after another in random order, which is reversed every
second round, and their bursts take turns, as those of versions do in the product. A disturbance of a whole round
affects all workers, so rounds are blocks. If workers differ by more than their forks explain, the variance of their
means is larger than it should be.

A short first run shows by how much forks of a worker differ at most. This determines how many forks are needed for the
expected upper limit, without an effect, to be small enough. If forks turn out to differ by more, or if a run would be
long, more generations of workers are measured, and each is compared only within itself. Whether another generation is
measured depends on the spread of forks, never on the difference between workers. All runs are stored, so one version or
body can be measured alone, and an interrupted bench continues.
"""

import argparse
import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench import arena
from bench.figures import Figure, Section
from bench.overhead import TRAIN
from bench.store import Store, seconds_of
from orchestrator.model import ArmKey, Calibrated, Case, Target
from orchestrator.results.evaluation import gather
from orchestrator.results.run_folder import RunFolder
from orchestrator.stats.calibrate import Effort

VERSIONS = ("1.14", "2.0", "2.13")
BODIES: Mapping[str, Case] = {
    "matmul": arena.MATMUL,
    "train": TRAIN,
    "predict": Case("predict", (("call", "predict"), ("state", "compiled"), ("model", "tiny"))),
    "power": Case("power", (("style", "function"),)),
    "eager": Case("power", (("style", "eager"),)),
}
# The largest upper limit that is expected where workers do not differ.
WANTED = 0.007
# The upper limit is one-sided at this level.
LEVEL = 0.05
# A worker has at most this many forks; more of them come from another generation of workers.
MOST_FORKS = 40
# The hashes of workers and the data of workloads are drawn from different seeds.
SEED, FIRST_HASH = 40, 1000
LAYOUT = Path("/proc/sys/kernel/randomize_va_space")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Program:
    """The number of workers per generation, the rounds of the first run, and the time for all later runs."""

    versions: tuple[str, ...]
    bodies: tuple[str, ...]
    workers: int
    first_rounds: int
    limit_s: float


FULL = Program(VERSIONS, tuple(BODIES), workers=12, first_rounds=6, limit_s=20 * 60)
TINY = Program(("2.13",), ("power",), workers=4, first_rounds=4, limit_s=15)


@dataclass(frozen=True)
class Cell:
    """A version's workers with a body: the log time of each fork, by generation, worker and round."""

    version: str
    body: str
    times: Floats

    @classmethod
    def of(cls, version: str, body: str, generations: Sequence["Generation"]) -> "Cell":
        """Take from each generation the number of rounds that every worker of every generation finished."""
        forks = min(each.times.shape[1] for each in generations)
        return cls(version, body, np.array([each.times[:, :forks] for each in generations]))

    @property
    def workers(self) -> int:
        return int(self.times.shape[0] * self.times.shape[1])

    @property
    def forks(self) -> int:
        return int(self.times.shape[2])

    @property
    def freedom(self) -> tuple[int, int]:
        return _freedom(*self.times.shape)

    @property
    def spread(self) -> float:
        """The standard deviation of the forks inside a worker, without the common effect of each round."""
        of_rounds, of_workers = self.times.mean(axis=1, keepdims=True), self.times.mean(axis=2, keepdims=True)
        rest = self.times - of_rounds - of_workers + self.times.mean(axis=(1, 2), keepdims=True)
        return math.sqrt(float((rest**2).sum()) / self.freedom[1])

    @property
    def largest_spread(self) -> float:
        """The upper limit of the true spread, with a confidence of 90 %."""
        freedom = self.freedom[1]
        return self.spread * math.sqrt(freedom / float(stats.chi2.ppf(0.1, freedom)))

    @property
    def f(self) -> float:
        of_workers = float(self.times.mean(axis=2).var(axis=1, ddof=1).mean())
        return self.forks * of_workers / self.spread**2

    @property
    def p(self) -> float:
        return float(stats.f.sf(self.f, *self.freedom))

    @property
    def p_by_ranks(self) -> float:
        """The p of Friedman's test, which a single fork cannot make small, however slow it was."""
        statistic = sum(float(stats.friedmanchisquare(*generation).statistic) for generation in self.times)
        return float(stats.chi2.sf(statistic, self.freedom[0]))

    @property
    def tau(self) -> float:
        """The spread of workers beyond that of their forks, tau."""
        return _tau(self.f, self.forks) * self.spread

    @property
    def limit(self) -> float:
        """The upper limit of tau; it is exact only if the true spread of forks is the observed one."""
        return _tau(self.f / float(stats.f.ppf(LEVEL, *self.freedom)), self.forks) * self.spread

    @property
    def expected(self) -> float:
        generations, workers, forks = self.times.shape
        return expected_limit(self.spread, workers, forks, generations)


@dataclass(frozen=True)
class Generation:
    """Workers that were measured together: the log time of each fork by worker and round, and their efforts."""

    seconds: float
    times: Floats
    efforts: Mapping[str, Effort]

    @classmethod
    def provide(cls, store: Store, name: str, *how: object) -> "Generation":
        """Return the generation that is stored under this name; if there is none, measure and store it."""
        kept = store.read(name)
        if kept is None:
            path = store.run(name, measure, *how)
            efforts = {worker: astuple(effort) for worker, effort in equal_efforts(path).items()}
            times = np.round(_times(path), 5).tolist()
            kept = {"seconds": seconds_of(path), "times": times, "efforts": efforts}
            store.write(name, kept)
        return cls.load(kept)

    @classmethod
    def load(cls, kept: Mapping[str, Any]) -> "Generation":
        efforts = {worker: Effort(*effort) for worker, effort in kept["efforts"].items()}
        return cls(kept["seconds"], np.array(kept["times"]), efforts)


def _times(path: Path) -> Floats:
    """Return the log times of the rounds that every worker finished, by worker and round."""
    gathered = gather(RunFolder.open(path))
    by_worker: dict[Target, dict[int, float]] = {worker: {} for worker in gathered.plan.targets}
    for replicate in gathered.replicates:
        by_worker[replicate.target][replicate.round] = math.log(replicate.time_ns)
    whole = sorted(set.intersection(*map(set, by_worker.values())))
    return np.array([[rounds[number] for number in whole] for rounds in by_worker.values()])


def _freedom(generations: int, workers: int, forks: int) -> tuple[int, int]:
    return generations * (workers - 1), generations * (workers - 1) * (forks - 1)


def _tau(f: float, forks: int) -> float:
    return math.sqrt(max(0.0, f - 1) / forks)


def expected_limit(spread: float, workers: int, forks: int, generations: int = 1) -> float:
    """Return the upper limit of tau that is expected if workers do not differ."""
    freedom = _freedom(generations, workers, forks)
    lowest = float(stats.f.ppf(LEVEL, *freedom))
    usual = stats.f.ppf((np.arange(200) + 0.5) / 200, *freedom)
    return spread * float(np.mean([_tau(f / lowest, forks) for f in usual]))


def find_fork_count(spread: float, workers: int, wanted: float = WANTED) -> int:
    """Return the smallest number of forks in a worker with which the expected limit is no larger than wanted."""
    forks = 2
    while expected_limit(spread, workers, forks) > wanted:
        forks += max(1, forks // 20)
    return forks


def measure(
    path: Path,
    version: str,
    body: str,
    program: Program,
    generation: int,
    rounds: int,
    efforts: Mapping[str, Effort],
) -> None:
    with TemporaryDirectory() as scratch:
        (alike,) = arena.slowed(version, {"alike": 0.0}, Path(scratch)).values()
        names = [f"worker{number:02}" for number in range(1, program.workers + 1)]
        arms = {
            name: arena.Arm(alike.environment, alike.folder, FIRST_HASH + 100 * generation + number)
            for number, name in enumerate(names)
        }
        case = BODIES[body]
        given = {ArmKey(case.label, Target(name)): efforts[name] for name in names if name in efforts}
        arena.run(arms, [case], folder=path, seed=SEED + generation, looks=(rounds,), efforts=given, keep_workers=True)


def equal_efforts(path: Path) -> dict[str, Effort]:
    """Return one effort for all workers, so that chance in their pilots does not make workers differ."""
    entries = [entry for entry in RunFolder.open(path).entries() if isinstance(entry, Calibrated)]
    calls = sorted(entry.calls for entry in entries)
    effort = Effort(
        max(entry.warmup for entry in entries), max(entry.bursts for entry in entries), calls[len(calls) // 2]
    )
    return {str(entry.target): effort for entry in entries if entry.target}


def measure_cell(store: Store, version: str, body: str, program: Program) -> None:
    """Measure what is not stored: the first run, then generations of workers until the limit or the time is reached."""
    how = (version, body, program)
    first = Generation.provide(store, f"{version}-{body}-first", *how, 0, program.first_rounds, {})
    before = Cell.of(version, body, [first])
    fitting = int(program.limit_s / (first.seconds / (program.first_rounds + 1)))
    rounds = max(2, min(find_fork_count(before.largest_spread, program.workers), MOST_FORKS, fitting))
    print(f"workers: {version}, {body}: {before.spread:.1%} from fork to fork, {rounds} forks", file=sys.stderr)
    generations: list[Generation] = []
    for number in itertools.count(1):
        name = f"{version}-{body}-{number}"
        generations.append(Generation.provide(store, name, *how, number, rounds, first.efforts))
        cell = Cell.of(version, body, generations)
        print(f"workers: {_row(cell)}", file=sys.stderr)
        took_s = sum(each.seconds for each in generations)
        if cell.expected <= WANTED or took_s + generations[-1].seconds > program.limit_s:
            return


def measured_cells(store: Store, program: Program) -> list[Cell]:
    cells = []
    for version, body in itertools.product(program.versions, program.bodies):
        names = (f"{version}-{body}-{number}" for number in itertools.count(1))
        kept = list(itertools.takewhile(lambda each: each is not None, map(store.read, names)))
        cells += [Cell.of(version, body, list(map(Generation.load, kept)))] if kept else []
    return cells


def describe(cells: Sequence[Cell], program: Program) -> str:
    layout, minutes = LAYOUT.read_text().strip(), program.limit_s / 60
    lines = [
        f"Each line is workers of one version, {program.workers} at a time, each with its own address layout",
        f"(`randomize_va_space` {layout}) and its own `PYTHONHASHSEED`. Each opens a fork in every round, and bursts",
        "take turns. Analysis of variance of the log median times, with rounds as blocks: F and p of the workers, p by",
        "ranks (Friedman), the spread of forks inside a worker, that of workers beyond it (tau), and the upper limit",
        f"of tau (one-sided, {1 - LEVEL:.0%}), next to the one that is expected if workers do not differ. Forks are as",
        f"many as bring the latter to {WANTED:.1%}, or as fit into {minutes:.0f} minutes.",
        "",
        "| version | body | workers | forks | F | p | p by ranks | spread of forks | tau | upper limit | expected |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *map(_row, cells),
        "",
    ]
    if cells:
        p = float(stats.combine_pvalues([cell.p for cell in cells]).pvalue)
        largest = max(cells, key=lambda cell: cell.limit)
        lines += [
            f"All lines together, by Fisher: p = {p:.2f}. The largest upper limit is {largest.limit:.2%}",
            f"({largest.version}, {largest.body}).",
        ]
    short = [f"{cell.version} with {cell.body} ({cell.expected:.2%})" for cell in cells if cell.expected > WANTED]
    if short:
        lines.append(f"Not reached is an expected limit of {WANTED:.1%} by {', '.join(short)}.")
    measured_keys = {(cell.version, cell.body) for cell in cells}
    missing = [
        f"{version} with {body}"
        for version in program.versions
        for body in program.bodies
        if (version, body) not in measured_keys
    ]
    if missing:
        lines.append(f"Not measured: {', '.join(missing)}.")
    return "\n".join(lines)


def _row(cell: Cell) -> str:
    cells = (
        cell.version,
        cell.body,
        cell.workers,
        cell.forks,
        f"{cell.f:.2f}",
        f"{cell.p:.2f}",
        f"{cell.p_by_ranks:.2f}",
        f"{cell.spread:.2%}",
        f"{cell.tau:.2%}",
        f"{cell.limit:.2%}",
        f"{cell.expected:.2%}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def section(program: Program = FULL) -> Section:
    store = Store("workers", tiny=program == TINY)
    for version in program.versions:
        for body in program.bodies:
            measure_cell(store, version, body, program)
    cells = measured_cells(store, program)
    body = f"{describe(cells, program)}\n\n{store.describe()}"
    store.retire()
    limits = [Figure(f"upper limit of tau, {cell.version} with {cell.body}", cell.limit, "share") for cell in cells]
    return Section(body, limits, store.commits)


def main() -> None:
    """Measure some versions and bodies, and print all results so far."""
    parser = argparse.ArgumentParser(prog="bench.workers", description=__doc__)
    parser.add_argument("--versions", default=",".join(VERSIONS))
    parser.add_argument("--bodies", default=",".join(BODIES))
    parser.add_argument("--minutes", type=float, default=FULL.limit_s / 60, help="minutes per version and body")
    given = parser.parse_args()
    versions, bodies = tuple(given.versions.split(",")), tuple(given.bodies.split(","))
    program = Program(versions, bodies, FULL.workers, FULL.first_rounds, given.minutes * 60)
    store = Store("workers")
    for version in versions:
        for body in bodies:
            measure_cell(store, version, body, program)
    print(describe(measured_cells(store, FULL), FULL))


if __name__ == "__main__":
    main()
