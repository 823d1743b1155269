"""The rows of a report, whatever draws them: a case each, what every target has for it, and their order."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.metrics import METRICS, describe_verdict
from orchestrator.model import (
    ArmKey,
    ArmResult,
    CasePair,
    Comparison,
    Evaluation,
    MeanRatio,
    Metric,
    OutputComparison,
    OutputVerdict,
    Plan,
    ShownVerdict,
    Target,
)
from orchestrator.plan.pairs import find_baselines, find_further_baselines, find_pairing
from orchestrator.reports.case_names import make_pair_namer, short_names
from orchestrator.reports.columns import ABOUT_SMALL_MARKS, MEASURES, OTHER_MARKS, STAR, WAVE, mark_verdict
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.magnitudes import show_figures
from orchestrator.reports.steps import as_arms_of_steps, comparisons_of_steps
from orchestrator.reports.summary import by_candidate
from orchestrator.results.sketches import show_share
from orchestrator.stats.looks import FEWEST_ROUNDS
from orchestrator.terminal.durations import format_time

NO_MEAN = "no geometric mean: no two cases have an interval in every version, from the same rounds"
OUTPUT_MARKS: Mapping[OutputVerdict, str] = {
    "equal": "=", "equal within tolerance": "≈", "differs": "≠", "not comparable": "?",
}  # fmt: skip
# They have the colours of these verdicts.
LIKE_VERDICTS: Mapping[OutputVerdict, ShownVerdict] = {
    "equal": "same", "equal within tolerance": "same", "differs": "slower", "not comparable": "inconclusive",
}  # fmt: skip


@dataclass(frozen=True)
class CaseCell:
    """What a target has for a case: a verdict with its figure, the outcome of an arm, a figure alone, or nothing."""

    figure: str = ""
    # The interval, or how many rounds there are of those that a verdict needs.
    more: str = ""
    verdict: ShownVerdict | None = None
    mark: str = ""
    # The verdict as its metric names it, or the outcome.
    word: str = ""
    # The star and the wave that follow the figure.
    notes: str = ""
    # Why results are not equal.
    reason: str = ""

    @property
    def style(self) -> str:
        """The name of its colour on a page."""
        return (self.verdict or self.word).replace(" ", "-")


@dataclass(frozen=True)
class CaseRow:
    """A case, or a pair of cases: its name, the time of its baseline, and what there is for each target."""

    name: str
    time_ms: float | None
    arms: Mapping[Target, ArmResult]
    comparisons: Mapping[Target, Comparison]
    # Whether the calls of the baseline get slower or quicker to the end.
    drifts: bool = False
    # How the figure of an arm is printed, which is a time unless the row is of another metric.
    show: Callable[[float], str] = format_time
    metric: Metric = "time"

    @property
    def label(self) -> str:
        """The label of the case."""
        return next((arm.case.label for arm in self.arms.values()), "")

    @property
    def time(self) -> str:
        """The time of the baseline, with the wave if its calls do not settle."""
        return "" if self.time_ms is None else f"{f'{WAVE} ' if self.drifts else ''}{self.show(self.time_ms)}"

    def has(self, target: Target) -> bool:
        return target in self.comparisons or target in self.arms

    def cell(self, target: Target) -> CaseCell:
        comparison, arm = self.comparisons.get(target), self.arms.get(target)
        figure, more = show_figures(comparison) if comparison else ("", "")
        if comparison and figure:
            verdict = comparison.shown_verdict
            return CaseCell(
                figure, more, verdict, mark_verdict(comparison), describe_verdict(self.metric, verdict),
                notes=(STAR if comparison.exploratory else "") + (f" {WAVE}" if arm and arm.drift else ""),
            )  # fmt: skip
        if arm and arm.outcome != "measured":
            return CaseCell(mark=OTHER_MARKS[arm.outcome], word=arm.outcome)
        # There is no ratio without a baseline.
        return CaseCell(self.show(arm.time_ms) if arm and arm.time_ms else "")

    @property
    def rank(self) -> tuple[int, float]:
        """Its place in a table: the largest difference that is decided comes first, then what is open or missing."""
        decided = [each.distance for each in self.comparisons.values() if each.verdict != "inconclusive"]
        if decided:
            return 0, -max(decided)
        is_open = any(each.estimate is not None or each.seen_ratio is not None for each in self.comparisons.values())
        return 1 if is_open else 2, 0.0


@dataclass(frozen=True)
class OutputRow:
    """A case, and how what its first and fifth calls returned differs from the baseline."""

    name: str
    label: str
    outputs: Mapping[Target, OutputComparison]
    time: str = ""
    rank: tuple[int, float] = (0, 0.0)

    def has(self, target: Target) -> bool:
        return target in self.outputs

    def cell(self, target: Target) -> CaseCell:
        output = self.outputs.get(target)
        if output is None:
            return CaseCell()
        share = show_share(output.difference) if output.difference else ""
        mark, verdict = OUTPUT_MARKS[output.verdict], LIKE_VERDICTS[output.verdict]
        return CaseCell(share, "", verdict, mark, output.verdict, reason=output.reason)


@dataclass(frozen=True, kw_only=True)
class CaseBlock:
    """A table of cases: its rows, the targets of its columns, and the mean of each."""

    id: str
    title: str
    asked: Sequence[Target]
    rows: Sequence[CaseRow | OutputRow]
    metric: Metric = "time"
    # Its figures have a separate column if any are known.
    baseline: Target | None = None
    means: Mapping[Target, MeanRatio] = field(default_factory=dict)
    # The largest differences come first, unless the user asked for another order.
    worst_first: bool = True
    # Whether a report says that it has no means.
    has_means: bool = True

    @property
    def is_inside(self) -> bool:
        """Whether it compares cases inside each target."""
        return self.baseline is None and self.metric == "time"

    @property
    def targets(self) -> list[Target]:
        return [target for target in self.asked if any(row.has(target) for row in self.rows)]

    @property
    def has_times(self) -> bool:
        return any(row.time for row in self.rows)

    @property
    def ranked(self) -> Sequence[CaseRow | OutputRow]:
        """The rows in the order of the table."""
        return sorted(self.rows, key=lambda row: row.rank) if self.worst_first else self.rows

    @property
    def mean_name(self) -> str:
        """The name of the row of means, all over the same cases, or '' if there are none."""
        return f"geometric mean of {next(iter(self.means.values())).cases} cases" if self.means else ""

    def describe_marks(self, alpha: float) -> list[str]:
        """Return what small marks, the wave and the star mean, if these rows have them."""
        small = any(comparison.size == "clear" for comparison in self._comparisons())
        notes = "".join(row.cell(target).notes for row in self.rows for target in self.targets)
        shown = "".join([notes, *(row.time for row in self.rows)])
        meanings = {
            WAVE: "not settled: its calls do not reach a steady state",
            STAR: f"exploratory: measured after the error of {alpha * 100:g} % was spent; a new run can confirm it",
        }
        marks = [f"{mark} {meaning}" for mark, meaning in meanings.items() if mark in shown]
        return [ABOUT_SMALL_MARKS, *marks] if small else marks

    def describe_means(self) -> list[str]:
        """Return which rounds the means are of, if cases have others as well, or why there are no means."""
        if not self.has_means:
            return []
        # The steps of a program are no separate case.
        sure = [each for each in self._comparisons() if each.ci_low is not None and each.pair.metric == self.metric]
        if not self.means:
            return [NO_MEAN] if len({each.pair.arms[1].case for each in sure}) > 1 else []
        fewest, most = (find(mean.rounds for mean in self.means.values()) for find in (min, max))
        if all(comparison.rounds <= fewest for comparison in sure):
            return []
        counts = str(fewest) if fewest == most else f"{fewest} to {most}"
        if fewest < FEWEST_ROUNDS:
            return [f"means: some cases have only {counts} rounds"]
        return [f"means are of {counts} common rounds"]

    def _comparisons(self) -> list[Comparison]:
        return [each for row in self.rows if isinstance(row, CaseRow) for each in row.comparisons.values()]


def block_of_cases(evaluation: Evaluation, arrangement: Arrangement) -> CaseBlock:
    """Return the table of the cases that are compared across targets; the steps of a program are a separate row."""
    baseline, *others = evaluation.plan.targets
    comparisons = by_candidate(each for each in evaluation.comparisons if each.pair.metric == "time")
    arms = arrangement.arms(evaluation)
    steps = _rows(evaluation, as_arms_of_steps(arms), comparisons_of_steps(evaluation))
    return CaseBlock(
        id="across",
        title=describe_baseline(evaluation.plan),
        asked=others,
        rows=[
            *_rows(evaluation, arms, comparisons),
            *(replace(row, name=f"{row.name}, {MEASURES['step']}") for row in steps),
        ],
        baseline=baseline,
        means={} if arrangement.only else find_means_of(evaluation, "time"),
        worst_first=arrangement.sort == Arrangement.sort,
    )


def describe_baseline(plan: Plan) -> str:
    """Return what the targets of the main table are compared with."""
    return "each against the one before" if find_pairing(plan) == "neighbours" else f"against {plan.targets[0]}"


def further_blocks(evaluation: Evaluation, arrangement: Arrangement) -> list[CaseBlock]:
    """Return a table for each further target that others are compared with, as `--pairs all` asks for."""
    arms, blocks = arrangement.arms(evaluation), []
    for number, baseline in enumerate(find_further_baselines(evaluation.plan), 1):
        own = {
            each.pair.arms[1]: each
            for each in evaluation.comparisons
            if each.pair.across and each.pair.arms[0].target == baseline
        }
        candidates = [target for target in evaluation.plan.targets if any(arm.target == target for arm in own)]
        of_block = [arm for arm in arms if arm.target in (baseline, *candidates)]
        blocks.append(
            CaseBlock(
                id=f"across-{number}",
                title=f"against {baseline}",
                asked=candidates,
                rows=_rows(evaluation, of_block, own, baseline),
                baseline=baseline,
                worst_first=arrangement.sort == Arrangement.sort,
                has_means=False,
            )
        )
    return blocks


def block_of_pairs(evaluation: Evaluation, arrangement: Arrangement) -> CaseBlock:
    """Return the table of the pairs of cases that are compared inside targets."""
    own = [each for each in arrangement.inside(evaluation) if isinstance(each.pair, CasePair)]
    name_of = make_pair_namer(own)
    arms = {arm.key: arm for arm in evaluation.arms}
    rows: dict[str, dict[Target, Comparison]] = {}
    for each in own:
        rows.setdefault(name_of(each), {})[each.pair.arms[1].target] = each
    return CaseBlock(
        id="between",
        title="inside each target",
        asked=evaluation.plan.targets,
        rows=[
            CaseRow(name, None, {target: arms[each.pair.arms[1]] for target, each in of_row.items()}, of_row)
            for name, of_row in rows.items()
        ],
        worst_first=arrangement.sort == Arrangement.sort,
    )


def block_of_metric(evaluation: Evaluation, metric: Metric) -> CaseBlock:
    """Return the table of the cases that have a figure of this metric, which is compared in addition to times."""
    baseline, *others = evaluation.plan.targets
    spec = METRICS[metric]
    comparisons = {
        each.pair.arms[1]: each for each in of_main_table(evaluation.plan, evaluation.metrics.get(metric, ()))
    }
    compared = {arm.case for arm in comparisons}
    known = {arm.case.label for arm in evaluation.arms if metric in arm.figures}
    arms = [
        replace(arm, figures={"time": arm.figures[metric]} if metric in arm.figures else {}, drift=None)
        for arm in evaluation.arms
        if arm.case.label in compared & known
    ]
    name = spec.about if spec.of_targets else ""
    return CaseBlock(
        id=spec.name,
        title=f"{spec.about}, {describe_baseline(evaluation.plan)}",
        asked=others,
        rows=[
            replace(row, name=name or row.name, show=spec.show, metric=metric)
            for row in _rows(evaluation, arms, comparisons)
        ],
        metric=metric,
        baseline=baseline,
        means=find_means_of(evaluation, metric),
    )


def block_of_results(evaluation: Evaluation) -> CaseBlock:
    """Return the table of what the first and the fifth calls returned."""
    names = short_names(arm.case for arm in evaluation.arms)
    outputs: dict[str, dict[Target, OutputComparison]] = {}
    for each in outputs_of_main_table(evaluation):
        outputs.setdefault(each.case.label, {})[each.candidate] = each
    rows = [OutputRow(names[label], label, of_case) for label, of_case in outputs.items()]
    return CaseBlock(
        id="results",
        title=f"results of the first and fifth calls, {describe_baseline(evaluation.plan)}",
        asked=evaluation.plan.targets[1:],
        rows=rows,
    )


def of_main_table(plan: Plan, comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Return the comparisons of each target with what the main table compares it with; all, if a plan has claims."""
    main = find_baselines(plan)
    return [
        each for each in comparisons if plan.claims or (pair := each.pair.arms)[0].target == main.get(pair[1].target)
    ]


def outputs_of_main_table(evaluation: Evaluation) -> list[OutputComparison]:
    """Return the comparisons of results that the main table shows, chosen as `of_main_table` does."""
    plan, main = evaluation.plan, find_baselines(evaluation.plan)
    return [each for each in evaluation.outputs if plan.claims or each.baseline == main.get(each.candidate)]


def find_means_of(evaluation: Evaluation, metric: Metric) -> dict[Target, MeanRatio]:
    """Return the mean of a metric for each target that has one."""
    return {mean.candidate: mean for mean in evaluation.means if mean.metric == metric}


def _rows(
    evaluation: Evaluation,
    arms: Iterable[ArmResult],
    comparisons: Mapping[ArmKey, Comparison],
    baseline: Target | None = None,
) -> list[CaseRow]:
    names = short_names(arm.case for arm in evaluation.arms)
    rows: dict[str, dict[Target, ArmResult]] = {}
    for arm in arms:
        rows.setdefault(arm.case.label, {})[arm.target] = arm
    baseline = baseline or evaluation.plan.targets[0]
    return [
        CaseRow(
            names[label],
            of_case[baseline].time_ms if baseline in of_case else None,
            of_case,
            {target: comparisons[arm.key] for target, arm in of_case.items() if arm.key in comparisons},
            drifts=baseline in of_case and bool(of_case[baseline].drift),
        )
        for label, of_case in rows.items()
    ]
