"""Code that nothing was tuned for: what a usual run decides about it, in its budget, and how often each arm was called.

The bodies are those of `bench/workloads/bodies.py`: kinds of code that third parties publish, written again. Their true
ratios are not known, so nothing is promised of these.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, Section
from bench.store import Store, seconds_of
from orchestrator.measure.run import plan_and_measure as measure_run
from orchestrator.model import ArmKey, Calibrated, Comparison, Evaluation
from orchestrator.plan.request import RunOptions
from orchestrator.reports.columns import format_ratio
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.stats import calibrate
from orchestrator.terminal.view import View

WORKLOADS = Path(__file__).parent / "workloads"
OVERTIME = 1.1


@dataclass(frozen=True)
class Program:
    versions: tuple[str, ...]
    selected: str
    budget_s: float
    untuned: bool = False


FULL = Program(("2.8", "2.13", "2.16"), "bodies", 240)
TINY = Program(("2.13", "2.16"), "bodies[which=matmul]", 30)


def measure(path: Path, program: Program, workloads: Path = WORKLOADS) -> None:
    options = RunOptions(
        versions=program.versions,
        selected=(program.selected,),
        own_workloads=workloads,
        engine="venv",
        budget_s=program.budget_s,
        untuned_datasets=program.untuned,
        out=path,
        seed=7,
    )
    if error := measure_run(options, View()).error:
        raise error


def below_the_floor(evaluation: Evaluation, efforts: Mapping[ArmKey, Calibrated]) -> list[ArmKey]:
    """Return the arms with fewer bursts than the floor for calls of their length."""
    short = []
    for arm in evaluation.arms:
        effort = efforts.get(arm.key)
        if effort and arm.time_ms is not None:
            slow = arm.time_ms * arm.steps / 1e3 >= calibrate.SLOW_CALL_S
            floor = calibrate.FEWEST_SLOW_BURSTS if slow else calibrate.FEWEST_BURSTS
            short += [arm.key] if effort.bursts < floor else []
    return short


def section(program: Program = FULL) -> Section:
    store = Store("bodies", tiny=program == TINY)
    path = store.run("run", measure, program)
    run = RunFolder.open(path)
    evaluation, seconds = judge_run(run), seconds_of(path)
    efforts = efforts_of(run)
    short = below_the_floor(evaluation, efforts)
    comparisons = evaluation.comparisons
    decided = sum(comparison.verdict != "inconclusive" for comparison in comparisons)
    print(f"bodies: {decided} of {len(comparisons)} decided in {seconds:.0f} s", file=sys.stderr)
    store.retire()
    first, *others = program.versions
    heads = " | ".join(f"{version} against {first}" for version in others)
    lines = [
        f"`tfcompare run --versions {','.join(program.versions)} --engine venv --workload-folder bench/workloads",
        f"--case {program.selected} --budget {program.budget_s:.0f}s`. A cell has the ratio with its interval, the",
        "verdict, and the rounds; the last column has bursts x calls in each version.",
        "",
        f"| body | {heads} | bursts |",
        f"|---|{'---|' * len(program.versions)}",
        *rows_of(comparisons, efforts),
    ]
    figures = [
        Figure("arms below the floor of bursts", len(short), "count", limit=0, detail=f"of {len(evaluation.arms)}"),
        Figure("time, of the budget", seconds / program.budget_s, "share", limit=OVERTIME),
        Figure("comparisons decided", decided / len(comparisons), "share", "most", detail=f"of {len(comparisons)}"),
    ]
    return Section("\n".join(lines), figures)


def efforts_of(run: RunFolder) -> dict[ArmKey, Calibrated]:
    return {
        ArmKey(entry.case, entry.target): entry
        for entry in run.entries()
        if isinstance(entry, Calibrated) and entry.target
    }


def rows_of(comparisons: Sequence[Comparison], efforts: Mapping[ArmKey, Calibrated]) -> Iterable[str]:
    for case in dict.fromkeys(comparison.pair.arms[0].case for comparison in comparisons):
        own = [comparison for comparison in comparisons if comparison.pair.arms[0].case == case]
        arms = dict.fromkeys(arm for comparison in own for arm in comparison.pair.arms)
        bursts = ", ".join(f"{efforts[arm].bursts}x{efforts[arm].calls}" for arm in arms if arm in efforts)
        yield f"| `{case}` | {' | '.join(map(_cell, own))} | {bursts} |"


def _cell(comparison: Comparison) -> str:
    if comparison.ratio is None:
        return f"{comparison.reason}"
    return f"{format_ratio(comparison)} {comparison.shown_verdict}, {comparison.rounds}"
