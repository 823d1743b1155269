"""The page's first tables: a row per case, a column per version, worst first, with links to the details."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from orchestrator.metrics import METRICS, describe_verdict
from orchestrator.model import Evaluation, Metric, OutputComparison, Target
from orchestrator.reports import matrix
from orchestrator.reports.case_names import short_names
from orchestrator.reports.columns import describe_rounds_so_far, format_ratio, ratio
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.html.escape import escape_value
from orchestrator.reports.html.rows import VERDICTS, Verdict, format_ends_with_dash, verdict_by
from orchestrator.reports.magnitudes import show_estimate
from orchestrator.reports.metrics import LIKE_VERDICTS, OUTPUT_MARKS, outputs_by_case
from orchestrator.results.sketches import show_share


@dataclass(frozen=True)
class MatrixCell:
    """What a version has for a case: a verdict with its ratio, or a word."""

    text: str = ""
    interval: str = ""
    verdict: Verdict | None = None


@dataclass(frozen=True)
class MatrixRow:
    name: str
    anchor: str
    time: str
    cells: tuple[MatrixCell, ...]


@dataclass(frozen=True)
class MatrixGroup:
    title: str
    mark: str
    style: str
    rows: tuple[MatrixRow, ...]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """A table; `baseline` is the version whose times it shows, or '' without any."""

    id: str
    title: str
    baseline: str
    targets: tuple[str, ...]
    groups: tuple[MatrixGroup, ...]
    # The name of the row of means, or '' without any.
    mean: str = ""
    means: tuple[str, ...] = ()
    # What the marks of its figures mean.
    marks: tuple[str, ...] = ()


def build_matrices(evaluation: Evaluation, anchors: dict[str, str]) -> list[Matrix]:
    """Return the matrix across versions and the one inside versions, each if there is anything to compare.

    Other metrics follow in which something changed, and results if some differ.
    """
    baseline, *others = evaluation.plan.targets
    across = matrix.across_targets(evaluation, Arrangement())
    inside = matrix.inside_targets(evaluation, Arrangement())
    matrices = []
    if others and across:
        rows = [*across, *matrix.rows_of_steps(evaluation, Arrangement())]
        shown = _build(evaluation, rows, others, anchors, id="across", title=f"Against {baseline}")
        matrices.append(_add_means(shown, evaluation, across))
    targets = [target for target in evaluation.plan.targets if any(target in row.comparisons for row in inside)]
    if targets:
        matrices.append(_build(evaluation, inside, targets, anchors, id="between", title="Inside each target"))
    for metric, comparisons in evaluation.metrics.items():
        if any(comparison.verdict in ("slower", "faster") for comparison in comparisons):
            spec, own = METRICS[metric], matrix.rows_of_metric(evaluation, metric)
            title = f"{spec.about[0].upper()}{spec.about[1:]}, against {baseline}"
            shown = _build(evaluation, own, others, anchors, metric, id=spec.name, title=title)
            matrices.append(_add_means(shown, evaluation, own, metric))
    if any(output.verdict == "differs" for output in evaluation.outputs):
        matrices.append(_results(evaluation, others, anchors))
    return matrices


def _build(
    evaluation: Evaluation,
    rows: Sequence[matrix.CaseRow],
    targets: Sequence[Target],
    anchors: dict[str, str],
    metric: Metric = "time",
    *,
    id: str,
    title: str,
) -> Matrix:
    return Matrix(
        id=id,
        title=escape_value(title),
        baseline="",
        targets=tuple(map(escape_value, targets)),
        groups=tuple(_groups(rows, targets, anchors, metric)),
        marks=tuple(map(escape_value, matrix.describe_marks(rows, evaluation.plan.alpha))),
    )


def _add_means(
    shown: Matrix, evaluation: Evaluation, rows: Sequence[matrix.CaseRow], metric: Metric = "time"
) -> Matrix:
    """Add the baseline's column and the means to a table across versions."""
    baseline, *targets = evaluation.plan.targets
    means = matrix.means_of(evaluation, metric)
    return replace(
        shown,
        baseline=escape_value(baseline),
        mean=matrix.name_means(means) if means else "",
        means=tuple(format_ratio(means[each]).replace("-", "–") if each in means else "" for each in targets),
        marks=(*shown.marks, *matrix.describe_means(rows, means)),
    )


def _results(evaluation: Evaluation, targets: Sequence[Target], anchors: dict[str, str]) -> Matrix:
    """Return what the first and the fifth calls returned, in a single group."""
    names = short_names(arm.case for arm in evaluation.arms)
    rows = tuple(
        MatrixRow(
            name=escape_value(names[label]),
            anchor=anchors.get(label, ""),
            time="",
            cells=tuple(_output_cell(of_case.get(target)) for target in targets),
        )
        for label, of_case in outputs_by_case(evaluation).items()
    )
    group = MatrixGroup("first and fifth calls", "", "", rows)
    return Matrix(
        id="results",
        title=f"Results, against {escape_value(evaluation.plan.targets[0])}",
        baseline="",
        targets=tuple(map(escape_value, targets)),
        groups=(group,),
    )


def _output_cell(output: OutputComparison | None) -> MatrixCell:
    if output is None:
        return MatrixCell()
    alike = VERDICTS[LIKE_VERDICTS[output.verdict]]
    verdict = replace(alike, mark=OUTPUT_MARKS[output.verdict], shown=output.verdict)
    return MatrixCell(show_share(output.difference) if output.difference else output.verdict, verdict=verdict)


def _groups(
    rows: Sequence[matrix.CaseRow], targets: Iterable[Target], anchors: dict[str, str], metric: Metric
) -> Iterator[MatrixGroup]:
    columns = tuple(targets)
    for group in matrix.group_rows(rows, worst_first=True):
        style = "" if group.verdict is None else group.verdict.replace(" ", "-")
        title = describe_verdict(metric, group.title)
        yield MatrixGroup(title, group.mark, style, tuple(_row(row, columns, anchors, metric) for row in group.rows))


def _row(row: matrix.CaseRow, targets: Iterable[Target], anchors: dict[str, str], metric: Metric) -> MatrixRow:
    label = next((arm.case.label for arm in row.arms.values()), "")
    return MatrixRow(
        name=escape_value(row.name),
        anchor=anchors.get(label, ""),
        time=row.time,
        cells=tuple(_cell(row, target, metric) for target in targets),
    )


def _cell(row: matrix.CaseRow, target: Target, metric: Metric) -> MatrixCell:
    comparison, arm = row.comparisons.get(target), row.arms.get(target)
    if comparison is not None and comparison.missing and comparison.seen_ratio is not None:
        figure = f"{ratio(comparison.seen_ratio)}{row.mark(target)}"
        return MatrixCell(figure, describe_rounds_so_far(comparison), verdict_by(metric, comparison.shown_verdict))
    if comparison is not None and comparison.estimate is not None:
        figure = f"{show_estimate(comparison, metric)}{row.mark(target)}"
        return MatrixCell(
            figure, format_ends_with_dash(comparison, metric), verdict_by(metric, comparison.shown_verdict)
        )
    if arm is not None and arm.outcome != "measured":
        return MatrixCell(arm.outcome, verdict=VERDICTS[arm.outcome])
    return MatrixCell()
