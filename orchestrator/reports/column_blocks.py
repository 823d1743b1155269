"""Tables in pieces: columns that are read together stay together, next to other pieces or, if too wide, below them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from orchestrator.terminal.text import safe_text


@dataclass(frozen=True, kw_only=True)
class TimeCell:
    """A time, and its comparison with another; either may be missing."""

    time: str = ""
    ratio: str = ""
    interval: str = ""
    percent: str = ""
    mark: str = ""
    style: StyleType = ""


@dataclass(frozen=True)
class TargetCells:
    """The cells of one version, one per row."""

    target: str
    cells: tuple[TimeCell, ...]


@dataclass(frozen=True)
class ColumnBlock:
    """Parts that are read together, and the lead that they are compared with."""

    title: str
    lead: tuple[TargetCells, ...]
    parts: tuple[TargetCells, ...]


@dataclass(frozen=True)
class RowNames:
    """The names of the rows: two words each, the first of which is shown only where it changes."""

    headers: tuple[str, str]
    names: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class BlockColumn:
    header: tuple[str, ...]
    cells: tuple[Text, ...]
    justify: JustifyMethod = "right"
    # Only names may wrap, because a squeezed figure would lose digits and look like another.
    wraps: bool = False
    # A piece has this many blanks before it, in addition to the one between any two columns.
    gap: int = 0

    @property
    def width(self) -> int:
        lines = [line for text in (*map(safe_text, self.header), *self.cells) for line in str(text).split("\n")]
        return self.gap + max(map(cell_len, lines))


Form = Callable[[TargetCells], list[BlockColumn]]


def flat(part: TargetCells) -> list[BlockColumn]:
    """Return the columns of a part with one line per row."""
    columns = [
        ("time", [safe_text(cell.time) for cell in part.cells]),
        ("ratio", [Text(cell.ratio) for cell in part.cells]),
        ("interval", [Text(cell.interval) for cell in part.cells]),
        ("%", _percents(part)),
    ]
    filled = [(header, cells) for header, cells in columns if any(cells)]
    return [
        BlockColumn(("", "" if index else part.target, header), tuple(cells), "left" if header == "%" else "right")
        for index, (header, cells) in enumerate(filled)
    ]


def stack_columns(part: TargetCells) -> list[BlockColumn]:
    """Return the columns of a part with two lines per row: time and percentage, and below them ratio and interval."""
    compared = any(cell.mark for cell in part.cells)
    times = tuple(safe_text(cell.time).append(f"\n{cell.ratio}") for cell in part.cells)
    columns = [BlockColumn(("", part.target, "ratio" if compared else ""), times)]
    if compared:
        pairs = zip(_percents(part), part.cells, strict=True)
        percents = tuple(Text("\n").join((percent, Text(cell.interval))) for percent, cell in pairs)
        columns.append(BlockColumn(("", "%", "interval"), percents, "left"))
    return columns


def arrange_blocks(rows: RowNames, pieces: Iterable[ColumnBlock], form: Form, width: int) -> list[list[BlockColumn]]:
    """Return the columns of as many tables as needed, each with the names of the rows."""
    names = _names(rows, 2 if form is stack_columns else 1)
    tables: list[list[BlockColumn]] = []
    for wide_block in pieces:
        for block in _narrow(wide_block, form, width - _width(names) - 1):
            columns = _columns(block, form)
            if tables and _width([*tables[-1], *columns]) <= width:
                tables[-1] += columns
            else:
                tables.append([*names, *columns])
    return tables


def fits(line: Iterable[BlockColumn], width: int) -> bool:
    return _width(line) <= width


def draw_block_table(rows: RowNames, columns: Sequence[BlockColumn]) -> Table:
    # The box puts one blank between columns.
    grid = Table(box=SIMPLE_HEAD, show_edge=False, padding=0)
    for column in columns:
        header = Text("\n").join(map(safe_text, column.header))
        least = None if column.wraps else column.width
        grid.add_column(header, justify=column.justify, no_wrap=not column.wraps, overflow="fold", min_width=least)
    for index, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if index and rows.names[index][0] != rows.names[index - 1][0]:
            grid.add_section()
        grid.add_row(*cells)
    return grid


def _names(rows: RowNames, height: int) -> list[BlockColumn]:
    firsts = [first for first, _ in rows.names]
    once = ["" if index and first == firsts[index - 1] else first for index, first in enumerate(firsts)]
    below = "\n" * (height - 1)
    return [
        BlockColumn(("", "", header), tuple(safe_text(name).append(below) for name in named), "left", wraps=True)
        for header, named in zip(rows.headers, (once, [second for _, second in rows.names]), strict=True)
    ]


def _narrow(piece: ColumnBlock, form: Form, width: int) -> list[ColumnBlock]:
    """Split a piece that is too wide for a separate table: part by part, and finally without the lead."""
    if fits(_columns(piece, form), width):
        return [piece]
    if len(piece.parts) > 1:
        single_parts = (replace(piece, parts=(part,)) for part in piece.parts)
        return [narrow for part in single_parts for narrow in _narrow(part, form, width)]
    return [replace(piece, parts=()), replace(piece, lead=())] if piece.lead and piece.parts else [piece]


def _columns(piece: ColumnBlock, form: Form) -> list[BlockColumn]:
    """Return the columns of a piece, with its title above the first."""
    first, *others = [column for part in (*piece.lead, *piece.parts) for column in form(part)]
    return [replace(first, header=(piece.title, *first.header[1:]), gap=1), *others]


def _width(columns: Iterable[BlockColumn]) -> int:
    return sum(column.width + 1 for column in columns) - 1


def _percents(part: TargetCells) -> list[Text]:
    """Return the percentages with their marks, aligned so that figures end and marks begin below each other."""
    longest = max(len(cell.percent) for cell in part.cells)
    return [
        Text(f"{cell.percent:>{longest}} {cell.mark}", style=cell.style) if cell.mark else Text() for cell in part.cells
    ]
