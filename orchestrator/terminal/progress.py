"""The display of a run in progress, always on stderr: a live table in a terminal, plain lines elsewhere."""

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from orchestrator.model import Case, Evaluation, Target
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.durations import format_minutes_seconds
from orchestrator.terminal.text import escape_lines, safe_text
from orchestrator.terminal.view import RoundDone, View

# If a look decides more comparisons than this, the others are counted and not named.
MOST_NAMED = 3
# At most this many lines are overwritten while versions are prepared.
MOST_SHOWN = 20
# Each redraw takes CPU time from the measurement.
REDRAWN_PER_S = 2
# This many lines of the screen are kept free for the text below the table.
BELOW_TABLE = 3

DrawTable = Callable[[Evaluation, int], RenderableType]


class PlainView(View):
    """A view for logs: messages, and one line per look."""

    def __init__(self, console: Console, *, verbose: bool) -> None:
        self._console = console
        self._verbose = verbose
        self._last: RoundDone | None = None

    def say(self, text: str) -> None:
        # A log keeps its lines whole; a terminal would break them inside of words.
        self._console.print(escape_lines(text), soft_wrap=not self._console.is_terminal)

    def preparing(self, version: str, text: str) -> None:
        if self._verbose:
            self.say(f"{version}: {text}")

    def round_done(self, done: RoundDone) -> None:
        self._last = done

    def look_done(self, number: int, new: Sequence[str], decided: int, comparisons: int) -> None:
        more = f"; and {len(new) - MOST_NAMED} more" if len(new) > MOST_NAMED else ""
        named = f"; new: {'; '.join(new[:MOST_NAMED])}{more}" if new else ""
        ahead = f"; {describe_remaining(self._last)}" if self._last else ""
        self.say(f"after round {number}, {decided} of {comparisons} comparisons are decided{named}{ahead}")


class AnimatedView(PlainView):
    """A view for terminals: one line per version during preparation, then a table, and below it what is measured."""

    def __init__(self, console: Console, *, verbose: bool, draw_table: DrawTable | None = None) -> None:
        super().__init__(console, verbose=verbose)
        self.draws_tables = draw_table is not None
        self._draw_table = draw_table
        self._live = Live(console=console, transient=True, refresh_per_second=REDRAWN_PER_S)
        self._stages: dict[str, str] = {}
        self._where = ""
        self._table: DrawnLines | None = None
        # Versions are prepared by several threads.
        self._drawing = threading.Lock()

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def preparing(self, version: str, text: str) -> None:
        super().preparing(version, text)
        with self._drawing:
            if len(self._stages) > MOST_SHOWN:
                # If there are many hosts, the ones that reported last are shown.
                self._stages.pop(version, None)
            self._stages[version] = text
            self._draw()

    def measuring(self, version: Target, case: Case, number: int) -> None:
        with self._drawing:
            self._stages = {}
            self._where = f"{f'round {number}' if number else 'pilot'} · {version} · {case.label}"
            self._draw()

    def show_table(self, evaluation: Evaluation) -> None:
        if self._draw_table:
            width, height = self._console.size
            lines = self._console.render_lines(self._draw_table(evaluation, width), pad=False)
            with self._drawing:
                self._table = DrawnLines(lines[: max(height - BELOW_TABLE, 1)])
                self._draw()

    def look_done(self, number: int, new: Sequence[str], decided: int, comparisons: int) -> None:
        # If there is a table, it shows which comparisons are decided.
        if not self.draws_tables:
            super().look_done(number, new, decided, comparisons)

    def _draw(self) -> None:
        grid = Table.grid(padding=(0, 1))
        for version, text in tuple(self._stages.items())[-MOST_SHOWN:]:
            grid.add_row(Text(version, style="bold"), _one_line(text))
        if not self._stages:
            grid.add_row(_one_line(self._where))
            grid.add_row(_one_line(describe_remaining(self._last) if self._last else "", style="dim"))
        self._live.update(Group(self._table, grid) if self._table and not self._stages else grid)


class DrawnLines:
    """Lines that were drawn once, so that it takes no time to show them again."""

    def __init__(self, lines: Sequence[Sequence[Segment]]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines:
            yield from line
            yield Segment.line()


def describe_remaining(done: RoundDone) -> str:
    """Say how long a round takes, when the next look comes and what it could show, and how long the rest may take."""
    parts = [f"a round of {format_count(done.cases, 'case')} takes {format_minutes_seconds(done.took_s)}"]
    if done.next_look and done.next_s is not None:
        shows = f", and can show differences of {done.shows:.0%}" if done.shows is not None else ""
        soon = format_minutes_seconds(done.next_s)
        parts.append(f"the next look is after round {done.next_look} of {done.most}, in about {soon}{shows}")
        parts.append(f"at most {format_minutes_seconds(done.left_s)} left")
    return "; ".join(parts)


def _one_line(text: str, style: str = "") -> Text:
    line = safe_text(text, style=style)
    line.overflow, line.no_wrap = "ellipsis", True
    return line


def choose_view(console: Console, *, quiet: bool, verbose: bool, draw_table: DrawTable | None = None) -> View:
    if quiet:
        return View()
    if console.is_terminal:
        return AnimatedView(console, verbose=verbose, draw_table=draw_table)
    return PlainView(console, verbose=verbose)
