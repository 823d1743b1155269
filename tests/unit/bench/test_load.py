"""The load of a large run is told round by round, with what it is per replicate."""

import pytest

from bench.figures import judge
from bench.load import Program, Round, describe, section


def made(number: int, seconds: float, look_s: float = 0.0) -> Round:
    return Round(
        number=number, replicates=30, seconds=seconds, look_s=look_s, resident_mb=120.0 + number, files=number,
        journal_bytes=1_000 * number, stream_bytes=50_000 * number,
    )  # fmt: skip


def test_first_and_last_round_are_shown_and_those_with_a_look():
    text, figures, _ = describe(
        Program(10, 5), [made(1, 3.0), made(2, 9.0), made(4, 3.0, 0.5), made(5, 3.3)], 180.4, 150
    )
    rows = [line for line in text.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert [row.split(" | ")[0] for row in rows] == ["| 1", "| 4", "| 5"]
    assert rows[1] == "| 4 | 30 | 100.0 ms | 0.50 s | 124 MiB | 4 |"
    assert "the journal, 33 bytes are for a replicate, and of the streams\n1667" in text
    assert [(figure.value, judge(figure)) for figure in figures[:2]] == [(180.4, "met"), (pytest.approx(1.1), "met")]


@pytest.mark.slow
def test_a_small_run_is_measured_from_its_first_round_to_its_last():
    text = section(Program(2, 2)).body
    assert "2 cases in 3 versions, 2 rounds" in text
    assert [line.split(" | ")[0] for line in text.splitlines() if line[:3] in ("| 1", "| 2")] == ["| 1", "| 2"]
