"""Alarms as lines of text."""

from dataclasses import replace
from datetime import date

from orchestrator.history.terminal import alarms as alarmed


def test_an_alarm_is_listed_with_everything_and_its_commands_in_one_piece(alarm):
    text = "\n".join(line.plain for line in alarmed.render_alarms([alarm], whole=False))
    assert f"  reproduce: {alarm.reproduce}\n  bisect: {alarm.bisect}" in text
    assert "changed since 2024-02-09: nightly: 2.22.0.dev20240209 -> 2.22.0.dev20240210" in text
    assert "note: the new [b]allocator[/b]" in text
    muted = replace(alarm, state="muted", until=date(2026, 12, 31))
    assert "note: until 2026-12-31: the new" in "\n".join(
        line.plain for line in alarmed.render_alarms([muted], whole=False)
    )
    gone = replace(alarm, state="recovered")
    assert [line.plain for line in alarmed.render_alarms([gone], whole=False)] == [
        "no alarm is open; --all shows those that were"
    ]
    assert len(list(alarmed.render_alarms([gone], whole=True))) > 3
    assert [line.plain for line in alarmed.render_alarms([], whole=True)] == ["no alarm is open"]


def test_what_is_known_of_the_cause_comes_before_the_commands(alarm):
    known = replace(alarm, good="2.22.0.dev20240208", bad="2.22.0.dev20240209", findings=("new: f (a.py), 1.20 ms",))
    text = "\n".join(line.plain for line in alarmed.render_alarms([known], whole=False))
    cause = "  between 2.22.0.dev20240208 (as before) and 2.22.0.dev20240209 (changed)\n  new: f (a.py), 1.20 ms"
    assert f"{cause}\n  reproduce: " in text


def test_the_gravest_alarm_comes_first(alarm):
    states = ("recovered", "muted", "known", "confirmed", "new")
    listed = [replace(alarm, state=state, id=state) for state in states]
    assert [one.state for one in alarmed.sort_alarms(listed)] == list(reversed(states))
