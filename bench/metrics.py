"""How often each metric calls equal arms different, and how often it finds a difference of a known size.

The real command measures the quick suite in one version under several names, with its default budget. Each name is a
target with a variable that nothing reads, so every verdict but `same` and `equal` is false. Then each name but the
first is given more of a metric in turn, and the same runs are judged again.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import stats

from bench.figures import Figure, Section
from bench.injected import SIZES, judge_injected
from bench.store import Store, seconds_of
from orchestrator.errors import Interrupted
from orchestrator.measure.run import plan_and_measure as measure_run
from orchestrator.metrics import USUAL
from orchestrator.model import Metric
from orchestrator.plan.request import RunOptions
from orchestrator.results.evaluation import gather, judge_gathered
from orchestrator.results.outputs import compare_outputs
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.sketches import find_distance, read_sketch
from orchestrator.terminal.view import View
from tests.support.builders import NEW, OLD, plan, replicate, target
from tests.support.result_pairs import DIFFERENCES, NOISE, Draw
from workloads.sketches import sketch

# Each in turn.
VERSIONS = ("2.13", "1.14", "2.0")
NAMES = ("first", "second", "third")
JUDGED: tuple[Metric, ...] = (*USUAL, "build", "cpu", "import")
# These take many calls, and so quick cases. Those of a version itself and those that count are with them.
OF_MANY_CALLS: tuple[Metric, ...] = ("leak", "p50", "p95", "p99", "import", "traces", "traces_per_call")
QUICK = ("power[style=eager|function]", "predict[call=predict|call,state=compiled,model=tiny]")
MOST, FEWEST = 0.025, 0.9
SEED = 70
# Pairs of results of each kind, and from which seed on: not those of the tests.
PAIRS, FIRST_PAIR = 100, 1000
# The least share of results that differ which has to be found.
FEWEST_RESULTS = 0.95
# A verdict by metric and by how many margins the arm has more; 0 of an equal one.
Found = tuple[str, int, str]


@dataclass(frozen=True)
class Program:
    """How often the quick suite is measured, and how often quick cases with many calls, and what is selected."""

    runs: int
    of_many_calls: int
    selected: tuple[str, ...] = ()
    quick: tuple[str, ...] = QUICK


FULL = Program(9, 11)
TINY = Program(1, 1, ("power[style=function]",), ("power[style=function]",))


def measure(path: Path, version: str, selected: tuple[str, ...], seed: int, metrics: tuple[Metric, ...]) -> None:
    targets = tuple(f"{version} EQUAL_ARM={name} as {name}" for name in NAMES)
    options = RunOptions(
        versions=targets,
        selected=selected,
        engine="venv",
        out=path,
        seed=seed,
        # A default run measures no rounds for first calls and builds, and all that is needed to judge them.
        metrics=() if metrics == JUDGED else tuple(metrics),
    )
    done = measure_run(options, View())
    if isinstance(done.error, Interrupted):
        raise done.error


def verdicts(path: Path, metrics: Sequence[Metric]) -> Iterator[Found]:
    """Yield each verdict across the arms of a run, as they are and as if one of them had more."""
    gathered = gather(RunFolder.open(path))
    gathered = replace(gathered, plan=replace(gathered.plan, metrics=tuple(metrics)))
    evaluation = judge_gathered(gathered)
    for comparison in evaluation.comparisons:
        if comparison.pair.across and comparison.ci_low is not None:
            yield "time", 0, comparison.verdict
    for comparison in evaluation.of_metrics:
        if comparison.ends is not None:
            yield comparison.pair.metric, 0, comparison.verdict
    for output in evaluation.outputs:
        yield "output", 0, output.verdict
    for version in gathered.plan.targets[1:]:
        yield from judge_injected(gathered, version, metrics)


def table(found: Sequence[Found]) -> list[str]:
    sizes = [f"{size} margin{'s' * (size > 1)} more" for size in SIZES]
    lines = [f"| metric | equal | same | not decided | {' | '.join(sizes)} |", "|---" * (4 + len(SIZES)) + "|"]
    for metric in dict.fromkeys(metric for metric, *_ in found):
        own = _of(found, metric, 0)
        same = sum(verdict in ("same", "equal", "equal within tolerance") for verdict in own)
        more = [_of(found, metric, size) for size in SIZES]
        cells = [f"{each.count('slower')} of {len(each)} found" if each else "" for each in more]
        lines.append(f"| {metric} | {len(own)} | {same} | {len(own) - same - _false(own)} | {' | '.join(cells)} |")
    return lines


def figures_of(found: Sequence[Found]) -> list[Figure]:
    figures = []
    for metric in dict.fromkeys(metric for metric, *_ in found):
        own, twice = _of(found, metric, 0), _of(found, metric, 2)
        figures.append(share_of(f"{metric}: called different", _false(own), len(own), "least", MOST))
        if twice:
            title = f"{metric}: two margins more, found"
            figures.append(share_of(title, twice.count("slower"), len(twice), "most", FEWEST))
            wrong = [verdict for size in SIZES for verdict in _of(found, metric, size)]
            figures.append(share_of(f"{metric}: more, called less", wrong.count("faster"), len(wrong), "least", 0.0))
    return figures


def share_of(title: str, count: int, of: int, best: Literal["least", "most"], limit: float) -> Figure:
    bounds = stats.binomtest(count, of).proportion_ci(method="exact")
    return Figure(title, count / of, "share", best, limit, f"{count} of {of}, {bounds.low:.1%} to {bounds.high:.1%}")


def _of(found: Sequence[Found], metric: str, size: int) -> list[str]:
    return [verdict for name, more, verdict in found if (name, more) == (metric, size)]


def _false(verdicts: Sequence[str]) -> int:
    return sum(verdict in ("slower", "faster", "differs") for verdict in verdicts)


def results_that_differ(draw: Draw, pairs: int) -> int:
    """Return how many pairs of results of a kind differ by their sketches."""
    drawn = (draw(np.random.RandomState(FIRST_PAIR + number)) for number in range(pairs))
    sketches = ([read_sketch(sketch(each)) for each in pair] for pair in drawn)  # type: ignore[no-untyped-call]
    return sum(find_distance(old, new).exceeds for old, new in sketches if old and new)


def later_results_that_differ(draw: Draw, pairs: int) -> int:
    """Return how many pairs of results of a kind differ by their sketches if only the fifth calls return them."""
    found = 0
    for number in range(pairs):
        texts = [sketch(each) for each in draw(np.random.RandomState(FIRST_PAIR + number))]  # type: ignore[no-untyped-call]
        replicates = [
            replicate(
                round=of_round, number=2 * of_round + place, target=target(version), output=texts[0], fifth_output=text
            )
            for of_round in range(1, 5)
            for place, (version, text) in enumerate(zip((OLD, NEW), texts, strict=True))
        ]
        (output,) = compare_outputs(plan(), replicates)
        found += output.verdict == "differs" and output.call == "fifth"
    return found


def section(program: Program = FULL) -> Section:
    store = Store("metrics", tiny=program == TINY)
    found: list[Found] = []
    for number in range(program.runs):
        found += _measured(store, f"equal-{number + 1}", number, program.selected, JUDGED)
    names = set(OF_MANY_CALLS)
    for number in range(program.of_many_calls):
        of_run = _measured(store, f"many-calls-{number + 1}", number, program.quick, OF_MANY_CALLS)
        found += [each for each in of_run if each[0] in names]
    pairs = PAIRS if program == FULL else 2
    of_results = [
        share_of(f"results, {name}: found different", results_that_differ(draw, pairs), pairs, "most", FEWEST_RESULTS)
        for name, draw in DIFFERENCES.items()
    ]
    of_later = [
        share_of(
            f"results, {name} of a later call: found different",
            later_results_that_differ(draw, pairs),
            pairs,
            "most",
            FEWEST_RESULTS,
        )
        for name, draw in DIFFERENCES.items()
    ]
    of_noise = [
        share_of(f"results, noise {name}: found different", results_that_differ(draw, pairs), pairs, "least", MOST)
        for name, draw in NOISE.items()
    ]
    lines = [
        f"The quick suite in {len(NAMES)} equal arms, {program.runs} runs in {', '.join(VERSIONS)} by turns, with the",
        f"default budget; and {', '.join(OF_MANY_CALLS)} in",
        f"{program.of_many_calls} runs of {', '.join(f'`{name}`' for name in program.quick)}. Comparisons with",
        "fewer than 4 rounds have no verdict and are left out. The same runs are judged again as if one of the arms",
        f"had more of a metric: {', '.join(map(str, SIZES))} times its margin. Results are {pairs} pairs of each kind,",
        "which differ at random places, or by noise; of a later call, only the fifth calls return them. In brackets:",
        "exact 95 % limits, as if comparisons that share an arm were independent. Times are in the part on detection.",
        "`size` has no noise, and neither a CPU nor the suite has `gpu_memory` and `step`: tests compare these.",
        "",
        *table(found),
        "",
        store.describe(),
    ]
    store.retire()
    return Section("\n".join(lines), [*figures_of(found), *of_results, *of_later, *of_noise], store.commits)


def _measured(
    store: Store, name: str, number: int, selected: tuple[str, ...], metrics: tuple[Metric, ...]
) -> list[Found]:
    kept = store.read(name)
    if kept is None:
        version = VERSIONS[number % len(VERSIONS)]
        path = store.run(name, measure, version, selected, SEED + number, metrics)
        kept = [list(each) for each in verdicts(path, metrics)]
        store.write(name, kept)
        print(f"metrics: {name}: {seconds_of(path):.0f} s", file=sys.stderr)
    return [(metric, size, verdict) for metric, size, verdict in kept]
