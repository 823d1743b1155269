"""The last rows of the table of cases: the mean of all cases, the other metrics, and the results of calls."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.metrics import METRICS, find_margin
from orchestrator.metrics.spec import MetricSpec, find_figure
from orchestrator.model import (
    Comparison,
    Evaluation,
    MeanRatio,
    Metric,
    OutputComparison,
    OutputVerdict,
    Target,
    VerdictName,
)
from orchestrator.reports.case_rows import (
    LIKE_VERDICTS,
    OUTPUT_MARKS,
    CaseCell,
    CaseRow,
    find_means_of,
    of_main_table,
    outputs_of_main_table,
)
from orchestrator.reports.columns import MARKS, SMALL_MARKS, format_estimate, format_interval, mark_verdict
from orchestrator.reports.magnitudes import show_estimate, show_figures


@dataclass(frozen=True)
class ClosingRow:
    """A row about all cases: its name, the baseline's figure if there is only one, and a cell for each target."""

    name: str
    cells: Mapping[Target, CaseCell]
    time: str = ""

    def cell(self, target: Target) -> CaseCell:
        return self.cells.get(target, CaseCell())


def closing_rows(evaluation: Evaluation, rows: Iterable[CaseRow]) -> list[ClosingRow]:
    """Return the rows that follow those of the cases."""
    times = mean_row(evaluation, "time", [each for row in rows for each in row.comparisons.values()])
    metrics = [
        _metric_row(evaluation, metric, of_main_table(evaluation.plan, own))
        for metric, own in evaluation.metrics.items()
    ]
    results = [ClosingRow("results", {target: _outputs_cell(own) for target, own in _outputs(evaluation).items()})]
    return [row for row in (times, *metrics, *results) if row.cells]


def mean_row(evaluation: Evaluation, metric: Metric, comparisons: Sequence[Comparison]) -> ClosingRow:
    """Return the row of the means of a metric, which has no cells if there are none."""
    means, margin = find_means_of(evaluation, metric), find_margin(evaluation.plan, metric)
    cells = {
        target: _mean_cell(mean, margin, [each for each in comparisons if _target(each) == target])
        for target, mean in means.items()
    }
    return ClosingRow(f"mean of {next(iter(means.values())).cases} cases" if means else "", cells)


def _mean_cell(mean: MeanRatio, margin: float, comparisons: Iterable[Comparison]) -> CaseCell:
    """Return a mean, marked if its interval excludes 1 and one of its cases has the same verdict in the report."""
    verdicts = {each.report_verdict for each in comparisons}
    verdict: VerdictName | None = "slower" if mean.ci_low > 1 else "faster" if mean.ci_high < 1 else None
    figure, more = format_estimate(mean), format_interval(mean)
    if verdict not in verdicts or verdict is None:
        return CaseCell(figure, more)
    is_beyond = mean.ci_low > 1 + margin or mean.ci_high < 1 / (1 + margin)
    return CaseCell(figure, more, verdict, (MARKS if is_beyond else SMALL_MARKS)[verdict])


def _metric_row(evaluation: Evaluation, metric: Metric, comparisons: Iterable[Comparison]) -> ClosingRow:
    spec, means = METRICS[metric], find_means_of(evaluation, metric)
    by_target: dict[Target, list[Comparison]] = {}
    for each in comparisons:
        if each.estimate is not None or each.seen_ratio is not None:
            by_target.setdefault(_target(each), []).append(each)
    cells = {target: _metric_cell(spec, own, means.get(target)) for target, own in by_target.items()}
    time, alone = "", [own[0] for own in by_target.values() if len(own) == 1]
    if len(alone) == len(by_target) > 0 and len({each.pair.arms[0] for each in alone}) == 1:
        figure = find_figure(spec, evaluation.arms, alone[0].pair.arms[0])
        time = "" if figure is None else spec.show(figure)
    of = f", mean of {next(iter(means.values())).cases}" if means else ""
    return ClosingRow(f"{spec.about}{of}", cells, time)


def _metric_cell(spec: MetricSpec, own: Sequence[Comparison], mean: MeanRatio | None) -> CaseCell:
    """Return the cell of a metric for all cases of a target, with the mark of most of the changed cases, if any."""
    if len(own) == 1:
        return CaseCell(*show_figures(own[0]), own[0].shown_verdict, mark_verdict(own[0]))
    counts = Counter(each.report_verdict for each in own)
    lead: VerdictName = max(("slower", "faster"), key=lambda verdict: counts[verdict])
    if not counts[lead]:
        lead = "same" if counts["same"] else "inconclusive"
    of = f"in {counts[lead]} of {len(own)}"
    if lead == "slower" and counts["faster"]:
        of = f"{MARKS[lead]}{counts[lead]} {MARKS['faster']}{counts['faster']} of {len(own)}"
    is_whole = counts[lead] == len(own)
    if mean and not (lead == "slower" and mean.ratio <= 1) and not (lead == "faster" and mean.ratio >= 1):
        return CaseCell(format_estimate(mean), format_interval(mean) if is_whole else of, lead, MARKS[lead])
    if lead in ("slower", "faster"):
        worst = max((each for each in own if each.report_verdict == lead), key=lambda each: each.distance)
        bound = "up to" if lead == "slower" else "down to"
        return CaseCell(f"{bound} {show_estimate(worst, spec.name)}", of, lead, MARKS[lead])
    return CaseCell("", of, lead, MARKS[lead])


def _outputs(evaluation: Evaluation) -> Mapping[Target, Sequence[OutputComparison]]:
    by_target: dict[Target, list[OutputComparison]] = {}
    for each in outputs_of_main_table(evaluation):
        by_target.setdefault(each.candidate, []).append(each)
    return by_target


def _outputs_cell(outputs: Sequence[OutputComparison]) -> CaseCell:
    """Return the worst verdict on results; if some cannot be compared, also return how many can."""
    counts = Counter(each.verdict for each in outputs)
    compared = len(outputs) - counts["not comparable"]
    verdict: OutputVerdict = "not comparable"
    if compared:
        verdict = next(each for each in ("differs", "equal within tolerance", "equal") if counts[each])
    words = {"differs": "differ", "equal within tolerance": "within tolerance"}.get(verdict, verdict)
    figure = ""
    if verdict == "differs":
        figure = f"{counts[verdict]} of {len(outputs)}"
    elif compared and compared < len(outputs):
        figure = f"{compared} of {len(outputs)}"
    return CaseCell(figure, words, LIKE_VERDICTS[verdict], OUTPUT_MARKS[verdict])


def _target(comparison: Comparison) -> Target:
    return comparison.pair.arms[1].target
