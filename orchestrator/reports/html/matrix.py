"""The page's first table: a row per case, a column per version, worst first, with links to the details."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from orchestrator.model import Comparison, Contrast, Target
from orchestrator.reports import matrix
from orchestrator.reports.columns import format_ratio, interval, ratio
from orchestrator.reports.filter_sort import Arrangement
from orchestrator.reports.html.escape import escape_value
from orchestrator.reports.html.rows import VERDICTS, Verdict
from orchestrator.terminal.durations import format_time


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
    versions: tuple[str, ...]
    groups: tuple[MatrixGroup, ...]
    means: tuple[str, ...] = ()


def build_matrices(comparison: Comparison, anchors: dict[str, str]) -> list[Matrix]:
    """Return the matrix across versions and the one inside versions, each if there is anything to compare."""
    baseline, *others = comparison.plan.versions
    across = matrix.across_versions(comparison, Arrangement())
    rows = [*across, *matrix.rows_of_steps(comparison, Arrangement())]
    inside = matrix.inside_versions(comparison, Arrangement())
    means = matrix.mean_ratios(across, others)
    matrices = []
    if others and across:
        matrices.append(
            Matrix(
                id="across",
                title=f"Against {escape_value(baseline)}",
                baseline=escape_value(baseline),
                versions=tuple(map(escape_value, others)),
                groups=tuple(_groups(rows, others, anchors)),
                means=tuple(format_ratio(means[version]) if version in means else "" for version in others),
            )
        )
    versions = [version for version in comparison.plan.versions if any(version in row.contrasts for row in inside)]
    if versions:
        matrices.append(
            Matrix(
                id="between",
                title="Inside each version",
                baseline="",
                versions=tuple(map(escape_value, versions)),
                groups=tuple(_groups(inside, versions, anchors)),
            )
        )
    return matrices


def _groups(
    rows: Sequence[matrix.CaseRow], versions: Iterable[Target], anchors: dict[str, str]
) -> Iterator[MatrixGroup]:
    columns = tuple(versions)
    for group in matrix.group_rows(rows, worst_first=True):
        style = "" if group.verdict is None else group.verdict.replace(" ", "-")
        yield MatrixGroup(group.title, group.mark, style, tuple(_row(row, columns, anchors) for row in group.rows))


def _row(row: matrix.CaseRow, versions: Iterable[Target], anchors: dict[str, str]) -> MatrixRow:
    label = next((arm.case.label for arm in row.arms.values()), "")
    return MatrixRow(
        name=escape_value(row.name),
        anchor=anchors.get(label, ""),
        time="" if row.time_ms is None else format_time(row.time_ms),
        cells=tuple(_cell(row, version) for version in versions),
    )


def _cell(row: matrix.CaseRow, version: Target) -> MatrixCell:
    contrast, arm = row.contrasts.get(version), row.arms.get(version)
    if contrast is not None and contrast.ratio is not None:
        return MatrixCell(ratio(contrast.ratio), _interval(contrast), VERDICTS[contrast.shown_verdict])
    if arm is not None and arm.outcome != "measured":
        return MatrixCell(arm.outcome, verdict=VERDICTS[arm.outcome])
    return MatrixCell()


def _interval(contrast: Contrast) -> str:
    return interval(contrast).replace("-", "–")
