"""Columns: what each shows, which are shown unasked, and how they are asked for."""

import pytest

from orchestrator.errors import UsageError
from orchestrator.reports.columns import (
    COLUMNS,
    Notes,
    bar,
    choose_columns,
    format_ends,
    format_verdict,
    legend,
    parse_columns,
    ratio,
)
from tests.support.builders import arm, case, comparison, unmeasured, version_pair

USUAL = ["time", "ratio", "interval", "bar", "verdict"]


def names(width: int, asked: tuple[str, ...] | None = None) -> list[str]:
    return [column.name for column in choose_columns(width, asked)]


@pytest.mark.parametrize("width", [20, 80, 100, 130, 300])
def test_a_wider_terminal_shows_the_same_columns(width: int):
    assert names(width) == USUAL


def test_what_is_asked_for_is_shown_in_that_order_and_once():
    assert names(80, parse_columns("verdict, build,time,build")) == ["verdict", "build", "time"]


def test_what_is_added_joins_what_is_shown_unasked():
    added = parse_columns("+first,build,mde")
    assert names(80, added) == ["build", "first", *USUAL, "mde"]
    assert names(130, added) == ["build", "first", *USUAL, "mde"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tiem", r"unknown column 'tiem' \(did you mean time\?\); they are build, first, second, time, items,"),
        ("+biuld", r"unknown column 'biuld' \(did you mean build\?\)"),
        ("time,+build", r"unknown column '\+build' \(did you mean build\?\)"),
        ("", "unknown column ''; they are build,"),
        ("+", "unknown column ''; they are build,"),
        ("time,", "unknown column ''; they are build,"),
    ],
)
def test_a_name_that_is_no_column_is_wrong_usage_with_the_names_that_are(text: str, message: str):
    with pytest.raises(UsageError, match=message):
        parse_columns(text)


def test_each_column_shows_its_own_figure():
    one = arm(
        case(), build=500.0, first=50.0, second_ms=20.0, time=10.0, train_s=95.0, rounds=7,
        resident_bytes=300.4 * 2**20, memory=250 * 2.0**20, leak=1536.0, traces=3, traces_per_call=0.25, cpu=12.0,
        items=32, first_step_ms=800.0, step=20.0, losses=(0.9, 0.25), gpu_memory=2.0**30, energy=3.21, size=2.0**31,
        calls=20_866, ops=1_234, p50=11.0, p95=12.0, p99=13.0,
    )  # fmt: skip
    judged = comparison(
        version_pair(case()), ratio=2.0, verdict="slower", ci_low=1.9, ci_high=2.12, mde=0.043, seed_percent=-100.0,
        second_ratio=1.98, sign_flip_p=0.03125, cpu_ratio=1.9, cpu_low=1.8, cpu_high=2.01,
    )  # fmt: skip
    assert {name: str(column.cell(one, judged, Notes())) for name, column in COLUMNS.items()} == {
        "build": "500 ms",
        "calls": "20,866",
        "ops": "1,234",
        "first": "50.0 ms",
        "second": "20.0 ms",
        "time": "10.0 ms",
        "items": "3,200",
        "first-step": "800 ms",
        "step": "20.0 ms",
        "loss": "0.25",
        "train": "1.58 min",
        "ratio": "2.00x",
        "interval": "1.90-2.12",
        "bar": "    │█   ",
        "verdict": "▲ slower",
        "study": "-100",
        "rounds": "7",
        "mde": "4.3%",
        "cpu-ratio": "1.90x (1.80-2.01)",
        "wall": "10.0 ms",
        "second-opinion": "1.98x",
        "sign-flip": "0.031",
        "resident": "300 MiB",
        "memory": "250 MiB",
        "leak": "1.5 KiB per call",
        "import": "2.00 s",
        "cpu": "12.0 ms",
        "gpu-memory": "1024 MiB",
        "energy": "3.21 J",
        "traces": "3",
        "traces-per-call": "0.25 per call",
        "size": "2048 MiB",
        "p50": "11.0 ms",
        "p95": "12.0 ms",
        "p99": "13.0 ms",
    }


def test_what_is_not_known_is_an_empty_cell():
    refused = unmeasured(case(), "1.0.0", "refused", "why")
    unjudged = comparison(version_pair(case()), ratio=None, verdict="inconclusive")
    for judged in (None, unjudged):
        cells = {name: str(column.cell(refused, judged, Notes())) for name, column in COLUMNS.items()}
        assert {cell for name, cell in cells.items() if name not in ("verdict", "rounds")} == {""}


def test_the_legend_explains_what_is_shown_and_nothing_else():
    assert legend(choose_columns(80, ("build", "rounds"))) == "build: before the first call"
    assert legend(choose_columns(80, ("ratio",))) == "ratios and verdicts: of times, by round"
    assert "first: the whole first call · second: the second call, per step · time: after the warm-up" in legend(
        choose_columns(130, ("first", "second", "time"))
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.003, "0.003x"), (0.0312, "0.031x"), (0.5, "0.50x"), (1.0, "1.00x"), (12.34, "12.3x"), (250.1, "250x")],
)
def test_a_ratio_has_the_figures_that_it_bears(value: float, text: str):
    assert ratio(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.05, 1.16, "1.05-1.16"), (0.94, 0.997, "0.940-0.997"), (0.94, 0.99996, "0.940-0.99996"),
        (1.0004, 1.31, "1.0004-1.310"), (1.0049, 1.2, "1.005-1.200"), (1.0051, 1.2, "1.01-1.20"),
        (0.997, 1.003, "1.00-1.00"), (1.0, 1.0, "1.00-1.00"), (0.9, 1.0, "0.90-1.00"), (0.004, 120.4, "0.004-120"),
    ],
)  # fmt: skip
def test_an_interval_that_excludes_1_never_seems_to_end_there(low: float, high: float, text: str):
    assert format_ends(low, high) == text


def test_a_difference_of_uncertain_size_has_a_small_mark_and_the_mark_is_explained():
    notes, pair = Notes(), version_pair(case())
    slower, faster = (comparison(pair, verdict=verdict, size="beyond") for verdict in ("slower", "faster"))
    assert [str(format_verdict(each, "", notes)) for each in (slower, faster)] == ["▲ slower", "▼ faster"]
    assert notes.lines(0.05) == []
    slower, faster = (comparison(pair, verdict=verdict, size="clear") for verdict in ("slower", "faster"))
    assert [str(format_verdict(each, "", notes)) for each in (slower, faster)] == ["▴ slower", "▾ faster"]
    (explained,) = notes.lines(0.05)
    assert str(explained) == "▴ ▾ of uncertain size: the interval reaches into the margin"


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        (1.0, "    │    "), (1.1, "    │    "), (1.2, "    │▌   "), (1.8, "    │█   "), (3.16, "    │██  "),
        (9.9, "    │████"), (10.0, "    │████"), (250.0, "    │███▶"), (0.83, "   ▐│    "), (0.5, "   █│    "),
        (0.31, "  ██│    "), (0.1, "████│    "), (0.003, "◀███│    "),
    ],
)  # fmt: skip
def test_the_bar_shows_a_ratio_on_a_log_scale_that_is_full_at_ten_times(value: float, drawn: str):
    assert bar(value) == drawn


@pytest.mark.parametrize("value", [0.001, 0.5, 0.99, 1.0, 1.01, 2.0, 1e9])
def test_a_bar_has_one_width_and_a_ratio_and_its_inverse_mirror_each_other(value: float):
    mirrored = bar(1 / value)[::-1].translate(str.maketrans("▌▐▶◀", "▐▌◀▶"))
    assert len(bar(value)) == 9
    assert value == 1.0 or bar(value) == mirrored


def test_a_difference_that_is_sure_is_never_drawn_as_none():
    assert bar(1.06, "slower") == "    │▌   "
    assert bar(0.95, "faster") == "   ▐│    "
    assert bar(1.06, "inconclusive") == "    │    "
