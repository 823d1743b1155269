"""What a run shows while it is in progress, always on stderr: live in a terminal, plain lines elsewhere."""

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.model import Case, Target
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.durations import format_minutes_seconds
from orchestrator.terminal.text import escape_lines, safe_text
from orchestrator.terminal.view import View

# What a look decides beyond these is only counted.
MOST_NAMED = 3
# Of the lines that are overwritten.
MOST_SHOWN = 20


class Plain(View):
    """A view for logs: the lines that stay, and one line per round."""

    def __init__(self, console: Console, *, verbose: bool) -> None:
        self._console = console
        self._verbose = verbose

    def say(self, text: str) -> None:
        self._console.print(escape_lines(text), soft_wrap=True)

    def preparing(self, version: str, text: str) -> None:
        if self._verbose:
            self.say(f"{version}: {text}")

    def round_done(self, number: int, most: int, cases: int, took_s: float, left_s: float) -> None:
        done, remaining = format_count(cases, "case"), format_minutes_seconds(left_s)
        self.say(f"round {number} of at most {most}: {done} in {took_s:.0f} s, at most {remaining} left")

    def look_done(self, number: int, new: Sequence[str], decided: int, comparisons: int) -> None:
        if new:
            shown = "; ".join(new[:MOST_NAMED])
            more = f"; and {len(new) - MOST_NAMED} more" if len(new) > MOST_NAMED else ""
            self.say(f"after round {number}, {decided} of {comparisons} comparisons are decided; new: {shown}{more}")


class Animated(Plain):
    """A view for terminals: one line per version during preparation, then one line that shows where the run is."""

    def __init__(self, console: Console, *, verbose: bool) -> None:
        super().__init__(console, verbose=verbose)
        self._live = Live(console=console, transient=True, refresh_per_second=8)
        self._stages: dict[str, str] = {}
        self._where = ""
        self._time = ""
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
                # Of many hosts, those are shown that spoke last.
                self._stages.pop(version, None)
            self._stages[version] = text
            self._draw()

    def measuring(self, version: Target, case: Case, number: int) -> None:
        with self._drawing:
            self._stages = {}
            self._where = f"{'pilot' if number == 0 else f'round {number}'} · {version} · {case.label}"
            self._draw()

    def round_done(self, number: int, most: int, cases: int, took_s: float, left_s: float) -> None:
        self._time = f"{cases} cases open · at most {format_minutes_seconds(left_s)} left"

    def _draw(self) -> None:
        grid = Table.grid(padding=(0, 1))
        for version, text in tuple(self._stages.items())[-MOST_SHOWN:]:
            grid.add_row(Text(version, style="bold"), _one_line(text))
        if not self._stages:
            grid.add_row(_one_line(self._where))
            grid.add_row(Text(self._time, style="dim"))
        self._live.update(grid)


def _one_line(text: str) -> Text:
    line = safe_text(text)
    line.overflow, line.no_wrap = "ellipsis", True
    return line


def choose_view(console: Console, *, quiet: bool, verbose: bool) -> View:
    if quiet:
        return View()
    return Animated(console, verbose=verbose) if console.is_terminal else Plain(console, verbose=verbose)
