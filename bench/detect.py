"""How reliable verdicts are: arms with a known true ratio, measured and judged like those of any run.

Each run measures all arms and bodies side by side, with the default looks, until each pair has a verdict. It is then
judged for one pair of arms at a time, look by look, as if nothing else had been measured, so that no verdict profits
from being one of many; alone, no pair needs more rounds than among others. Nothing is subtracted from an arm. The same
rounds are judged by CPU time as well, as `--judge cpu` does; wall time decides when a run ends.

The last run has two windows of all looks, whatever is decided. The rounds of its arms that do not differ are kept in
recorded.json, for the tests to replay. What each run showed is stored at once; run it again to continue an interrupted
bench.
"""

import json
import math
import random
import statistics
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, dataclass, replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scipy import stats

from bench import arena
from bench.figures import Figure, Section
from bench.store import Store, seconds_of
from orchestrator.model import Case, Comparison, Pair, Plan, Replicate, ShownVerdict, Target, TargetPair
from orchestrator.plan.pairs import LOOKS
from orchestrator.results.endings import Endings
from orchestrator.results.evaluation import compute_comparisons, gather
from orchestrator.results.replicates import judge_by_cpu
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.samples import samples

VERSION = "2.13"
WINDOW = LOOKS[-1]
BODIES = {"matmul": arena.MATMUL, "train": arena.TRAIN}
# Four arms that do not differ make six pairs, and four more with each that does. All names have the same length,
# because the length of a path shifts data in memory: multiplications of one arm were 0.3 % faster.
SLOWDOWNS = {"equal-1": 0.0, "equal-2": 0.0, "equal-3": 0.0, "equal-4": 0.0, "slow-05": 0.05, "slow-10": 0.10}
CONDITIONS = ("as found", "with a neighbour")
# The neighbour: one process that keeps one core busy, on and off for this many seconds on average.
ON_S, OFF_S = 10.0, 20.0
MARGIN = 0.05
SHOWN: tuple[ShownVerdict, ...] = ("slower", "slightly slower", "same", "slightly faster", "faster", "inconclusive")
SEED = 20
RECORDED = Path(__file__).parent / "recorded.json"


@dataclass(frozen=True)
class Program:
    """How many runs each condition gets, the rounds of the last, and the time of a condition."""

    runs: int
    last_rounds: int
    limit_s: float

    def looks(self, number: int) -> tuple[int, ...]:
        return (self.last_rounds,) if number == self.runs else LOOKS


FULL = Program(runs=9, last_rounds=2 * WINDOW, limit_s=150 * 60)
TINY = Program(runs=1, last_rounds=WINDOW, limit_s=5 * 60)


@dataclass(frozen=True)
class Judged:
    """How a comparison ended, and the slowdown that it should have found."""

    body: str
    slowdown: float
    # As a report shows it: a difference below the margin is slight.
    verdict: str
    low: float | None
    high: float | None
    rounds: int

    @property
    def covered(self) -> bool:
        return self.low is not None and self.high is not None and self.low <= 1 + self.slowdown <= self.high


@dataclass(frozen=True)
class Recorded:
    """One run: all valid replicates."""

    condition: str
    plan: Plan
    replicates: tuple[Replicate, ...]

    @classmethod
    def read(cls, condition: str, path: Path) -> "Recorded":
        gathered = gather(RunFolder.open(path))
        return cls(condition, gathered.plan, gathered.replicates)

    def judge_by_cpu(self) -> "Recorded":
        replicates = tuple(map(judge_by_cpu, self.replicates))
        return replace(self, plan=replace(self.plan, judge="cpu"), replicates=replicates)


@dataclass(frozen=True)
class Outcome:
    """What a run showed: every comparison, and the rounds that tests replay if nothing ended it early."""

    condition: str
    seconds: float
    judged: tuple[Judged, ...]
    judged_by_cpu: tuple[Judged, ...]
    levels: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, recorded: Recorded, seconds: float) -> "Outcome":
        by_cpu = tuple(judge_run(recorded.judge_by_cpu()))
        return cls(recorded.condition, seconds, tuple(judge_run(recorded)), by_cpu, tuple(levels_of(recorded)))

    @classmethod
    def load(cls, kept: Mapping[str, Any]) -> "Outcome":
        judged, by_cpu = (tuple(Judged(*fields) for fields in kept[key]) for key in ("judged", "judged_by_cpu"))
        return cls(kept["condition"], kept["seconds"], judged, by_cpu, tuple(kept["levels"]))

    def dump(self) -> Mapping[str, Any]:
        kept = {"condition": self.condition, "seconds": self.seconds, "levels": self.levels}
        judged = {"judged": self.judged, "judged_by_cpu": self.judged_by_cpu}
        return {**kept, **{key: [astuple(each) for each in found] for key, found in judged.items()}}


@contextmanager
def neighbour(seed: int) -> Iterator[None]:
    """Keep a CPU busy at times, like another user of the machine."""
    stop = threading.Event()

    def live() -> None:
        draw = random.Random(seed)
        while not stop.wait(draw.expovariate(1 / OFF_S)):
            busy = arena.keep_busy(0)
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


def pairs_of(case: Case) -> tuple[Pair, ...]:
    """Return every pair with at least one arm that is not slowed."""
    return tuple(
        TargetPair(case=case, baseline=baseline, candidate=candidate, metric="time")
        for baseline, candidate in combinations(SLOWDOWNS, 2)
        if SLOWDOWNS[baseline] == 0
    )


def measure(folder: Path, condition: str, looks: tuple[int, ...], seed: int, scratch: Path) -> None:
    arms, cases = arena.slowed(VERSION, SLOWDOWNS, scratch), list(BODIES.values())
    pairs = tuple(pair for case in cases for pair in pairs_of(case))
    with neighbour(seed) if condition != CONDITIONS[0] else nullcontext():
        arena.run(arms, cases, folder=folder, seed=seed, looks=looks, pairs=pairs)


def measure_all(program: Program, store: Store, scratch: Path) -> list[Outcome]:
    """Measure every run that is not stored, as far as the time of a condition goes."""
    outcomes: list[Outcome] = []
    for condition in CONDITIONS:
        for number in range(1, program.runs + 1):
            name = f"{condition}-{number}".replace(" ", "-")
            before = [outcome.seconds for outcome in outcomes if outcome.condition == condition]
            kept = store.read(name)
            if kept is None and sum(before) + max(before, default=0.0) > program.limit_s:
                print(f"detect: {name} is left out: the time is over", file=sys.stderr)
                continue
            if kept is None:
                seed = SEED + number * 10 + CONDITIONS.index(condition)
                path = store.run(name, measure, condition, program.looks(number), seed, scratch)
                kept = Outcome.of(Recorded.read(condition, path), seconds_of(path)).dump()
                store.write(name, kept)
            outcomes.append(Outcome.load(kept))
            print(f"detect: {name}: {outcomes[-1].seconds:.0f} s", file=sys.stderr)
    return outcomes


def judge_run(recorded: Recorded) -> list[Judged]:
    """Judge every pair in every window."""
    bodies = {case: body for body, case in BODIES.items()}
    return [
        Judged(
            bodies[pair.case],
            SLOWDOWNS[pair.candidate],
            comparison.shown_verdict,
            comparison.ci_low,
            comparison.ci_high,
            comparison.rounds,
        )
        for pair in recorded.plan.pairs
        if isinstance(pair, TargetPair)
        for comparison in judge_pair(recorded, pair)
    ]


def judge_pair(recorded: Recorded, pair: TargetPair) -> Iterator[Comparison]:
    """Yield the comparisons with which runs of these two arms alone would have ended, one for each window."""
    versions = (pair.baseline, pair.candidate)
    plan = replace(recorded.plan, cases=(pair.case,), targets=versions, looks=LOOKS, pairs=(pair,), margin=MARGIN)
    own = [each for each in recorded.replicates if each.target in versions and each.case == pair.case.label]
    for before in range(0, recorded.plan.looks[-1], WINDOW):
        # The looks of a window are counted from its own first round.
        of_window = [replicate._replace(round=replicate.round - before) for replicate in own]
        for look in LOOKS:
            seen = [replicate for replicate in of_window if 1 <= replicate.round <= look]
            _, (comparison,) = compute_comparisons(plan, seen, Endings(), flip=False)
            if comparison.verdict != "inconclusive":
                break
        yield comparison


def levels_of(recorded: Recorded) -> Iterator[Mapping[str, Any]]:
    """Yield the log times of the arms that do not differ, by round, for each body of a run that nothing ended early."""
    if recorded.plan.looks == LOOKS:
        return
    of_arms = samples(recorded.plan, recorded.replicates)
    for case in recorded.plan.cases:
        arms = [of_arms[case.label, Target(name), "time"] for name, slowdown in SLOWDOWNS.items() if slowdown == 0]
        whole = sorted(set.intersection(*(set(rounds) for rounds in arms)))
        # Verdicts rest on ratios that are taken turn by turn, so each arm is recorded by its ratio to the first.
        levels = [[arms[0][number].level + (arm[number] - arms[0][number]) for number in whole] for arm in arms]
        rounded = [[round(level, 5) for level in of_arm] for of_arm in levels]
        yield {"condition": recorded.condition, "case": case.label, "arms": rounded}


def record(outcomes: Iterable[Outcome]) -> None:
    rows = [levels for outcome in outcomes for levels in outcome.levels]
    RECORDED.write_text(json.dumps(rows, indent=None, separators=(",", ":")) + "\n")


def share(found: Sequence[Judged], verdict: str) -> str:
    return f"{sum(one.verdict == verdict for one in found) / len(found):.0%}"


def table(found: Sequence[Judged]) -> list[str]:
    rows = [
        f"| body | true slowdown | comparisons | {' | '.join(SHOWN)} | holds the truth | rounds |",
        "|---" * (5 + len(SHOWN)) + "|",
    ]
    for body, slowdown in sorted({(one.body, one.slowdown) for one in found}):
        own = [one for one in found if (one.body, one.slowdown) == (body, slowdown)]
        shares = [share(own, verdict) for verdict in SHOWN]
        covered = sum(one.covered for one in own) / len(own)
        rounds = statistics.median(one.rounds for one in own)
        cells = [body, f"{slowdown:.0%}", str(len(own)), *shares, f"{covered:.0%}", f"{rounds:.0f}"]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


@dataclass(frozen=True)
class DetectionTarget:
    """What is promised of a share of comparisons: of all that are covered, or of one slowdown's those so called."""

    promise: str
    slowdowns: tuple[float, ...]
    verdicts: tuple[str, ...]
    limit: float
    most: bool

    def figure(self, condition: str, found: Sequence[Judged]) -> Figure:
        own = [one for one in found if one.slowdown in self.slowdowns]
        bodies = {body: [one for one in own if one.body == body] for body in BODIES}
        limits = [self._share(of_body)[1:] for of_body in bodies.values()]
        counts = {"together": own, **bodies}
        return Figure(
            f"{condition}: {self.promise}",
            self._share(own)[0],
            "share",
            "least" if self.most else "most",
            self.limit,
            "; ".join(f"{name} {self._describe(of_body)}" for name, of_body in counts.items()),
            bound=max(low for low, _ in limits) if self.most else min(high for _, high in limits),
        )

    def _count(self, own: Sequence[Judged]) -> int:
        return sum(one.verdict in self.verdicts if self.verdicts else one.covered for one in own)

    def _share(self, own: Sequence[Judged]) -> tuple[float, float, float]:
        """Return a share with its exact 95 % limits; of nothing, everything is possible."""
        if not own:
            return math.nan, 0.0, 1.0
        bounds = stats.binomtest(self._count(own), len(own)).proportion_ci(method="exact")
        return self._count(own) / len(own), bounds.low, bounds.high

    def _describe(self, own: Sequence[Judged]) -> str:
        _, low, high = self._share(own)
        return f"{self._count(own)} of {len(own)}, {low:.1%} to {high:.1%}"


TARGETS = (
    DetectionTarget("A/A called slower or faster", (0.0,), ("slower", "faster"), 0.025, most=True),
    DetectionTarget("5 % slower, called slower", (0.05,), ("slower",), 0.95, most=False),
    DetectionTarget(
        "5 % slower, called slower or slightly slower", (0.05,), ("slower", "slightly slower"), 0.95, most=False
    ),
    DetectionTarget("10 % slower, called slower", (0.10,), ("slower",), 0.99, most=False),
    DetectionTarget("slower, called faster", (0.05, 0.10), ("faster",), 0.0, most=True),
    DetectionTarget("interval holds the truth", (0.0, 0.05, 0.10), (), 0.95, most=False),
)


def section(program: Program = FULL) -> Section:
    alike, looks = sum(not slowdown for slowdown in SLOWDOWNS.values()), ", ".join(map(str, LOOKS))
    lines = [
        f"TensorFlow {VERSION}, `bench/workloads/slowed.py`: a body, then a spin of an exact share of the body's own",
        f"time. In each run {len(SLOWDOWNS)} arms stand side by side; {alike} of them do not differ. Each pair is",
        f"judged as if it were alone, at {looks} rounds and with a margin of {MARGIN:.0%}. The comparisons of a",
        "run share the allowed error, so in a run of many, such as the 28 of the quick suite, a slowdown takes more",
        "rounds until it is certain, and more of them stay inconclusive. The neighbour",
        f"keeps a core busy for {ON_S:.0f} s on average, then leaves it for {OFF_S:.0f} s, from a fixed seed. In",
        "brackets: exact 95 % limits, as if comparisons that share an arm were independent. A target is met when all",
        "bodies together meet it and the limits of none exclude it. A difference is slight if its interval lies within",
        "the margin. A true slowdown of 5 % is as large as the margin, so a precise run may call it slight.",
    ]
    figures: list[Figure] = []
    store = Store("detect", tiny=program == TINY)
    with TemporaryDirectory() as scratch:
        outcomes = measure_all(program, store, Path(scratch))
    for condition in CONDITIONS:
        own = [outcome for outcome in outcomes if outcome.condition == condition]
        lines += ["", f"### {condition.capitalize()}"]
        for clock, found in (
            ("", [one for outcome in own for one in outcome.judged]),
            (", by CPU time", [one for outcome in own for one in outcome.judged_by_cpu]),
        ):
            lines += ["", f"Judged by {'CPU' if clock else 'wall'} time:", "", *table(found)]
            figures += [target.figure(condition + clock, found) for target in TARGETS]
        lines += [
            "",
            f"Runs: {len(own)} (planned: {program.runs}, the last of which counts twice); "
            f"{sum(outcome.seconds for outcome in own):.0f} s.",
        ]
    if program != TINY:
        record(outcomes)
    lines += ["", store.describe()]
    store.retire()
    return Section("\n".join(lines), figures, store.commits)
