"""The history as it is drawn, to the letter; `UPDATE_SNAPSHOTS=1 pytest tests/unit/history` writes it anew."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from rich.cells import cell_len

from orchestrator.history import json as objects
from orchestrator.history.alarms import steps
from orchestrator.history.model import Alarm, Change, Key, Point, Segment
from orchestrator.history.night_rows import rows
from orchestrator.history.terminal import alarms as alarmed
from orchestrator.history.terminal import tables
from orchestrator.terminal.text import render_plain
from tests.support import nights_shown as shown
from tests.support.kept import kept
from tests.support.nights import FIRST, history, of_metric, of_results, series_of


def find_changes(key: Key, segment: Segment) -> tuple[Change, ...]:
    return steps.changes(segment)


def overview(points: list[Point], *alarms: Alarm, **asked) -> str:
    found = shown.picked(points, **asked)
    listed = objects.build_shown_series(found, alarms)
    return render_plain(lambda width: tables.overview(found, listed, alarms, width)) + "\n"


def detail(points: list[Point], *alarms: Alarm, **asked) -> str:
    listed = objects.build_shown_series(shown.picked(points, **asked), alarms, find_changes)
    return render_plain(lambda width: tables.detail(listed, width, whole=asked.get("whole", False))) + "\n"


@pytest.mark.parametrize("width", [80, 120])
def test_the_overview_is_what_the_snapshot_shows(monkeypatch, points, alarm, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    found = overview(points, alarm)
    assert found == kept(f"history-overview-{width}", found)
    assert all(cell_len(line) <= width for line in found.splitlines())


@pytest.mark.parametrize("width", [80, 120])
def test_a_case_is_what_the_snapshot_shows(monkeypatch, points, alarm, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    found = detail(points, alarm, case=shown.EAGER, whole=True)
    assert found == kept(f"history-case-{width}", found)
    assert all(cell_len(line) <= width for line in found.splitlines())


def test_no_date_breaks_on_a_narrow_terminal(monkeypatch, points, alarm):
    monkeypatch.setenv("COLUMNS", "60")
    found = detail(points, alarm, case=shown.EAGER, whole=True)
    assert all(cell_len(line) <= 60 for line in found.splitlines())
    assert len(re.findall(r"^ 2024-\d\d-\d\d  ", found, re.MULTILINE)) == 3 * shown.NIGHTS


@pytest.mark.parametrize("nights", [1, 2, 3])
def test_a_series_of_few_nights_is_shown(nights: int):
    few = history(nights, 1)
    text = detail(few, whole=True)
    assert text.count(str(FIRST)) >= 3
    assert f"{nights} night" in text
    assert "1 case on 1 host" in overview(few)


def test_memory_and_results_are_shown_as_what_they_are(points):
    memory, differs = of_metric(points, "memory"), of_results(points, "differs", 0.02)
    text = detail([*points, *memory], case=shown.EAGER, metrics=("memory",), whole=True)
    assert "peak memory · host host" in text
    assert re.search(r"▲ \d{4}-\d\d-\d\d: [\d.]+x more peak memory", text)
    text = detail([*points, *differs], case=shown.EAGER, metrics=("output",))
    assert "results differ by 2%" in text
    assert "nothing to draw" not in text
    text = overview([*points, *differs], metrics=("output",))
    assert "results differ by 2%" in text
    assert "\nresults · host host" in text


def test_nights_without_a_time_are_rows_with_their_reason(points):
    text = detail(points, case=shown.EAGER, targets=("nightly",), whole=True)
    lines = [line for line in text.splitlines() if "died" in line]
    assert [line.split()[0] for line in lines] == ["2024-01-21", "2024-02-25"]
    assert f"(1) {shown.BROKEN}" in text or f"(2) {shown.BROKEN}" in text


def test_a_series_without_any_time_is_shown_with_its_reasons():
    none = [
        replace(one, outcome="refused", reason="no jit here", effect=None, error=None, rounds=0)
        for one in history(3, 1, ("2.0.0",), control=False)
    ]
    text = detail(none)
    assert "no night has a time" in text
    assert text.count("refused (1)") == 3
    assert "(1) no jit here" in text
    assert "refused (1)" in overview(none)


def test_a_night_that_was_confirmed_is_one_row_that_names_the_rounds_of_both(points):
    text = detail(points, case=shown.EAGER, targets=("nightly",), whole=True)
    (line,) = [line for line in text.splitlines() if "▲ step" in line]
    assert line.split()[0] == "2024-02-10"
    assert "10+40" in line
    (key,) = (key for key in series_of(points) if (key.case, key.target) == (shown.EAGER, "nightly"))
    night = next(row for row in rows(series_of(points)[key]) if str(row.night) == "2024-02-10")
    assert (night.stage, night.value.rounds) == ("confirm", 40)


def test_what_changed_since_the_night_before_stands_beside_the_night(points):
    text = detail(points, case=shown.EAGER, targets=("2.13.0",), whole=True)
    changed = next(line for line in text.splitlines() if " changed (" in line)
    assert changed.split()[0] == str(FIRST + timedelta(days=12))
    assert "kernel: 6.1 -> 6.2" in text
    begins = next(line for line in text.splitlines() if " new segment (" in line)
    assert begins.split()[0] == str(FIRST + timedelta(days=25))
    assert "image of the reference: venv-reference -> sha256:bbbbbbbbbbbb" in text
    # Of a version that is followed, that it is another build is no news.
    assert "image of the version" not in detail(points, case=shown.EAGER, targets=("nightly",), whole=True)


def test_a_series_that_ended_is_said_to_and_one_that_ended_long_ago_is_left_out(points):
    assert overview(points).count("ended 2024-02-20") == 2
    later = history(200, (shown.EAGER,), ("2.13.0",), 2)
    both = [*later, *(one for one in points if one.case != shown.EAGER)]
    text = overview(both)
    assert "4 series without a night since 2024-05-19: --all shows them" in text
    assert "predict" not in text
    assert "predict" in overview(both, whole=True)


def test_versions_stand_in_their_order_and_those_with_names_last():
    text = overview(history(3, 1, ("nightly", "2.13.0", "2.2.3"), control=False))
    assert text.index("2.2.3 ") < text.index("2.13.0 ") < text.index("nightly ")


def test_the_control_arm_is_shown_where_it_is_asked_for(points):
    assert "+control" not in overview(points)
    assert "1.14.0+control" in overview(points, whole=True)
    assert "1.14.0+control against 1.14.0" in detail(points, case=shown.EAGER, targets=("1.14.0+control",))


def test_hosts_are_shown_apart_and_found_by_the_beginning_of_their_names():
    both = [*history(3, 1, host="0a1b2c"), *history(3, 1, host="ffee00")]
    text = overview(both)
    assert text.index("host 0a1b2c · venv · cpu · against 1.14.0") < text.index("host ffee00")
    text = overview(both, hosts=("ff",))
    assert "0a1b2c" not in text
    assert "on 1 host" in text


def test_an_open_alarm_stands_on_top_with_its_note_and_one_of_another_series_is_counted(points, alarm):
    text = overview(points, alarm)
    assert text.index("1 open alarm") < text.index("host host")
    assert "0f9571 known     ▲ 1.12x slower" in text
    assert "the new [b]allocator[/b]" in text
    assert "1 open alarm of series that are not shown" in overview(points, alarm, targets=("2.13.0",))
    assert "open alarm" not in overview(points, replace(alarm, state="recovered"))


@pytest.mark.parametrize("text", ["\x1b[2J", "\u202e", "[red]", "\x00"])
def test_no_text_from_elsewhere_steers_the_terminal(alarm, text: str):
    case, name = f"w{text}[p{text}=a{text}]", f"v{text}"
    made = history(9, (case,), (name,), host=f"h{text}")
    made = [
        replace(one, build=f"b{text}", surroundings=replace(one.surroundings, kernel=f"k{text}" * (number > 9)))
        for number, one in enumerate(made)
    ]
    made[-1] = replace(made[-1], outcome="died", reason=f"r{text}", effect=None, error=None, rounds=0)
    key = next(key for key in series_of(made) if key.target == name)
    odd = replace(alarm, id=f"i{text}", key=key, note=f"n{text}", surroundings=(f"s{text}",), reproduce=f"c{text}")
    listing = "\n".join(line.plain for line in alarmed.render_alarms([odd], whole=True))
    for found in (overview(made, odd), detail(made, odd, targets=(name,)), listing):
        assert {character for character in found if not character.isprintable()} <= {"\n"}
