"""Progress is lines in a log, an animation in a terminal and nothing where nothing is wanted."""

import io
import threading
from dataclasses import replace

import pytest
from rich.console import Console
from rich.table import Table

from orchestrator.reports.matrix import layout_tables
from orchestrator.terminal import progress
from orchestrator.terminal.progress import AnimatedView, PlainView, choose_view, describe_remaining
from orchestrator.terminal.view import RoundDone, View
from tests.support import scenes
from tests.support.builders import case, target

FIRST = RoundDone(number=1, most=20, cases=8, took_s=3.2, left_s=61.0, next_look=4, next_s=9.6, shows=0.12)
AHEAD = (
    "a round of 8 cases takes 3 s; the next look is after round 4 of 20, in about 10 s, and can show differences of "
    "12%; at most 1 min 1 s left"
)


def shown(
    *, terminal: bool = False, quiet: bool = False, verbose: bool = False, table: bool = False, width: int = 200
) -> tuple[type, str]:
    """Which view is taken, and what it writes of a short run."""
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=terminal, width=width, height=40, color_system=None)
    with choose_view(console, quiet=quiet, verbose=verbose, draw_table=layout_tables if table else None) as watching:
        watching.say("engine: [red]x[/red]")
        watching.preparing("2.0.0", "installing")
        watching.measuring(target("2.0.0"), case(), 1)
        watching.round_done(FIRST)
        watching.show_table(scenes.everything())
        watching.look_done(1, ["a", "b", "c", "d"], 4, 9)
        watching.measuring(target("2.0.0"), case(), 2)
    return type(watching), buffer.getvalue()


def test_a_pipe_gets_what_stays_and_one_line_a_look():
    look = f"after round 1, 4 of 9 comparisons are decided; new: a; b; c; and 1 more; {AHEAD}"
    assert shown() == (PlainView, f"engine: [red]x[/red]\n{look}\n")


def test_the_last_look_says_nothing_of_a_next_one():
    last = replace(FIRST, number=20, next_look=None, next_s=None, shows=None)
    assert describe_remaining(last) == "a round of 8 cases takes 3 s"
    assert describe_remaining(replace(FIRST, shows=None)) == AHEAD.replace(", and can show differences of 12%", "")


def test_a_line_wraps_between_words_on_a_terminal_and_stays_whole_in_a_log():
    text = "no Docker engine answers " * 6
    for terminal, lines in ((True, 3), (False, 1)):
        buffer = io.StringIO()
        PlainView(Console(file=buffer, force_terminal=terminal, width=60, color_system=None), verbose=False).say(text)
        written = buffer.getvalue().rstrip("\n").split("\n")
        assert len(written) == lines
        assert {word for line in written for word in line.split()} == set(text.split())


def test_a_pipe_gets_builds_too_where_they_are_asked_for():
    assert "2.0.0: installing\n" in shown(verbose=True)[1]


def test_quiet_is_silent_even_in_a_terminal():
    assert shown(terminal=True, quiet=True, verbose=True) == (View, "")


def test_a_terminal_shows_where_the_run_is():
    kind, text = shown(terminal=True)
    assert kind is AnimatedView
    assert "engine: [red]x[/red]" in text
    assert "round 2 · 2.0.0 · power" in text
    assert AHEAD in text
    # Without a table, a look is a line that stays.
    assert "4 of 9 comparisons are decided" in text


def test_a_terminal_shows_the_table_of_a_run_and_what_is_measured_below_it():
    kind, text = shown(terminal=True, table=True)
    assert kind is AnimatedView
    assert "▲ 250x" in text
    assert text.rindex("▲ 250x") < text.rindex("round 2 · 2.0.0 · power")
    assert "comparisons are decided" not in text


def test_a_table_leaves_room_for_what_is_below_it():
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=True, width=80, height=6, color_system=None)
    with choose_view(console, quiet=False, verbose=False, draw_table=layout_tables) as watching:
        watching.round_done(FIRST)
        watching.show_table(scenes.everything())
        watching.measuring(target("2.0.0"), case(), 2)
    drawn = buffer.getvalue()
    assert "round 2 · 2.0.0 · power" in drawn
    assert "a round of 8 cases" in drawn


def test_only_a_terminal_with_a_table_asks_for_what_was_measured():
    console = Console(file=io.StringIO(), force_terminal=True)
    assert choose_view(console, quiet=False, verbose=False, draw_table=layout_tables).draws_tables
    assert not choose_view(console, quiet=False, verbose=False).draws_tables
    assert not choose_view(
        Console(file=io.StringIO()), quiet=False, verbose=False, draw_table=layout_tables
    ).draws_tables
    assert not View.draws_tables


def test_what_a_workload_says_moves_no_cursor_and_keeps_its_lines():
    buffer = io.StringIO()
    with choose_view(Console(file=buffer, color_system=None), quiet=False, verbose=False) as watching:
        watching.say("died:\n  | \x1b[2Jgone")
    assert buffer.getvalue() == "died:\n  | \\x1b[2Jgone\n"


def test_a_version_may_be_added_while_the_others_are_drawn(monkeypatch: pytest.MonkeyPatch):
    watching = AnimatedView(Console(file=io.StringIO(), force_terminal=True), verbose=False)
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
