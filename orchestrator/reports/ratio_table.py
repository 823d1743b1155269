"""A table whose rows have a ratio each, drawn as a plot between the columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.text import Text

from orchestrator.model import ShownVerdict
from orchestrator.reports.columns import STYLES
from orchestrator.reports.grid import Grid
from orchestrator.reports.ratio_plot import FEWEST_CELLS, RatioScale, Span, cells_for

Row = TypeVar("Row")

# The first column may wrap down to this width.
NARROWEST = 8


@dataclass(frozen=True, kw_only=True)
class RatioColumn(Generic[Row]):
    """A column of text; `since` is the terminal width from which it is shown."""

    header: str
    cell: Callable[[Row], str | Text]
    right: bool = False
    since: int = 0


@dataclass(frozen=True)
class RatioPoint:
    """The ratio of a row with its interval; the verdict chooses the mark and the colour."""

    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    verdict: ShownVerdict | None = None

    @property
    def span(self) -> Span:
        return self.ratio, self.ci_low, self.ci_high


def ratio_table(
    title: Text,
    rows: Sequence[Row],
    width: int,
    *,
    before: Sequence[RatioColumn[Row]],
    point: Callable[[Row], RatioPoint],
    after: Sequence[RatioColumn[Row]],
    also: Sequence[Span] = (),
) -> Grid:
    """Return a table in which the plot of every row's point has the room that the other columns leave.

    `before` and `after` are the columns to the left and to the right of the plot, which is left out if no row has a
    ratio. The scale also has room for the ratios in `also`, which have no row.
    """
    before, after = ([column for column in columns if width >= column.since] for columns in (before, after))
    points = [point(row) for row in rows]
    # Long names take the room of columns that narrow terminals do without.
    while True:
        columns = [*before, *after]
        cells = [[column.cell(row) for column in columns] for row in rows]
        widths = [
            max(len(column.header), *(len(str(cell)) for cell in of_column))
            for column, of_column in zip(columns, zip(*cells, strict=True), strict=True)
        ]
        least = max(columns, key=lambda column: column.since)
        if not least.since or sum(widths) + FEWEST_CELLS + 2 * len(widths) < width:
            break
        before, after = ([column for column in each if column is not least] for each in (before, after))
    if not any(row_point.ratio for row_point in points):
        plain = Grid(
            title=title,
            headers=[column.header for column in columns],
            right=[column.right for column in columns],
            narrowest=NARROWEST,
        )
        for row_cells in cells:
            plain.add(*row_cells)
        return plain
    scale = RatioScale.over([*(row_point.span for row_point in points), *also], cells_for(width, widths))
    split = len(before)
    grid = Grid(
        title=title,
        headers=[*(column.header for column in before), scale.header(), *(column.header for column in after)],
        right=[*(column.right for column in before), False, *(column.right for column in after)],
        narrowest=NARROWEST,
    )
    for row_point, row_cells in zip(points, cells, strict=True):
        grid.add(*row_cells[:split], _draw(row_point, scale), *row_cells[split:])
    return grid


def _draw(point: RatioPoint, scale: RatioScale) -> Text:
    return Text(scale.line(*point.span, point.verdict), style=STYLES[point.verdict] if point.verdict else "")
