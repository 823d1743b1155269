"""Progress is lines in a log, an animation in a terminal and nothing where nothing is wanted."""

import io
import threading

import pytest
from rich.console import Console
from rich.table import Table

from orchestrator.terminal import progress
from orchestrator.terminal.progress import Animated, Plain, choose_view
from orchestrator.terminal.view import View
from tests.support.builders import case, target


def shown(*, terminal: bool = False, quiet: bool = False, verbose: bool = False) -> tuple[type, str]:
    """Which view is taken, and what it writes of a short run."""
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=terminal, width=80, color_system=None)
    with choose_view(console, quiet=quiet, verbose=verbose) as watching:
        watching.say("engine: [red]x[/red]")
        watching.preparing("2.0.0", "installing")
        watching.measuring(target("2.0.0"), case(), 1)
        watching.round_done(1, 20, 8, 3.2, 61)
        watching.measuring(target("2.0.0"), case(), 2)
    return type(watching), buffer.getvalue()


def test_a_pipe_gets_what_stays_and_one_line_a_round():
    assert shown() == (Plain, "engine: [red]x[/red]\nround 1 of at most 20: 8 cases in 3 s, at most 1 min 1 s left\n")


def test_a_pipe_gets_builds_too_where_they_are_asked_for():
    assert "2.0.0: installing\n" in shown(verbose=True)[1]


def test_quiet_is_silent_even_in_a_terminal():
    assert shown(terminal=True, quiet=True, verbose=True) == (View, "")


def test_a_terminal_shows_where_the_run_is():
    kind, text = shown(terminal=True)
    assert kind is Animated
    assert "engine: [red]x[/red]" in text
    assert "round 2 · 2.0.0 · power" in text
    assert "8 cases open · at most 1 min 1 s left" in text


def test_what_a_workload_says_moves_no_cursor_and_keeps_its_lines():
    buffer = io.StringIO()
    with choose_view(Console(file=buffer, color_system=None), quiet=False, verbose=False) as watching:
        watching.say("died:\n  | \x1b[2Jgone")
    assert buffer.getvalue() == "died:\n  | \\x1b[2Jgone\n"


def test_a_version_may_be_added_while_the_others_are_drawn(monkeypatch: pytest.MonkeyPatch):
    watching = Animated(Console(file=io.StringIO(), force_terminal=True), verbose=False)
    other = threading.Thread(target=watching.preparing, args=("2.13.0", "installing"))
    draw_line = progress._one_line

    def draw_slowly(text: str):
        if not other.ident:
            other.start()
            other.join(0.3)
        return draw_line(text)

    monkeypatch.setattr(progress, "_one_line", draw_slowly)
    watching.preparing("2.0.0", "installing")
    other.join()
    assert set(watching._stages) == {"2.0.0", "2.13.0"}


def test_of_many_hosts_those_are_shown_that_spoke_last():
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=True, width=80, height=100, color_system=None)
    with choose_view(console, quiet=False, verbose=False) as watching:
        for number in range(progress.MOST_SHOWN + 5):
            watching.preparing(f"host{number:02}", "round 1")
        watching.preparing("host00", "round 2")
    *_, last = buffer.getvalue().split("host00")
    assert last.startswith(" round 2")
    drawn = watching._live.renderable
    assert isinstance(drawn, Table)
    assert drawn.row_count == progress.MOST_SHOWN
