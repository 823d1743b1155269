"""What people read of a night: worst first, whole commands, nothing foreign as markup, and eighty columns."""

import re
import shlex
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from orchestrator.history.alarms.opened import COMMITS
from orchestrator.history.model import NightReport
from orchestrator.nightly.message import compose, summarize_night, trial
from tests.support.night_reports import LONG_CASE, NIGHT, QUIET, SOMETHING, alarm, slower

HOSTILE = "<img src=x onerror=alert(1)>&`*_[x](javascript:1)\x1b[31m\u202e @everyone\nRecovered: 99"


def test_the_title_says_what_happened_where_and_when() -> None:
    told = NightReport(night=NIGHT, opened=(alarm(1.12),), recovered=(alarm(1.3),))
    assert compose(told, "gpu-3").title == "tfcompare: 1 slower, 1 recovered (host gpu-3, 2026-11-22)"


def test_a_machine_without_a_name_goes_by_its_id() -> None:
    assert compose(SOMETHING).title.endswith("(host 9f8e7d6c5b4a, 2026-11-22)")


def test_a_summary_names_everything_that_happened_and_else_that_nothing_did() -> None:
    told = NightReport(
        night=replace(NIGHT, outcome="hung"),
        opened=(alarm(1.2), alarm(0.8), alarm(0.7)),
        vanished=("a",),
        appeared=("b", "c"),
        warnings=("d",),
    )
    assert summarize_night(told) == "the nightly run hung, 1 slower, 2 faster, 1 vanished, 2 appeared, 1 warning"
    assert summarize_night(QUIET) == "nothing changed"


def test_an_alarm_is_told_with_all_that_a_person_acts_on() -> None:
    assert compose(SOMETHING, "gpu-3").text == (
        "1.12x slower (1.09-1.15): power[style=eager] in nightly\n"
        "  since 2026-11-22, the last unchanged nightly run was 2026-11-20; measured\n"
        "    twice that night\n"
        "  against 2.0.0 it took 1.02x before and 1.14x since (cpu, venv)\n"
        "  changed with it: nightly: 2.22.0.dev20261120 -> 2.22.0.dev20261122\n"
        "  changed with it: kernel: 6.1.0 -> 6.1.9\n"
        "  reproduce:\n"
        "    tfcompare run --versions 2.0.0,2.22.0.dev20261122 \\\n"
        "      --case 'power[style=eager]' --engine venv --control\n"
        "  see what came between:\n"
        "    tfcompare bisect --good nightly-20261120 --bad nightly-20261122 \\\n"
        "      --case 'power[style=eager]' --engine venv\n"
        "  if it is meant to be: tfcompare history mute 3f2a1b --note WHY\n"
        "\n"
        "Night of 2026-11-22, suite quick, versions 2.0, nightly\n"
        "  24 measured, 3 of them again\n"
        "  all nights: tfcompare history"
    )


def test_a_message_says_whether_one_may_move_to_each_version() -> None:
    told = compose(NightReport(night=NIGHT, moves=("2.21.0: go", f"2.22.0: not yet: {HOSTILE}")))
    assert "May you move?" in told.text
    assert "2.21.0: go" in told.text
    assert "<img" not in told.html
    assert "May you move?" not in compose(QUIET).text


def test_an_alarm_says_what_was_found_of_its_cause() -> None:
    known = alarm(
        1.12, good="2.22.0.dev20261120", bad="2.22.0.dev20261121", commits=COMMITS.format("0abcdef", "1abcdef"),
        findings=("grown: call (base_layer.py), 1.20 ms -> 2.00 ms in a step",), searched=True,
    )  # fmt: skip
    text = " ".join(compose(NightReport(night=NIGHT, opened=(known,))).text.split())
    assert "between 2.22.0.dev20261120 (as before) and 2.22.0.dev20261121 (changed)" in text
    assert "commits between them: https://github.com/tensorflow/tensorflow/compare/0abcdef...1abcdef" in text
    assert "grown: call (base_layer.py), 1.20 ms -> 2.00 ms in a step" in text
    assert "see the search: tfcompare bisect" in text


def test_a_slow_change_says_that_many_nights_show_it_and_that_nothing_else_changed() -> None:
    text = compose(NightReport(night=NIGHT, opened=(alarm(1.04, found_by="history", surroundings=()),))).text
    assert "shown by all nights since then together" in " ".join(text.split())
    assert "nothing else that is recorded changed with it" in text


def test_the_worst_comes_first_and_what_became_faster_last() -> None:
    told = NightReport(night=NIGHT, opened=(alarm(0.5, "c[]"), alarm(1.1, "b[]"), alarm(1.3, "a[]"), alarm(0.3, "d[]")))
    assert re.findall(r"^[\d.]+x (?:slower|faster)", compose(told).text, re.MULTILINE) == [
        "1.30x slower", "1.10x slower", "0.30x faster", "0.50x faster",
    ]  # fmt: skip


def test_of_many_alarms_the_ten_worst_are_told_and_how_many_there_are_beside() -> None:
    message = compose(NightReport(night=replace(NIGHT, cells=100), opened=slower(24)))
    assert "24 slower" in message.title
    assert re.findall(r"power\[style=(\d+)\] in", message.text) == [str(number) for number in range(23, 13, -1)]
    assert "\nand 14 more: tfcompare history\n" in message.text


def test_with_room_for_no_alarm_there_is_still_their_number() -> None:
    message = compose(NightReport(night=replace(NIGHT, cells=100), opened=slower(24), vanished=("x", "y")), most=0)
    assert message.text.startswith("24 changes: tfcompare history\n\nVanished from the suite: 2\n\n")


def test_what_ended_came_went_and_warns_has_its_own_lines() -> None:
    text = compose(
        NightReport(
            night=NIGHT,
            recovered=(alarm(1.3),),
            vanished=("predict[model=tiny] in 2.13.0",),
            appeared=("power[style=jit] in nightly",),
            warnings=("a file cannot be read",),
            still=(alarm(1.2, id="b"), alarm(1.5, note="known since the new Keras")),
            page="/history/runs/x/report.html",
        )
    ).text
    assert "Recovered: 1\n  power[style=eager] in nightly: it was 1.30x slower (1.26-1.34) since" in text
    assert "Vanished from the suite: 1\n  predict[model=tiny] in 2.13.0\n" in text
    assert "New in the suite: 1\n  power[style=jit] in nightly\n" in text
    assert "Warnings: 1\n  a file cannot be read\n" in text
    assert "Still open from earlier nights: 2\n  1.50x slower (1.46-1.54)" in text
    assert "known since the new Keras" in text
    assert "  report: /history/runs/x/report.html\n" in text


def test_what_one_cause_made_slower_is_told_once_and_with_all_of_it() -> None:
    calls = alarm(1.12)
    first = replace(alarm(3.0, id="b"), key=replace(calls.key, metric="first"))
    memory = replace(alarm(1.3, id="c"), key=replace(calls.key, metric="memory"))
    faster = replace(alarm(0.5, id="d"), key=replace(calls.key, metric="build"))
    message = compose(NightReport(night=NIGHT, opened=(calls, first, memory, faster)))
    assert "1 more peak memory, 1 slower, 1 faster" in message.title
    assert "also: 3.00x slower first call (2.91-3.09), alarm b" in " ".join(message.text.split())
    assert message.text.count("reproduce:") == 3


@pytest.mark.parametrize("calls", [None, "provisional", "faster"])
def test_a_first_call_that_nothing_else_tells_of_has_its_own_words(calls: str | None) -> None:
    times = {"provisional": alarm(1.05, proven=False), "faster": alarm(0.9)}
    first = alarm(3.0, id="b")
    first = replace(first, key=replace(first.key, metric="first"))
    message = compose(NightReport(night=NIGHT, opened=(*([times[calls]] if calls else []), first)))
    assert "1 slower first call" in message.title
    assert "also: " not in message.text


def test_commands_about_a_history_elsewhere_name_it() -> None:
    text = compose(replace(SOMETHING, history=" --history '/a b'")).text
    assert "tfcompare history mute 3f2a1b --note WHY --history '/a b'" in text
    assert "all nights: tfcompare history --history '/a b'" in text


def test_of_alarms_told_before_three_are_a_reminder() -> None:
    text = compose(NightReport(night=NIGHT, still=slower(5))).text
    assert "Still open from earlier nights: 5\n" in text
    assert text.count("x slower") == 3
    assert "  and 2 more\n" in text


def test_if_most_became_slower_at_once_the_tool_is_suspected_before_anything_else() -> None:
    message = compose(NightReport(night=replace(NIGHT, cells=24), opened=slower(13)))
    assert message.text.startswith("Watch the tool: 13 of 24 became slower the same night.\n")
    assert "Suspect the reference, the machine or tfcompare itself" in message.text


@pytest.mark.parametrize(("cells", "count"), [(24, 12), (1, 1)])
def test_half_of_all_or_a_single_one_does_not_speak_against_the_tool(cells: int, count: int) -> None:
    assert "Watch the tool" not in compose(NightReport(night=replace(NIGHT, cells=cells), opened=slower(count))).text


def test_changes_both_ways_do_not_speak_against_the_tool() -> None:
    ups, downs = slower(3), tuple(replace(one, change=alarm(0.8).change) for one in slower(6)[3:])
    assert "Watch the tool" not in compose(NightReport(night=replace(NIGHT, cells=6), opened=(*ups, *downs))).text


def test_what_recovers_moves_against_what_it_was() -> None:
    faster = tuple(alarm(0.8, f"predict[model={number}]") for number in range(2))
    text = compose(NightReport(night=replace(NIGHT, cells=5), opened=faster, recovered=slower(1))).text
    assert text.startswith("Watch the tool: 3 of 5 became faster the same night.\n")


def test_a_night_that_failed_says_why_first() -> None:
    night = replace(NIGHT, outcome="failed", said=("the engine does not answer",), cells=0, exit_code=4, run="")
    message = compose(NightReport(night=night))
    assert message.title.startswith("tfcompare: the nightly run failed (")
    assert message.text.startswith("The nightly run failed and has no result.\n  the engine does not answer\n")
    assert message.gravity == "failure"


@pytest.mark.parametrize(("cells", "kept"), [(24, "what it had measured until then is kept"), (0, "before anything")])
def test_a_night_that_hung_says_whether_anything_is_kept(cells: int, kept: str) -> None:
    text = compose(NightReport(night=replace(NIGHT, outcome="hung", cells=cells))).text
    assert text.startswith("The nightly run hung and was ended")
    assert kept in text.splitlines()[0]


@pytest.mark.parametrize(
    ("told", "gravity"),
    [
        (QUIET, "info"),
        (SOMETHING, "warning"),
        (NightReport(night=NIGHT, vanished=("a",)), "warning"),
        (NightReport(night=NIGHT, opened=(alarm(0.8),)), "success"),
        (NightReport(night=NIGHT, recovered=(alarm(1.2),)), "success"),
        (NightReport(night=replace(NIGHT, outcome="hung"), recovered=(alarm(1.2),)), "failure"),
    ],
)
def test_the_gravity_is_that_of_the_worst(told: NightReport, gravity: str) -> None:
    assert compose(told).gravity == gravity


def test_all_but_whole_commands_fits_into_eighty_columns() -> None:
    told = NightReport(
        night=NIGHT,
        opened=(alarm(1.12, LONG_CASE),),
        recovered=(alarm(1.3, LONG_CASE),),
        still=(alarm(1.3, LONG_CASE, note="word " * 40),),
        vanished=(f"{LONG_CASE} in 2.13.0",),
        warnings=("something is wrong with it, " * 9,),
        page="/history/report.html",
    )
    long = [line for line in compose(told).text.splitlines() if len(line) > 80]
    assert long == [f"      --case '{LONG_CASE}' \\"] * 2


@pytest.mark.parametrize("case", [LONG_CASE, "power[style=eager]", 'own[text=it\'s a "b",path=/a b/c]'])
def test_a_command_that_is_copied_from_a_mail_is_the_command(case: str) -> None:
    reproduce = f"tfcompare run --versions 2.0.0,2.13.0 --case {shlex.quote(case)} --control --engine venv --gpu"
    text = compose(NightReport(night=NIGHT, opened=(alarm(1.12, reproduce=reproduce),))).text
    copied = text.partition("  reproduce:\n")[2].partition("  see what came between:")[0]
    script = "tfcompare() { printf '%s\\n' tfcompare \"$@\"; }\n" + copied
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == shlex.split(reproduce)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes = 0
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += len(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile() -> NightReport:
    bad = alarm(
        1.12, HOSTILE, surroundings=(HOSTILE,), note=HOSTILE, bisect=HOSTILE, reproduce=f"tfcompare run {HOSTILE}"
    )
    night = replace(NIGHT, suite=HOSTILE, targets=(HOSTILE,), said=(HOSTILE,), outcome="failed", host=HOSTILE)
    return NightReport(
        night=night,
        opened=(bad,),
        recovered=(bad,),
        still=(bad,),
        appeared=(HOSTILE,),
        vanished=(HOSTILE,),
        warnings=(HOSTILE,),
        page=HOSTILE,
    )


def test_nothing_foreign_is_markup_in_html() -> None:
    parser = Tags()
    parser.feed(compose(hostile()).html)
    assert parser.tags == {"p", "b", "ul", "li", "code"}
    assert parser.attributes == 0
    assert "<img src=x onerror=alert(1)>&" in parser.text


def test_everything_foreign_is_code_in_markdown() -> None:
    markdown = compose(hostile()).markdown
    assert all(line.count("`") % 2 == 0 for line in markdown.splitlines())
    bare = re.sub(r"`[^`]*`", "", markdown)
    assert not re.search(r"[<>@_\[\]]|javascript|everyone", bare)


@pytest.mark.parametrize("form", ["text", "html", "markdown", "title"])
def test_nothing_foreign_moves_a_cursor_or_forges_a_line(form: str) -> None:
    shown = getattr(compose(hostile()), form)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", shown)
    assert not any(line.startswith("Recovered: 99") for line in shown.splitlines())


def test_a_title_is_one_line_whatever_the_machine_is_called() -> None:
    assert compose(QUIET, "a\r\nBcc: x <y>").title == "tfcompare: nothing changed (host a--Bcc:-x--y-, 2026-11-22)"


def test_a_reason_that_nobody_would_read_to_its_end_is_cut() -> None:
    night = replace(NIGHT, outcome="failed", said=("x" * 10_000,))
    assert len(compose(NightReport(night=night)).text) < 1_000


def test_a_heartbeat_says_that_all_was_measured() -> None:
    message = compose(replace(QUIET, night=replace(NIGHT, said=("driver: 1 -> 2: new segment in 8 series",))), "gpu-3")
    assert message.title == "tfcompare: nothing changed (host gpu-3, 2026-11-22)"
    assert message.text == (
        "Night of 2026-11-22, suite quick, versions 2.0, nightly\n"
        "  24 measured, 3 of them again\n"
        "  driver: 1 -> 2: new segment in 8 series\n"
        "  all nights: tfcompare history"
    )


def test_a_trial_says_what_it_is() -> None:
    assert trial("gpu-3").title == "tfcompare: a test (host gpu-3)"
    assert "Notifications arrive here." in trial("gpu-3").text


def test_a_small_change_of_one_night_is_provisional_until_a_second_night_confirms_it() -> None:
    small = alarm(1.06)
    first = compose(NightReport(night=NIGHT, opened=(small,))).text
    assert "measured twice that night; provisional until other nights confirm it" in " ".join(first.split())
    assert "provisional" not in compose(NightReport(night=NIGHT, opened=(alarm(1.12),))).text
    confirmed = replace(small, state="confirmed")
    second = compose(NightReport(night=NIGHT, confirmed=(confirmed,), still=(confirmed,)))
    assert "1 confirmed" in second.title
    assert "Confirmed by a second night: 1" in second.text
    assert "Still open" not in second.text
    assert second.gravity == "warning"
