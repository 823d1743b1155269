"""What a newcomer gets on a busy machine: the quick suite while another process keeps one core busy.

It is measured once while the machine is quiet and three times while it is not, with the default budget. A comparison
that was postponed counts as undecided. Raw runs are stored until all are done.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from bench import arena
from bench.figures import Figure, Section
from bench.store import Store, seconds_of
from orchestrator.errors import Interrupted
from orchestrator.measure.run import plan_and_measure as measure_run
from orchestrator.model import ArmKey, Comparison, Evaluation, Pair
from orchestrator.plan.request import RunOptions
from orchestrator.reports.columns import format_ratio
from orchestrator.results.endings import read_endings
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View

BUSY_CORE = min(os.sched_getaffinity(0))
DECIDED, OVERTIME = 0.85, 1.1


@dataclass(frozen=True)
class Program:
    """What is run, and how often with a busy core; without a budget it is the suite's own."""

    versions: tuple[str, ...]
    selected: tuple[str, ...]
    budget_s: float | None
    repeats: int


FULL = Program(("1.14", "2.0", "2.13"), (), None, 3)
TINY = Program(("2.0", "2.13"), ("power[style=function]",), 20, 1)


@dataclass(frozen=True)
class Outcome:
    """A run: what it decided, and the time that it measured."""

    name: str
    evaluation: Evaluation
    postponed: frozenset[str]
    seconds: float

    @classmethod
    def read(cls, name: str, path: Path) -> "Outcome":
        run = RunFolder.open(path)
        return cls(name, judge_run(run), frozenset(read_endings(run).postponed), seconds_of(path))

    @property
    def comparisons(self) -> Sequence[Comparison]:
        """The comparisons of the plan without those that a version refuses: nothing could decide them."""
        refused = {arm.key for arm in self.evaluation.arms if arm.outcome == "refused"}
        return [
            comparison for comparison in self.evaluation.comparisons if not refused.intersection(comparison.pair.arms)
        ]

    @property
    def decided(self) -> int:
        return sum(comparison.verdict != "inconclusive" for comparison in self.comparisons)

    @property
    def left_out(self) -> int:
        return sum(any(arm.case in self.postponed for arm in comparison.pair.arms) for comparison in self.comparisons)

    @property
    def fewest_rounds(self) -> int:
        return min(comparison.rounds for comparison in self.comparisons)


@contextmanager
def busy_core(core: int) -> Iterator[None]:
    """Keep this core busy all the time."""
    with arena.keep_busy(core) as process:
        try:
            yield
        finally:
            process.kill()


def measure(path: Path, program: Program, seed: int, core: int | None) -> None:
    options = RunOptions(
        versions=program.versions,
        selected=program.selected,
        engine="venv",
        budget_s=program.budget_s,
        out=path,
        seed=seed,
    )
    with nullcontext() if core is None else busy_core(core):
        done = measure_run(options, View())
    if isinstance(done.error, Interrupted):
        raise done.error


def contradicts(busy: Comparison, quiet: Comparison) -> bool:
    """Return whether not both verdicts can be right: a difference and none may be, if their intervals overlap."""
    verdicts = {busy.verdict, quiet.verdict}
    if len(verdicts) == 1 or "inconclusive" in verdicts:
        return False
    if verdicts == {"slower", "faster"}:
        return True
    assert busy.ci_low is not None
    assert busy.ci_high is not None
    assert quiet.ci_low is not None
    assert quiet.ci_high is not None
    return busy.ci_low > quiet.ci_high or quiet.ci_low > busy.ci_high


def contradictions(quiet: Outcome, busy: Outcome) -> list[tuple[Comparison, Comparison]]:
    before: Mapping[Pair, Comparison] = {comparison.pair: comparison for comparison in quiet.comparisons}
    return [
        (before[comparison.pair], comparison)
        for comparison in busy.comparisons
        if comparison.pair in before and contradicts(comparison, before[comparison.pair])
    ]


def section(program: Program = FULL) -> Section:
    store = Store("busy", tiny=program == TINY)
    names = ("quiet", *(f"busy-{number}" for number in range(1, program.repeats + 1)))
    outcomes: list[Outcome] = []
    for seed, name in enumerate(names, 1):
        path = store.run(name, measure, program, seed, None if name == "quiet" else BUSY_CORE)
        outcomes.append(Outcome.read(name, path))
        print(f"busy: {name}: {outcomes[-1].decided} of {len(outcomes[-1].comparisons)} decided", file=sys.stderr)
    quiet, *busy = outcomes
    against = {outcome.name: contradictions(quiet, outcome) for outcome in busy}
    planned, possible = len(quiet.evaluation.plan.pairs), len(quiet.comparisons)
    lines = [
        f"`tfcompare run --versions {','.join(program.versions)} --engine venv`, once while the machine is otherwise",
        f"idle, and {program.repeats} times while another process keeps core {BUSY_CORE} busy. A comparison",
        f"that was postponed is undecided; {planned - possible} of {planned} are left out, because a version refuses",
        "them. A verdict contradicts the quiet run's if one is slower and the other faster, or if one is a",
        "difference, the other is none, and their intervals do not overlap.",
        "",
        "| run | decided | of them slower, faster, same | postponed | fewest rounds | contradictions | time | budget |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(outcome, against.get(outcome.name)) for outcome in outcomes),
        *(_tell(name, *pair) for name, pairs in against.items() for pair in pairs),
    ]
    store.retire()
    return Section("\n".join(lines), figures_of(busy, against))


def _row(outcome: Outcome, against: Sequence[object] | None) -> str:
    counts = [sum(one.verdict == verdict for one in outcome.comparisons) for verdict in ("slower", "faster", "same")]
    cells = (
        outcome.name,
        f"{outcome.decided} of {len(outcome.comparisons)}: {outcome.decided / len(outcome.comparisons):.0%}",
        ", ".join(map(str, counts)),
        outcome.left_out,
        outcome.fewest_rounds,
        "-" if against is None else len(against),
        f"{outcome.seconds:.0f} s",
        f"{outcome.evaluation.plan.budget_s or 0:.0f} s",
    )
    return f"| {' | '.join(map(str, cells))} |"


def figures_of(busy: Sequence[Outcome], against: Mapping[str, Sequence[object]]) -> list[Figure]:
    decided, total = sum(outcome.decided for outcome in busy), sum(len(outcome.comparisons) for outcome in busy)
    bounds = stats.binomtest(decided, total).proportion_ci(method="exact")
    detail = f"{decided} of {total}, {bounds.low:.1%} to {bounds.high:.1%}"
    contrary = sum(map(len, against.values()))
    longest = max(outcome.seconds / (outcome.evaluation.plan.budget_s or outcome.seconds) for outcome in busy)
    return [
        Figure("comparisons decided with a busy core", decided / total, "share", "most", DECIDED, detail),
        Figure("verdicts that contradict the quiet run", contrary, "count", limit=0),
        Figure("longest time, of the budget", longest, "share", limit=OVERTIME),
    ]


def _tell(name: str, quiet: Comparison, busy: Comparison) -> str:
    baseline, candidate = (_name(arm) for arm in quiet.pair.arms)
    return f"\n{candidate} against {baseline}: {_verdict(quiet)} in the quiet run, {_verdict(busy)} in {name}."


def _name(arm: ArmKey) -> str:
    return f"`{arm.case}` in {arm.target}"


def _verdict(comparison: Comparison) -> str:
    return f"{comparison.verdict} {format_ratio(comparison)}"
