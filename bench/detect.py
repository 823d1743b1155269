"""How reliable verdicts are: arms with a known true ratio, measured and judged like those of any run.

Each run starts new workers and measures all arms side by side for several windows of the default looks. A window is
judged for one pair of arms at a time, look by look, as if nothing else had been measured, so that no verdict profits
from being one of many. The rounds of the arms that do not differ are kept in recorded.json, for the tests to replay.
"""

import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import combinations
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory

from scipy import stats

from bench import arena
from orchestrator.catalog.workloads import all_workloads
from orchestrator.contract import PILOT_ROUND
from orchestrator.model import Case, Contrast, Plan
from orchestrator.plan.pairs import LOOKS, plan_pairs
from orchestrator.results import replicates
from orchestrator.results.comparison import compute_contrasts
from orchestrator.results.endings import Endings, read_endings
from orchestrator.results.replicates import Replicate
from orchestrator.results.rundir import RunDir

VERSION = "2.13"
WINDOW = LOOKS[-1]
# Case, windows a run, runs a condition, and the slowdowns of its arms.
PROGRAM = (
    (arena.MATMUL, 3, 4, (0.0, 0.0, 0.0, 0.03, 0.05, 0.10, 0.20)),
    (arena.TRAIN, 3, 1, (0.0, 0.0, 0.05, 0.10)),
)
CONDITIONS = ("as found", "with a neighbour")
# The neighbour: one process that keeps one core busy, on and off for so many seconds on average.
ON_S, OFF_S = 10.0, 20.0
SEED = 20
RECORDED = Path(__file__).parent / "recorded.json"


@dataclass(frozen=True)
class Judged:
    """A contrast of one window, and the slowdown that it should have found."""

    slowdown: float
    contrast: Contrast

    @property
    def covered(self) -> bool:
        low, high = self.contrast.ci_low, self.contrast.ci_high
        return low is not None and high is not None and low <= 1 + self.slowdown <= high


@dataclass(frozen=True)
class Recorded:
    """One run: all valid replicates, and each arm's slowdown."""

    condition: str
    case: Case
    slowdowns: dict[str, float]
    plan: Plan
    replicates: tuple[Replicate, ...]


@contextmanager
def neighbour(seed: int) -> Iterator[None]:
    """Keep a CPU busy at times, like another user of the machine."""
    stop = threading.Event()

    def live() -> None:
        draw = random.Random(seed)
        while not stop.wait(draw.expovariate(1 / OFF_S)):
            busy = subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", "while True: pass"])
            stop.wait(draw.expovariate(1 / ON_S))
            busy.kill()
            busy.wait()

    thread = threading.Thread(target=live)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measure(condition: str, case: Case, windows: int, slowdowns: Sequence[float], seed: int, scratch: Path) -> Recorded:
    named = {f"arm{place}": slowdown for place, slowdown in enumerate(slowdowns)}
    arms = arena.slowed(VERSION, named, scratch)
    folder = scratch / f"run-{seed}"
    with neighbour(seed) if condition != CONDITIONS[0] else nullcontext():
        arena.run(arms, [case], folder=folder, seed=seed, looks=(windows * WINDOW,))
    run = RunDir.open(folder)
    plan = run.read_plan()
    redone = read_endings(run).redone
    kept = [
        replicate
        for replicate in replicates.load(run.streams(), plan.run).replicates
        if replicate.round != PILOT_ROUND and replicate.number not in redone
    ]
    return Recorded(condition, case, named, plan, tuple(kept))


def judged(recorded: Recorded, margin: float) -> list[Judged]:
    """Judge every pair with at least one arm that is not slowed, in every window."""
    found = []
    pairs = [pair for pair in combinations(recorded.slowdowns, 2) if recorded.slowdowns[pair[0]] == 0]
    for first in range(1, recorded.plan.looks[-1] + 1, WINDOW):
        for baseline, candidate in pairs:
            contrast = look_by_look(recorded, margin, first, baseline, candidate)
            found.append(Judged(recorded.slowdowns[candidate], contrast))
    return found


def look_by_look(recorded: Recorded, margin: float, first: int, baseline: str, candidate: str) -> Contrast:
    """Return the contrast with which a run of these two arms alone would have ended."""
    versions = (baseline, candidate)
    pairs = plan_pairs([recorded.case], versions, all_workloads(arena.WORKLOADS))
    plan = replace(recorded.plan, versions=versions, looks=LOOKS, pairs=pairs, margin=margin)
    own = [replicate for replicate in recorded.replicates if replicate.version in versions]
    for look in LOOKS:
        seen = [replicate for replicate in own if first <= replicate.round < first + look]
        _, (contrast,) = compute_contrasts(plan, seen, Endings(), flip=False)
        if contrast.verdict != "inconclusive":
            break
    return contrast


def record(runs: Iterable[Recorded]) -> None:
    """Write the log times of the arms that do not differ, by round."""
    kept = []
    for run in runs:
        arms = [name for name, slowdown in run.slowdowns.items() if slowdown == 0]
        by_arm = {
            name: {one.round: round(log(one.steady_ns), 5) for one in run.replicates if one.version == name}
            for name in arms
        }
        whole = sorted(set.intersection(*(set(rounds) for rounds in by_arm.values())))
        kept.append(
            {
                "condition": run.condition,
                "case": run.case.label,
                "arms": [[by_arm[name][number] for number in whole] for name in arms],
            }
        )
    RECORDED.write_text(json.dumps(kept, indent=None, separators=(",", ":")) + "\n")


def share(found: Sequence[Judged], verdict: str) -> str:
    return f"{sum(one.contrast.verdict == verdict for one in found) / len(found):.0%}"


def table(found: Sequence[Judged]) -> list[str]:
    rows = [
        "| true slowdown | contrasts | slower | faster | same | inconclusive | interval holds the truth | rounds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for slowdown in sorted({one.slowdown for one in found}):
        own = [one for one in found if one.slowdown == slowdown]
        shares = [share(own, verdict) for verdict in ("slower", "faster", "same", "inconclusive")]
        covered = sum(one.covered for one in own) / len(own)
        rounds = statistics.median(one.contrast.rounds for one in own)
        cells = [f"{slowdown:.0%}", str(len(own)), *shares, f"{covered:.0%}", f"{rounds:.0f}"]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def targets(usual: Sequence[Judged], fine: Sequence[Judged]) -> list[str]:
    """Return a table of each promise and what was seen, with the exact interval of a share of this many contrasts."""
    alike, slowed = ([one for one in usual if bool(one.slowdown) == wanted] for wanted in (False, True))
    return [
        "| promise | target | seen |",
        "|---|---|---|",
        _line("A/A called slower or faster", "<= 2.5 %", alike, "slower", "faster"),
        _line("the same at a margin of 2 %", "<= 2.5 %", _of(fine, 0.0), "slower", "faster"),
        _line("5 % slower, called slower", ">= 80 %", _of(usual, 0.05), "slower"),
        _line("the same at a margin of 2 %", ">= 80 %", _of(fine, 0.05), "slower"),
        _line("10 % slower, called slower", ">= 95 %", _of(usual, 0.10), "slower"),
        _line("the same at a margin of 2 %", ">= 95 %", _of(fine, 0.10), "slower"),
        _line("slower, called faster", "none", slowed, "faster"),
        _line("5 % slower or more, called same", "<= 5 %", [one for one in slowed if one.slowdown >= 0.05], "same"),
        _told("interval holds the truth", ">= 95 %", sum(one.covered for one in usual), len(usual)),
    ]


def _of(found: Sequence[Judged], slowdown: float) -> list[Judged]:
    return [one for one in found if one.slowdown == slowdown]


def _line(promise: str, target: str, found: Sequence[Judged], *verdicts: str) -> str:
    return _told(promise, target, sum(one.contrast.verdict in verdicts for one in found), len(found))


def _told(promise: str, target: str, count: int, of: int) -> str:
    bounds = stats.binomtest(count, of).proportion_ci(method="exact")
    return f"| {promise} | {target} | {count} of {of}: {count / of:.1%} ({bounds.low:.1%} to {bounds.high:.1%}) |"


def section() -> str:
    lines = [
        f"TensorFlow {VERSION}, `bench/workloads/slowed.py`: a body, then a spin of an exact share of the body's own",
        f"time. Default looks at {', '.join(map(str, LOOKS))} rounds, margin 5 %, one pair of arms at a time. The",
        f"neighbour keeps one core busy for {ON_S:.0f} s on average, then leaves it for {OFF_S:.0f} s, from a fixed",
        "seed. What is exactly as slow as the margin is called slower at most about as often as not, however quiet the",
        "machine: the same rounds were therefore judged by a margin of 2 % too.",
    ]
    runs: list[Recorded] = []
    begun = time.monotonic()
    with TemporaryDirectory() as scratch:
        for condition in CONDITIONS:
            for case, windows, repeats, slowdowns in PROGRAM:
                own = []
                for _ in range(repeats):
                    own.append(measure(condition, case, windows, slowdowns, SEED + len(runs) + len(own), Path(scratch)))
                    print(f"detect: {condition}, {case.label}: {time.monotonic() - begun:.0f} s", file=sys.stderr)
                runs += own
                usual, fine = ([one for run in own for one in judged(run, margin)] for margin in (0.05, 0.02))
                lines += ["", f"### {case.label}, {condition}", "", *table(usual), "", *targets(usual, fine)]
    record(runs)
    return "\n".join(lines)
