"""Measures how often equal arms differ in their counts of Python calls and operations, and how often 5 % more is found.

The real command measures real releases. Equal arms differ in a variable that nothing reads. Detection is measured
next to two processes that never stop computing, in two rounds.
"""

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import arena
from bench.figures import Figure, Section
from bench.metrics import NAMES, VERSIONS, share_of
from bench.store import Store, seconds_of
from orchestrator.measure.run import plan_and_measure as measure_run
from orchestrator.model import Metric
from orchestrator.plan.request import RunOptions
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View

WORKLOADS = Path(__file__).parent / "workloads"
COUNTS: tuple[Metric, ...] = ("calls", "ops")
DIFFERENT = ("slower", "faster")
# Verdicts by metric.
Verdicts = dict[str, list[str]]


@dataclass(frozen=True)
class RunCounts:
    """How many runs of the quick suite have equal arms, and how many runs have 5 % more."""

    equal: int
    more: int
    selected: tuple[str, ...] = ()


FULL = RunCounts(21, 20)
TINY = RunCounts(1, 1, ("power[style=function]",))


def measure(path: Path, targets: tuple[str, ...], selected: tuple[str, ...], seed: int, *, busy: bool = False) -> None:
    options = RunOptions(
        versions=targets, selected=selected, own_workloads=WORKLOADS if busy else None, engine="venv", out=path,
        metrics=COUNTS, rounds=2, seed=seed, pairing="all",
    )  # fmt: skip
    with ExitStack() as stack:
        for core in sorted(os.sched_getaffinity(0))[:2] if busy else ():
            process = arena.keep_busy(core)
            stack.callback(process.kill)
        if error := measure_run(options, View()).error:
            raise error


def section(program: RunCounts = FULL) -> Section:
    store = Store("counts", tiny=program == TINY)

    def read(name: str, targets: tuple[str, ...], selected: tuple[str, ...], seed: int, busy: bool) -> Verdicts:
        kept: Verdicts | None = store.read(name)
        if kept is None:
            path = store.run(name, lambda path: measure(path, targets, selected, seed, busy=busy))
            judged = judge_run(RunFolder.open(path))
            kept = {metric: [each.verdict for each in judged.metrics[metric]] for metric in COUNTS}
            assert all(kept.values()), f"{path}: nothing was counted"
            store.write(name, kept)
            print(f"counts: {name}: {kept}, {seconds_of(path):.0f} s", file=sys.stderr)
        return kept

    equal = [
        read(f"equal-{number + 1}", tuple(f"{version} EQUAL_ARM={name} as {name}" for name in NAMES), program.selected,
             number, False)
        for number in range(program.equal)
        for version in [VERSIONS[number % len(VERSIONS)]]
    ]  # fmt: skip
    more = [
        read(f"more-{number + 1}", ("2.13", "2.13 MORE=1"), ("counted",), number, True)
        for number in range(program.more)
    ]
    figures, lines = [], []
    for metric in COUNTS:
        verdicts = [verdict for found in equal for verdict in found[metric]]
        decided = [verdict for verdict in verdicts if verdict != "inconclusive"]
        different = sum(verdict in DIFFERENT for verdict in decided)
        of_more = [verdict for found in more for verdict in found[metric]]
        figures += [
            share_of(f"{metric}: equal arms called different", different, len(verdicts), "least", 0.0),
            Figure(
                f"{metric}: 5 % more, found", of_more.count("slower"), "count", "most", len(more), f"of {len(of_more)}"
            ),
        ]
        lines.append(f"{metric}: {len(decided)} of {len(verdicts)} comparisons of equal arms have a verdict.")
    body = "\n".join(
        [
            f"The quick suite in {len(NAMES)} equal arms, {program.equal} runs of two rounds in {', '.join(VERSIONS)}",
            f"in turn; and {program.more} runs of `bench/workloads/counted.py` in 2.13, `MORE=1` in one arm, next to",
            f"two processes that compute without end. {' '.join(lines)} In the others, the counts vary.",
            "",
            store.describe(),
        ]
    )
    commits = store.commits
    store.retire()
    return Section(body, figures, commits)
