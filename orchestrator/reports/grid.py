"""A table without frames, drawn line by line, because rich's own takes seconds for thousands of rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from orchestrator.terminal.text import escape_unprintable, safe_text

RULE = "─"
# A name breaks between words, and inside a word only if the word is longer than this.
WIDEST_WORD = 24


@dataclass
class Grid:
    """A table whose first column holds names, and the others figures.

    Only names may wrap, down to a given width. Figures are never squeezed, because one without its last digits would
    look like another. A cell has a single style.
    """

    title: Text
    headers: Sequence[str]
    right: Sequence[bool]
    narrowest: int
    rows: list[Sequence[str | Text] | None] = field(default_factory=list)

    def add(self, *cells: str | Text) -> None:
        self.rows.append([escape_unprintable(cell) if isinstance(cell, str) else cell for cell in cells])

    def end_section(self) -> None:
        """Leave an empty line before the next row, if there is one."""
        if self.rows and self.rows[-1] is not None:
            self.rows.append(None)

    @property
    def least_width(self) -> int:
        names, *others = self.widths
        words = (word for row in self.rows if row for word in str(row[0]).split())
        longest = min(max(map(cell_len, words), default=0), WIDEST_WORD)
        return 1 + min(names, max(self.narrowest, longest)) + sum(width + 2 for width in others)

    @property
    def full_width(self) -> int:
        """The width of the table if no name wraps."""
        names, *others = self.widths
        return 1 + names + sum(width + 2 for width in others)

    @property
    def widths(self) -> list[int]:
        """The widths of the columns if there were room for everything."""
        widths = [_width(escape_unprintable(header)) for header in self.headers]
        for row in self.rows:
            for index, cell in enumerate(row or ()):
                widths[index] = max(widths[index], _width(cell))
        return widths

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.title
        names, *others = self.widths
        room = options.max_width - 1 - sum(width + 2 for width in others)
        widths = [min(names, max(room, 1)), *others]
        headers = [safe_text(header, style="bold") for header in self.headers]
        for line in _flowing([headers], widths[0]):
            yield from self._line(console, line, widths)
        yield Segment(f" {RULE * (sum(widths) + 2 * len(others))}\n")
        last = len(self.rows) - (1 if self.rows and self.rows[-1] is None else 0)
        for row in _flowing(self.rows[:last], widths[0]):
            yield from self._line(console, row, widths)

    def _line(self, console: Console, cells: Sequence[str | Text], widths: Sequence[int]) -> Iterator[Segment]:
        """Yield the segments of one line.

        Neighbours without a style become one segment, because each segment takes time.
        """
        pending = " "
        for index, (cell, width) in enumerate(zip(cells, widths, strict=False)):
            blank = " " * (width - _width(cell))
            if index:
                pending += "  "
            if self.right[index]:
                pending += blank
            if isinstance(cell, str):
                pending += cell
            elif not cell.style:
                pending += cell.plain
            elif cell:
                yield Segment(pending)
                yield Segment(cell.plain, console.get_style(cell.style))
                pending = ""
            if not self.right[index]:
                pending += blank
        yield Segment(f"{pending.rstrip()}\n")


def format_title(name: str, params: str) -> Text:
    """Return the title of a table: a workload or the like, and the parameters that its rows share."""
    return safe_text(name, style="bold").append_text(safe_text(f"  {params}" if params else "", style="not bold dim"))


def _flowing(rows: Iterable[Sequence[str | Text] | None], width: int) -> Iterator[Sequence[str | Text]]:
    """Yield the lines of the rows.

    The rest of a name that does not fit continues next to the following rows that have no name.
    """
    rest: list[Text] = []
    for row in rows:
        if row is None or row[0]:
            yield from ([part] for part in rest)
            rest = []
        if row is None:
            yield []
        elif _width(row[0]) > width:
            style = row[0].style if isinstance(row[0], Text) else ""
            first, *rest = (Text(part, style) for part in _fold(str(row[0]), width))
            yield [first, *row[1:]]
        elif rest:
            yield [rest.pop(0), *row[1:]]
        else:
            yield row
    yield from ([part] for part in rest)


def _width(cell: str | Text) -> int:
    text = cell if isinstance(cell, str) else cell.plain
    return len(text) if text.isascii() else cell_len(text)


def _fold(text: str, width: int) -> list[str]:
    """Fold text at spaces if it has any, and anywhere else if not; every line keeps the indentation."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    if indent and width > len(indent):
        return [indent + line for line in _fold(text.lstrip(" "), width - len(indent))]
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(joined) <= width:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        while cell_len(word) > width:
            head = set_cell_size(word, width).rstrip(" ") or word[:1]
            lines[-1] = head
            lines.append("")
            word = word[len(head) :]
        lines[-1] = word
    return lines if lines[-1] else lines[:-1]
