"""The standard streams of the command line: what they replace, drop and refuse."""

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from orchestrator.errors import UsageError
from orchestrator.terminal import std_streams

DRAWN = "▲▼△▽▴▾▸◂◀▶ µ·…±×→ │─┤└┬┄┊ ●◆◇✓✗✕ ▁▂▃▄▅▆▇█▐▌"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Callable[[], None]], str]:
    def write(step: Callable[[], None]) -> str:
        with (tmp_path / "out").open("w", encoding="ascii") as out, monkeypatch.context() as context:
            context.setattr(sys, "stdout", out)
            std_streams.guard()
            step()
            sys.stdout.flush()
        return (tmp_path / "out").read_text("utf-8").removesuffix("\n")

    return write


def test_what_reports_draw_has_a_character_each_in_ascii(written):
    found = written(lambda: print(DRAWN))
    assert found.isascii()
    assert len(found) == len(DRAWN)
    assert "?" not in found
    assert found.startswith("^v/\\',><<> u.~~x> |-|++")


@pytest.mark.parametrize("text", ["é", "日本", "e\u0301", "\udcff", "🙂"])
def test_anything_else_is_a_question_mark_per_cell(written, text: str):
    found = written(lambda: print(text))
    assert found.isascii()
    assert len(found) == max(cell_len(text), 1)


def test_a_document_keeps_its_own_encoding_and_its_place(written):
    def step() -> None:
        print("before")
        std_streams.write_utf8("·\n")
        print("after")

    assert written(step) == "before\n·\nafter"


def test_streams_are_guarded_once(written):
    def step() -> None:
        guarded = sys.stdout
        std_streams.guard()
        assert sys.stdout is guarded

    written(step)


def test_a_stream_that_is_no_file_is_left_alone(monkeypatch):
    text = io.StringIO()
    monkeypatch.setattr(sys, "stdout", text)
    std_streams.guard()
    assert sys.stdout is text


@pytest.mark.parametrize("needed", [True, False])
def test_a_full_disk_is_an_error_once_and_only_where_the_output_is_needed(needed: bool):
    with open("/dev/full", "wb") as full:
        output = std_streams.Output(full.fileno(), needed=needed)
        if needed:
            with pytest.raises(UsageError, match="cannot write to stdout: No space left on device"):
                output.write(b"lost")
        assert output.write(b"lost") == 4


def test_a_closed_pipe_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    assert std_streams.Output(writing, needed=True).write(b"lost") == 4
    os.close(writing)
