"""`python -m bench.whole_reports`: how often a report in which nothing differs names something, and what that costs.

Each simulated report has 8 cases in 3 versions: 16 comparisons of times, 8 more between neighbours, 16 of first calls
and 16 of memory. Its times are judged look by look, as in a run, and the rest once. All of it passes through the
functions that judge and word a run. Noise is normal, or has the tails of t(3), and is drawn from fixed seeds.
"""

import argparse
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from orchestrator.metrics import METRICS, USUAL, scale_of
from orchestrator.metrics.gates import find_gate_error, parse_gates
from orchestrator.model import ArmKey, Comparison, Evaluation, Metric
from orchestrator.plan.pairs import TABLE_LOOKS, metric_pairs, neighbour_pairs
from orchestrator.reports.metric_sentences import metric_sentences
from orchestrator.reports.summary import sentences
from orchestrator.results.gated import gate_run
from orchestrator.results.whole_report import correct_for_report
from orchestrator.stats.comparisons import Samples, judge_pairs
from orchestrator.stats.looks import Stretch, make_bystander_schedule, make_schedule
from tests.support.builders import arm, case, evaluation, plan

VERSIONS = ("1.0.0", "2.0.0", "3.0.0")
CASES = tuple(case("body", size=str(size)) for size in range(8))
PLAN = plan(CASES, VERSIONS, looks=TABLE_LOOKS, metrics=USUAL)
ARMS = tuple(arm(of, version) for of in CASES for version in VERSIONS)
SCHEDULE, ONCE = make_schedule([Stretch(TABLE_LOOKS)]), make_bystander_schedule([Stretch(TABLE_LOOKS)])
FAMILIES: tuple[Metric, ...] = ("time", *USUAL)
GATES = parse_gates("slower,faster,first:slower,first:faster,memory:more,memory:less")
NAMING = ("slower", "faster", *(phrase for key in USUAL for phrase in (METRICS[key].more, METRICS[key].less)))
REPORTS, WITH_DIFFERENCES, SEED = 4000, 500, 47
# Of the log ratio of two arms in a round.
SPREADS, NOISES = (0.02, 0.05, 0.1), ("normal", "t(3)")
SLOWER, AMOUNTS = (1, 4), (0.1, 0.3)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SimulatedReport:
    """A report, and the number of cases whose times are slower in the last version."""

    evaluation: Evaluation
    slower: int = 0

    @property
    def has_row(self) -> bool:
        """Whether some row is called slower or faster, more or less."""
        return any(each.verdict in ("slower", "faster") for each in self.evaluation.of_all)

    @property
    def names(self) -> bool:
        """Whether a sentence names a difference, even a slight one."""
        text = " ".join((*sentences(self.evaluation), *metric_sentences(self.evaluation)))
        return any(phrase in text for phrase in NAMING)

    @property
    def names_rows(self) -> bool:
        """Whether a sentence would name a difference if it took each row for itself."""
        metrics = {metric: _take_alone(own) for metric, own in self.evaluation.metrics.items()}
        alone = replace(self.evaluation, comparisons=_take_alone(self.evaluation.comparisons), metrics=metrics)
        return SimulatedReport(alone).names

    @property
    def trips(self) -> bool:
        return find_gate_error(GATES, gate_run(self.evaluation)) is not None

    @property
    def of_slower(self) -> list[Comparison]:
        """The comparisons of times with the baseline that truly differ."""
        return list(filter(self._differs, self.evaluation.comparisons))

    @property
    def errs(self) -> bool:
        """Whether something is different in the report as a whole that is equal."""
        return any(
            each.report_verdict in ("slower", "faster") and not self._differs(each) for each in self.evaluation.of_all
        )

    def _differs(self, comparison: Comparison) -> bool:
        slower = {ArmKey(of.label, PLAN.targets[-1]) for of in CASES[: self.slower]}
        return comparison.pair.metric == "time" and not slower.isdisjoint(comparison.pair.arms)


def _take_alone(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    return tuple(replace(each, row_only=False) for each in comparisons)


def simulate_report(
    draw: np.random.Generator, spread: float, *, noise: str = "normal", slower: int = 0, amount: float = 0.0
) -> SimulatedReport:
    """Return a report of which this many cases are slower by this much in the last version."""
    shape = (len(FAMILIES), len(CASES), len(VERSIONS), TABLE_LOOKS[-1])
    unit = draw.normal(size=shape) if noise == "normal" else draw.standard_t(3, shape) / math.sqrt(3)
    logs = unit * spread / math.sqrt(2)
    logs[0, :slower, -1] += math.log1p(amount)
    return SimulatedReport(judge_report(logs), slower)


def judge_report(logs: Floats) -> Evaluation:
    """Judge the logs of all figures, by metric, case, version and round."""
    rounds, open_cases = dict.fromkeys((of.label for of in CASES), 0), set(CASES)
    for look in TABLE_LOOKS:
        rounds |= {of.label: look for of in open_cases}
        samples = _cut(logs, rounds)
        comparisons = judge_pairs(PLAN, samples, ARMS, SCHEDULE)
        undecided = {each.pair.arms[1].case for each in comparisons if each.verdict == "inconclusive"}
        open_cases = {of for of in open_cases if of.label in undecided}
        if not open_cases:
            break
    planned = {pair.arms for pair in PLAN.pairs}
    pairs = tuple(pair for pair in neighbour_pairs(PLAN, ARMS) if pair.arms not in planned)
    metrics = {
        metric: judge_pairs(
            replace(PLAN, pairs=metric_pairs(PLAN, METRICS[metric], ARMS)),
            samples,
            ARMS,
            ONCE if METRICS[metric].of_openings else SCHEDULE,
            scale_of=scale_of,
        )
        for metric in USUAL
    }
    neighbours = judge_pairs(replace(PLAN, pairs=pairs), samples, ARMS, SCHEDULE)
    return correct_for_report(
        evaluation(plan=PLAN, arms=ARMS, comparisons=comparisons, neighbours=neighbours, metrics=metrics)
    )


def _cut(logs: Floats, rounds: Mapping[str, int]) -> Samples:
    return {
        (of.label, version, metric): dict(enumerate(own[: rounds[of.label]].tolist(), 1))
        for metric, of_metric in zip(FAMILIES, logs, strict=True)
        for of, of_case in zip(CASES, of_metric, strict=True)
        for version, own in zip(PLAN.targets, of_case, strict=True)
    }


def describe_equal(noise: str, spread: float, reports: int) -> str:
    """Return a row of the table of reports in which nothing differs."""
    draw = np.random.default_rng([SEED, NOISES.index(noise), SPREADS.index(spread)])
    counts = np.zeros(4)
    for _ in range(reports):
        report = simulate_report(draw, spread, noise=noise)
        counts += (report.has_row, report.names_rows, report.names, report.trips)
    cells = " | ".join(f"{share:.1%}" for share in counts / reports)
    return f"| {noise} | {spread:.0%} | {cells} |"


def describe_slower(slower: int, amount: float, spread: float, reports: int) -> str:
    """Return a row of the table of reports in which some cases are slower."""
    draw = np.random.default_rng([SEED, slower, round(100 * amount), SPREADS.index(spread)])
    simulated = [simulate_report(draw, spread, slower=slower, amount=amount) for _ in range(reports)]
    rows = [each for report in simulated for each in report.of_slower]
    called = [each for each in rows if each.verdict == "slower"]
    named = sum(not each.row_only for each in called) / max(len(called), 1)
    errs = sum(report.errs for report in simulated) / reports
    cells = f"{len(called) / len(rows):.1%} | {named:.1%} | {errs:.1%}"
    return f"| {slower} of {len(CASES)} | {amount:+.0%} | {spread:.0%} | {cells} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.whole_reports", description=__doc__)
    parser.add_argument("--reports", type=int, default=REPORTS, help="in which nothing differs, for each noise")
    parser.add_argument("--with-differences", type=int, default=WITH_DIFFERENCES)
    given = parser.parse_args()
    print("| noise | sd | some row is called | named without a correction | named | --fail-on trips |")
    print("|---|---|---|---|---|---|")
    for noise, spread in product(NOISES, SPREADS):
        print(describe_equal(noise, spread, given.reports), flush=True)
    print("\n| slower cases | by | sd | called in their rows | of these, named | reports that name an equal arm |")
    print("|---|---|---|---|---|---|")
    for slower, amount, spread in product(SLOWER, AMOUNTS, SPREADS[1:]):
        print(describe_slower(slower, amount, spread, given.with_differences), flush=True)


if __name__ == "__main__":
    main()
