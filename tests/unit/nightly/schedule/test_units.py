"""When nights begin, and what a scheduler is given: pure text in, pure text out."""

import os
import shlex
import subprocess
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.nightly.schedule import status
from orchestrator.nightly.schedule import units as schedule
from orchestrator.nightly.schedule.units import END, MARK, Torn
from tests.support.schedules import PLANNED, planned, wanted

AWKWARD = ("--versions", "2.13", "--notify", "json://${LOGIN}@here/100%?a=\"b\"&c='d'\\e", "--case", "power[a=b c]")


@pytest.fixture
def berlin(monkeypatch):
    """Where the clock is set forward on the last Sunday of March and back on that of October."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "found"), [("02:00", (2, 0)), ("2:05", (2, 5)), (" 23:59 ", (23, 59)), ("00:00", (0, 0))]
)
def test_a_time_of_day_is_hours_and_minutes(text: str, found: tuple[int, int]):
    at = schedule.time_of_day(text)
    assert (at.hour, at.minute) == found


@pytest.mark.parametrize("text", ["25:00", "24:00", "02:60", "2", "02:00:00", "2am", "", "-1:00", "٠٢:٠٠"])
def test_what_is_no_time_of_day_is_refused(text: str):
    with pytest.raises(UsageError, match=r"--at .*: a time of day, e\.g\. 02:00"):
        schedule.time_of_day(text)


def test_what_becomes_of_a_missed_night_is_one_of_two_words():
    assert schedule.parse_missed("skip") == "skip"
    with pytest.raises(UsageError, match="--missed 'later': it is catch-up or skip"):
        schedule.parse_missed("later")


def test_the_night_that_is_due_is_the_one_whose_time_came_last():
    at = schedule.time_of_day("02:00")
    assert schedule.due(datetime(2026, 11, 3, 1, 59), at) == date(2026, 11, 2)
    assert schedule.due(datetime(2026, 11, 3, 2, 0), at) == date(2026, 11, 3)
    assert schedule.due(datetime(2026, 11, 3, 23, 0), at) == date(2026, 11, 3)
    assert schedule.due(datetime(2027, 1, 1, 0, 30), at) == date(2026, 12, 31)


def test_an_hour_that_the_clock_leaves_out_comes_as_the_one_after_it(berlin):
    at = schedule.time_of_day("02:30")
    assert schedule.next_after(datetime(2026, 3, 28, 12), at).isoformat() == "2026-03-29T03:30:00+02:00"
    assert schedule.next_after(datetime(2026, 3, 29, 3, 30), at).isoformat() == "2026-03-30T02:30:00+02:00"


def test_an_hour_that_comes_twice_has_one_night(berlin):
    at = schedule.time_of_day("02:30")
    began = schedule.next_after(datetime(2026, 10, 24, 12), at)
    assert began.isoformat() == "2026-10-25T02:30:00+02:00"
    nights = {
        schedule.due((began + timedelta(minutes=step)).astimezone().replace(tzinfo=None), at) for step in range(180)
    }
    # Between 02:00 and 02:30 of the second pass the clock is before the time again.
    assert nights == {date(2026, 10, 24), date(2026, 10, 25)}
    assert schedule.next_after(datetime(2026, 10, 25, 3), at).isoformat() == "2026-10-26T02:30:00+01:00"


def test_a_timer_says_when_and_what_becomes_of_a_missed_night():
    units = schedule.units(wanted(), system=True)
    assert list(units) == ["tfcompare-nightly.service", "tfcompare-nightly.timer"]
    timer = units["tfcompare-nightly.timer"]
    assert "\nOnCalendar=*-*-* 02:30:00\n" in timer
    assert "\nPersistent=true\n" in timer
    assert "\nPersistent=false\n" in schedule.units(wanted(missed="skip"), system=True)["tfcompare-nightly.timer"]


def test_a_service_ends_what_hangs_a_little_later_than_the_night_itself_does():
    service = schedule.units(wanted(limit_s=6 * 3600.0), system=True)["tfcompare-nightly.service"]
    assert "\nRuntimeMaxSec=23400\n" in service
    # Of a oneshot systemd ignores that limit.
    assert "\nType=exec\n" in service
    assert "\nExecStart=/usr/bin/tfcompare nightly run --versions 2.13,nightly --suite studies --due 02:30\n" in service


def test_only_the_system_knows_the_units_that_a_night_follows():
    assert "docker.service" in schedule.units(wanted(), system=True)["tfcompare-nightly.service"]
    assert "docker.service" not in schedule.units(wanted(), system=False)["tfcompare-nightly.service"]


def test_what_systemd_would_take_for_its_own_is_escaped():
    made = wanted(
        ("/opt/a b/100%/tfcompare",), flags=AWKWARD, environment={"A": 'x "y" %h $Z'}, folder=Path("/home/a b/50%")
    )
    service = schedule.units(made, system=True)["tfcompare-nightly.service"]
    assert '\nExecStart=/usr/bin/env "/opt/a b/100%%/tfcompare" nightly run --versions 2.13 --notify ' in service
    assert '"json://$${LOGIN}@here/100%%?a=\\"b\\"&c=\'d\'\\\\e" --case "power[a=b c]" --due 02:30\n' in service
    assert '\nEnvironment="A=x \\"y\\" %%h $Z"\n' in service
    assert "\nWorkingDirectory=/home/a b/50%%\n" in service


PLANTED = "ExecStartPre=/bin/touch /tmp/planted"


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x1b"])
def test_a_line_end_in_a_word_or_a_variable_begins_no_line_of_a_unit(end: str):
    made = wanted(flags=("--case", f"a{end}{PLANTED}"), environment={"A": f"b{end}{PLANTED}"})
    service = schedule.units(made, system=True)["tfcompare-nightly.service"]
    assert not [line for line in service.splitlines() if line.startswith(PLANTED)]
    assert sum(PLANTED in line for line in service.splitlines() if not line.startswith("#")) == 2


@pytest.mark.parametrize("name", [f"a\n{PLANTED}", f"a\r{PLANTED}", "a\x1b[2J", "a ", "a\\"])
def test_a_folder_that_a_unit_cannot_name_is_refused_in_a_line(name: str):
    folder = Path("/home") / name
    for made in (wanted(folder=folder), wanted(env_file=folder)):
        with pytest.raises(UsageError, match="systemd cannot read this name because of its") as refused:
            schedule.units(made, system=True)
        assert str(refused.value).isprintable()
    # For a script of the shell it is a name like any other.
    assert f"cd {shlex.quote(str(folder))} || exit" in schedule.script(wanted(folder=folder), Path("/begun"))


@pytest.mark.parametrize("name", ["a*", "a?", "a[1]", "a\\b"])
def test_a_file_of_variables_that_would_be_a_pattern_is_refused(name: str):
    with pytest.raises(UsageError, match="systemd cannot read this name"):
        schedule.units(wanted(env_file=Path("/home") / name), system=True)
    assert (
        f"\nWorkingDirectory=/home/{name}\n"
        in schedule.units(wanted(folder=Path("/home") / name), system=True)["tfcompare-nightly.service"]
    )


@pytest.mark.parametrize("name", ["a\n* * * * * touch planted", "a\rb", "a\\%b", "a\\b"])
def test_a_path_that_a_crontab_cannot_name_is_refused_in_a_line(name: str):
    with pytest.raises(UsageError, match="cron cannot read this name because of its") as refused:
        schedule.cron_lines(PLANNED, Path("/home") / name / "nightly.sh")
    assert str(refused.value).isprintable()


def test_a_crontab_line_is_hourly_where_missed_nights_are_caught_up():
    def line(**fields: str) -> str:
        return schedule.cron_lines(planned(**fields), Path("/data/nightly.sh")).splitlines()[2]

    assert line() == "30 * * * * /bin/sh /data/nightly.sh"
    assert line(missed="skip") == "30 2 * * * /bin/sh /data/nightly.sh"
    assert line(at="00:05", missed="skip") == "5 0 * * * /bin/sh /data/nightly.sh"


def test_a_path_in_a_crontab_is_quoted_for_cron_and_for_the_shell():
    text = schedule.cron_lines(PLANNED, Path("/home/it's 100%/nightly.sh"))
    assert text.splitlines()[2] == "30 * * * * /bin/sh '/home/it'\"'\"'s 100\\%/nightly.sh'"


def _program(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


class Script:
    """The script that cron calls, with a program that notes what it was given."""

    def __init__(self, place: Path, **fields: object) -> None:
        self.folder = place / "it's 100% here"
        (self.folder / "bin").mkdir(parents=True)
        self.noted = self.folder / "noted"
        program = _program(
            self.folder / "program",
            'for word; do printf "%s\\n" "$word"; done > "$NOTED"',
            'pwd >> "$NOTED"; env >> "$NOTED"; echo said; exit ${CODE:-0}',
        )
        self.begun = self.folder / "begun"
        given = {"flags": AWKWARD, "history": str(self.folder / "history"), "folder": self.folder, **fields}
        self.path = self.folder / "nightly.sh"
        self.path.write_text(schedule.script(wanted((str(program),), **given), self.begun))

    def call(self, now: str = "") -> int:
        """With little of an environment, as cron does; at another time if one is given."""
        variables = {"PATH": "/usr/bin:/bin", "HOME": "/", "NOTED": str(self.noted)}
        if now:
            _program(
                self.folder / "bin" / "date",
                '[ "$1" != -d ] || exec /bin/date -d "${NOW% *} 12:00 yesterday" "$3"',
                'exec /bin/date -d "$NOW" "$1"',
            )
            variables.update(NOW=now, PATH=f"{self.folder / 'bin'}:{variables['PATH']}")
        return subprocess.run(["/bin/sh", str(self.path)], env=variables, cwd="/").returncode

    def ran(self) -> bool:
        found = self.noted.exists()
        self.noted.unlink(missing_ok=True)
        return found


def test_a_script_hands_on_every_word_its_environment_and_its_exit_code(tmp_path):
    script = Script(tmp_path, environment={"PATH": "/usr/bin:/bin", "SOME": "it's $HOME", "CODE": "6"})
    assert script.call() == 6
    told = script.noted.read_text().splitlines()
    assert told[:10] == ["nightly", "run", *AWKWARD, "--due", "02:30"]
    assert told[10] == str(script.folder)
    assert "SOME=it's $HOME" in told
    [log] = (script.folder / "history" / "log").iterdir()
    assert log.name == f"nightly-{date.today()}.log"
    assert log.read_text() == "said\n"


def test_a_script_reads_the_file_of_variables_and_passes_them_on(tmp_path):
    (tmp_path / "my secrets").write_text("LOGIN='me:it is $secret'\n# a comment\n")
    script = Script(tmp_path, env_file=tmp_path / "my secrets")
    assert script.call() == 0
    assert "LOGIN=me:it is $secret" in script.noted.read_text().splitlines()


def test_a_night_that_is_due_begins_once_however_often_cron_asks(tmp_path):
    script = Script(tmp_path)
    script.begun.write_text("2026-11-02\n")
    for now, runs in {
        "2026-11-03 01:30": False,
        "2026-11-03 02:29": False,
        "2026-11-03 02:30": True,
        "2026-11-03 03:30": False,
        "2026-11-04 02:00": False,
        # The machine was off for two nights: one is caught up.
        "2026-11-06 09:30": True,
        "2026-11-06 10:30": False,
        # The clock was wrong for a while, far ahead; nights go on once it is right again.
        "2031-01-01 05:30": True,
        "2026-11-07 02:30": True,
        "2026-11-07 03:30": False,
        "2026-12-01 00:30": True,
    }.items():
        script.call(now)
        assert script.ran() is runs, now
    assert script.begun.read_text() == "2026-11-30\n"


def test_a_script_that_skips_what_was_missed_just_runs_when_it_is_called(tmp_path):
    script = Script(tmp_path, missed="skip")
    script.call("2026-11-03 02:30")
    assert script.ran()
    assert not script.begun.exists()


def test_a_folder_that_is_gone_ends_a_script_before_anything_is_run(tmp_path):
    script = Script(tmp_path, folder=tmp_path / "gone")
    assert script.call() != 0
    assert not script.ran()


def test_what_was_written_is_read_again_and_an_edit_is_seen():
    made = wanted(flags=AWKWARD)
    texts = [*schedule.units(made, system=False).values(), schedule.script(made, Path("/begun"))]
    texts.append(schedule.cron_lines(made.planned, Path("/nightly.sh")).removesuffix(END))
    for text in texts:
        read = schedule.read_entry(text)
        assert (read.planned, read.edited) == (made.planned, False)
        for edited in (text.replace("2.13", "2.14", 1), text + "x\n", text.replace("Written", "written"), "x" + text):
            assert schedule.read_entry(edited).edited
    assert schedule.read_entry("[Unit]\nDescription=of somebody else\n") == schedule.Written(None, True)
    assert schedule.read_entry(MARK + "{]\n").planned is None


def test_a_crontab_with_one_mark_of_two_is_not_touched():
    ours = schedule.cron_lines(PLANNED, Path("/nightly.sh"))
    for torn in (ours.removesuffix(END), "0 5 * * * mine\n" + END):
        with pytest.raises(Torn):
            schedule.own_part(torn)


def test_a_plan_passes_through_text():
    assert schedule.from_text(schedule.entry_as_text(PLANNED)) == PLANNED
    assert schedule.from_text("{}") is None
    assert schedule.from_text("") is None


def test_the_scripts_of_all_kinds_are_the_shells_own(tmp_path):
    for missed in ("catch-up", "skip"):
        text = schedule.script(wanted(missed=missed, flags=AWKWARD, env_file=Path("/a b")), Path("/begun it"))
        done = subprocess.run(["/bin/sh", "-n"], input=text, text=True, capture_output=True, env=dict(os.environ))
        assert (done.returncode, done.stderr) == (0, "")


NEW_YORK = {"zone": "America/New_York", "environment": {"PATH": "/usr/bin:/bin", "TZ": "America/New_York"}}


def test_a_zone_that_is_not_the_machines_is_that_of_timer_and_script(tmp_path: Path):
    timer = schedule.units(wanted(**NEW_YORK), system=True)["tfcompare-nightly.timer"]
    assert "\nOnCalendar=*-*-* 02:30:00 America/New_York\n" in timer
    text = schedule.script(wanted(**NEW_YORK), tmp_path / "begun")
    assert text.index("export TZ=America/New_York") < text.index("$(date")


def test_cron_asks_a_script_every_hour_for_the_time_of_another_zone(tmp_path: Path):
    assert schedule.cron_lines(planned(missed="skip"), tmp_path).splitlines()[2].startswith("30 2 * * * ")
    there = planned(missed="skip", zone="America/New_York")
    assert schedule.cron_lines(there, tmp_path).splitlines()[2].startswith("30 * * * * ")
    text = schedule.script(wanted(missed="skip", **NEW_YORK), tmp_path / "begun")
    assert text.index("export TZ=") < text.index('[ "$(date +%H)" = 02 ] || exit 0')


def test_the_zone_is_what_tz_names():
    assert schedule.zone(None) == schedule.zone(":/etc/localtime") == ""
    assert schedule.zone("America/New_York") == schedule.zone(":/usr/share/zoneinfo/America/New_York")
    assert schedule.zone("") == "UTC"
    with pytest.raises(UsageError, match=r"TZ='Mars/Base'.*Europe/Berlin"):
        schedule.zone("Mars/Base")


def test_the_next_night_is_counted_in_the_zone_of_its_schedule():
    there = planned(zone="America/New_York")
    now = datetime(2026, 11, 23, 4, tzinfo=UTC)
    found = status.standing(there, "cron", (), None, now)
    assert found.next == datetime(2026, 11, 23, 7, 30, tzinfo=UTC)
    assert f"{found.next:%H:%M %Z}" == "02:30 EST"
    assert found.wrong == ("the nightly run of 2026-11-22 left no result",)
    assert schedule.from_text(schedule.entry_as_text(there)) == there
