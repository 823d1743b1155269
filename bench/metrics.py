"""How often equal arms are called different by each metric: the quick suite in one version under several names.

The real command measures them with its default budget. Each name is a target with a variable that nothing reads, so
every verdict but `same` and `equal` is false.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from bench.store import Store, seconds_of
from orchestrator.errors import Interrupted
from orchestrator.measure.run import run as run_comparison
from orchestrator.metrics import METRICS, USUAL
from orchestrator.model import Comparison
from orchestrator.plan.request import RunOptions
from orchestrator.results.comparison import judge_run
from orchestrator.results.rundir import RunDir
from orchestrator.terminal.progress import Quiet

# Each in turn.
VERSIONS = ("2.13", "1.14", "2.0")
NAMES = ("first", "second", "third")
JUDGED = (*USUAL, "build", "cpu")
MOST = 0.025
SEED = 70


@dataclass(frozen=True)
class Program:
    runs: int
    selected: tuple[str, ...]


FULL = Program(9, ())
TINY = Program(1, ("power[style=function]",))


def measure(path: Path, version: str, selected: tuple[str, ...], seed: int) -> None:
    targets = tuple(f"{version} EQUAL_ARM={name} as {name}" for name in NAMES)
    options = RunOptions(
        versions=targets,
        selected=selected,
        engine="venv",
        out=path,
        seed=seed,
        metrics=(*(METRICS[metric].name for metric in JUDGED), "output"),
    )
    done = run_comparison(options, Quiet())
    if isinstance(done.error, Interrupted):
        raise done.error


def verdicts(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield each metric with each of its verdicts across the arms."""
    for contrast in comparison.contrasts:
        if contrast.pair.across and contrast.ci_low is not None:
            yield "time", contrast.verdict
    for contrast in comparison.of_metrics:
        if contrast.ci_low is not None:
            yield METRICS[contrast.pair.metric].name, contrast.verdict
    for output in comparison.outputs:
        yield "output", output.verdict


def table(found: Sequence[tuple[str, str]]) -> list[str]:
    lines = ["| metric | comparisons | called different | target | same | not decided |", "|---|---|---|---|---|---|"]
    for metric in dict.fromkeys(metric for metric, _ in found):
        own = [verdict for name, verdict in found if name == metric]
        false = sum(verdict in ("slower", "faster", "differs") for verdict in own)
        same = sum(verdict in ("same", "equal", "equal within tolerance") for verdict in own)
        bounds = stats.binomtest(false, len(own)).proportion_ci(method="exact")
        shown = f"{false}: {false / len(own):.1%} ({bounds.low:.1%} to {bounds.high:.1%})"
        met = "met" if false / len(own) <= MOST else "**missed**"
        cells = (metric, len(own), shown, f"<= {MOST:.1%} ({met})", same, len(own) - false - same)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def section(program: Program = FULL) -> str:
    store = Store("metrics", tiny=program == TINY)
    found: list[tuple[str, str]] = []
    for number in range(program.runs):
        name = f"equal-{number + 1}"
        kept = store.read(name)
        if kept is None:
            path = store.run(name, measure, VERSIONS[number % len(VERSIONS)], program.selected, SEED + number)
            kept = [list(each) for each in verdicts(judge_run(RunDir.open(path)))]
            store.write(name, kept)
            print(f"metrics: {name}: {seconds_of(path):.0f} s", file=sys.stderr)
        found += [(metric, verdict) for metric, verdict in kept]
    lines = [
        f"The quick suite in {len(NAMES)} equal arms, {program.runs} runs in {', '.join(VERSIONS)} by turns, with the",
        "default budget. Comparisons with fewer than 4 rounds have no verdict and are left out. In brackets: exact",
        "95 % limits, as if comparisons that share an arm were independent.",
        "",
        *table(found),
        "",
        store.describe(),
    ]
    store.retire()
    return "\n".join(lines)
