"""What a person sees: the real command in a real terminal of several widths; screens are kept to the letter."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.kept import FOLDER, kept
from tests.support.small_run import write_run
from tests.support.terminals import read_terminal

WIDTHS = (60, 80, 120, 200)
# Every way to have no colours, and one to have no bold either.
COLOUR, ESCAPE = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m"), re.compile(r"\x1b\[[0-9;]*m")
TERMINAL = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "run")
    return tmp_path


PROGRAM = Path(sys.executable).parent / "tfcompare"


def usual(width: int = 80) -> str:
    return (FOLDER / f"screen-report-{width}.txt").read_text()


def environment(**more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": str(ROOT),
        **TERMINAL,
        **more,
    }


def screen(folder: Path, width: int, *argv: str, **more: str) -> str:
    """What a terminal of a width gets, with all that controls it."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(folder)
        os.execve(PROGRAM, [str(PROGRAM), *argv], environment(**more))
    return read_terminal(pid, terminal, width).replace("\r\n", "\n")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_report_is_what_the_screen_shows(runs: Path, width: int):
    shown = ESCAPE.sub("", screen(runs, width, "report", "run"))
    assert "\x1b" not in shown
    assert all(len(line) <= width for line in shown.splitlines())
    assert shown == kept(f"screen-report-{width}", shown)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_help_is_what_the_screen_shows(runs: Path, width: int):
    shown = ESCAPE.sub("", screen(runs, width, "report", "--help"))
    assert shown == kept(f"screen-help-{width}", shown)


def test_a_terminal_gets_colours_unless_it_or_its_user_wants_none(runs: Path):
    assert COLOUR.search(screen(runs, 80, "report", "run"))
    assert not COLOUR.search(screen(runs, 80, "report", "run", NO_COLOR="1"))
    assert "\x1b" not in screen(runs, 80, "report", "run", TERM="dumb")


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX", "LANG": ""}])
@pytest.mark.parametrize("width", WIDTHS)
def test_colours_and_locales_change_no_word(runs: Path, width: int, more: dict[str, str]):
    assert ESCAPE.sub("", screen(runs, width, "report", "run", **more)) == usual(width)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_dumb_terminal_has_80_columns(runs: Path, width: int):
    assert screen(runs, width, "report", "run", TERM="dumb") == usual()


def test_a_reader_that_stops_early_is_no_failure(runs: Path):
    piped = subprocess.run(
        ["bash", "-c", f"{PROGRAM} report run | head -3; exit ${{PIPESTATUS[0]}}"],
        cwd=runs, env=environment(COLUMNS="80"), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (piped.returncode, piped.stderr) == (0, "")
    assert piped.stdout.splitlines() == [line.rstrip() for line in usual().splitlines()[:3]]


def test_a_long_list_goes_to_the_pager_without_colours_and_a_short_one_does_not(runs: Path):
    paged = screen(runs, 80, "list", "claims", PAGER="sed s/^/paged:/")
    assert "\x1b[1m" not in paged
    assert sum(line.startswith("paged:") for line in paged.splitlines()) > 100
    short = screen(runs, 80, "list", "suites", PAGER="sed s/^/paged:/")
    assert "paged:" not in short
    assert ESCAPE.search(short)
