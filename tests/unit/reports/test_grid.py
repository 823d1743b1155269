"""A table line by line: figures are never squeezed, names wrap, and thousands of rows take no time worth telling."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from orchestrator.reports.grid import Grid


def grid(*rows: tuple[str, ...], narrowest: int = 4) -> Grid:
    made = Grid(title=Text("title"), headers=("name", "time", "word"), right=(False, True, False), narrowest=narrowest)
    for row in rows:
        made.add(*row)
    return made


def drawn(of: Grid, width: int = 80, colour: bool = False) -> list[str]:
    buffer = io.StringIO()
    Console(file=buffer, width=width, force_terminal=colour, color_system="standard" if colour else None).print(of)
    return buffer.getvalue().splitlines()


def test_figures_end_and_words_begin_below_each_other_and_no_line_ends_in_blanks():
    assert drawn(grid(("a", "5 ms", "same"), ("bb", "1.25 s", ""))) == [
        "title",
        " name    time  word",
        " ──────────────────",
        " a       5 ms  same",
        " bb    1.25 s",
    ]


def test_a_long_name_wraps_at_blanks_and_else_anywhere():
    assert drawn(grid(("one two three", "5 ms", "same")), width=20)[3:] == [
        " one two  5 ms  same", " three",
    ]  # fmt: skip
    assert drawn(grid(("abcdefgh", "5 ms", "same")), width=19)[3:] == [
        " abcdef  5 ms  same", " gh",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["日本語の名前です", "x" * 300, "a b " * 40, "e\u0301" * 30])
@pytest.mark.parametrize("width", [24, 40, 80])
def test_no_line_is_wider_than_the_terminal(name: str, width: int):
    for line in drawn(grid((name, "5 ms", "same")), width):
        assert cell_len(line) <= width


def test_nothing_of_a_wrapped_name_is_lost():
    name = "the quick brown fox " + "y" * 50
    lines = drawn(grid((name, "5 ms", "same")), 30)[3:]
    told = "".join(line.removesuffix("5 ms  same").strip() for line in lines)
    assert told.replace(" ", "") == name.replace(" ", "")


def test_sections_are_set_apart_and_none_ends_the_table():
    made = grid(("a", "1", "x"))
    made.end_section()
    made.end_section()
    made.add("b", "2", "y")
    made.end_section()
    assert [line.strip() for line in drawn(made)[3:]] == ["a        1  x", "", "b        2  y"]


def test_a_style_covers_its_cell_and_not_the_blanks_beside_it():
    made = grid()
    made.add("a", Text("5 ms"), Text("slower", style="bold red"))
    assert drawn(made, colour=True)[3] == " a     5 ms  \x1b[1;31mslower\x1b[0m"


def test_a_row_may_be_shorter_than_the_header():
    assert drawn(grid(("a", "refused (1)")))[3:] == [" a     refused (1)"]


def test_the_least_width_is_that_of_all_figures_beside_a_wrapped_name():
    assert grid(("a name that is long", "1.25 ms", "same"), narrowest=8).least_width == 1 + 8 + 2 + 7 + 2 + 4


def test_the_least_width_holds_the_longest_word_of_a_name_unless_that_is_absurd():
    assert grid(("train_on_batch graph", "1 ms", "same"), narrowest=8).least_width == 1 + 14 + 2 + 4 + 2 + 4
    assert grid(("x" * 500, "1 ms", "same"), narrowest=8).least_width == 1 + 24 + 2 + 4 + 2 + 4


def test_what_a_name_has_no_room_for_goes_on_beside_the_rows_below_it():
    made = grid(("one two three four", "5 ms", "same"), ("", "6 ms", "same"))
    made.end_section()
    made.add("alpha beta gamma", "7 ms", "same")
    made.add("delta", "8 ms", "same")
    assert drawn(made, 20)[3:] == [
        " one two  5 ms  same",
        " three    6 ms  same",
        " four",
        "",
        " alpha    7 ms  same",
        " beta",
        " gamma",
        " delta    8 ms  same",
    ]
