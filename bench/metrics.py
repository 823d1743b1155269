"""How often equal arms are called different by each metric: the quick suite in one version under several names.

The real command measures them with its default budget. Each name is a target with a variable that nothing reads, so
every verdict but `same` and `equal` is false.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from bench.figures import Figure, Section
from bench.store import Store, seconds_of
from orchestrator.errors import Interrupted
from orchestrator.measure.run import run as run_comparison
from orchestrator.metrics import METRICS, USUAL
from orchestrator.model import Comparison, Metric
from orchestrator.plan.request import RunOptions
from orchestrator.results.comparison import judge_run
from orchestrator.results.rundir import RunDir
from orchestrator.terminal.progress import Quiet

# Each in turn.
VERSIONS = ("2.13", "1.14", "2.0")
NAMES = ("first", "second", "third")
JUDGED: tuple[Metric, ...] = (*USUAL, "build", "cpu")
# These take many calls, and so quick cases. Those of a version itself and those that count are with them.
OF_MANY_CALLS: tuple[Metric, ...] = ("leak", "p50", "p95", "p99", "import", "traces", "traces_per_call")
QUICK = ("power[style=eager|function]", "predict[call=predict|call,state=compiled,model=tiny]")
MOST = 0.025
SEED = 70


@dataclass(frozen=True)
class Program:
    """How often the quick suite is measured, and how often quick cases with many calls, and what is selected."""

    runs: int
    of_many_calls: int
    selected: tuple[str, ...] = ()
    quick: tuple[str, ...] = QUICK


FULL = Program(9, 14)
TINY = Program(1, 1, ("power[style=function]",), ("power[style=function]",))


def measure(path: Path, version: str, selected: tuple[str, ...], seed: int, metrics: tuple[Metric, ...]) -> None:
    targets = tuple(f"{version} EQUAL_ARM={name} as {name}" for name in NAMES)
    options = RunOptions(
        versions=targets,
        selected=selected,
        engine="venv",
        out=path,
        seed=seed,
        metrics=(*(METRICS[metric].name for metric in metrics), *(["output"] if metrics == JUDGED else [])),
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
        if contrast.ends is not None:
            yield METRICS[contrast.pair.metric].name, contrast.verdict
    for output in comparison.outputs:
        yield "output", output.verdict


def table(found: Sequence[tuple[str, str]]) -> list[str]:
    lines = ["| metric | comparisons | same | not decided |", "|---|---|---|---|"]
    for metric in dict.fromkeys(metric for metric, _ in found):
        own = [verdict for name, verdict in found if name == metric]
        same = sum(verdict in ("same", "equal", "equal within tolerance") for verdict in own)
        lines.append(f"| {metric} | {len(own)} | {same} | {len(own) - same - _false(own)} |")
    return lines


def figures_of(found: Sequence[tuple[str, str]]) -> list[Figure]:
    figures = []
    for metric in dict.fromkeys(metric for metric, _ in found):
        own = [verdict for name, verdict in found if name == metric]
        bounds = stats.binomtest(_false(own), len(own)).proportion_ci(method="exact")
        detail = f"{_false(own)} of {len(own)}, {bounds.low:.1%} to {bounds.high:.1%}"
        figures.append(Figure(f"{metric}: called different", _false(own) / len(own), "share", "least", MOST, detail))
    return figures


def _false(verdicts: Sequence[str]) -> int:
    return sum(verdict in ("slower", "faster", "differs") for verdict in verdicts)


def section(program: Program = FULL) -> Section:
    store = Store("metrics", tiny=program == TINY)
    found: list[tuple[str, str]] = []
    for number in range(program.runs):
        found += _measured(store, f"equal-{number + 1}", number, program.selected, JUDGED)
    names = {METRICS[metric].name for metric in OF_MANY_CALLS}
    for number in range(program.of_many_calls):
        of_run = _measured(store, f"many-calls-{number + 1}", number, program.quick, OF_MANY_CALLS)
        found += [(metric, verdict) for metric, verdict in of_run if metric in names]
    lines = [
        f"The quick suite in {len(NAMES)} equal arms, {program.runs} runs in {', '.join(VERSIONS)} by turns, with the",
        f"default budget; and {', '.join(METRICS[metric].name for metric in OF_MANY_CALLS)} in",
        f"{program.of_many_calls} runs of {', '.join(f'`{name}`' for name in program.quick)}. Comparisons with",
        "fewer than 4 rounds have no verdict and are left out. In brackets: exact 95 % limits, as if comparisons that",
        "share an arm were independent.",
        "",
        *table(found),
        "",
        store.describe(),
    ]
    store.retire()
    return Section("\n".join(lines), figures_of(found), store.commits)


def _measured(
    store: Store, name: str, number: int, selected: tuple[str, ...], metrics: tuple[Metric, ...]
) -> list[tuple[str, str]]:
    kept = store.read(name)
    if kept is None:
        version = VERSIONS[number % len(VERSIONS)]
        path = store.run(name, measure, version, selected, SEED + number, metrics)
        kept = [list(each) for each in verdicts(judge_run(RunDir.open(path)))]
        store.write(name, kept)
        print(f"metrics: {name}: {seconds_of(path):.0f} s", file=sys.stderr)
    return [(metric, verdict) for metric, verdict in kept]
