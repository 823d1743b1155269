"""When nights begin, and what a scheduler is given: pure text in, pure text out."""

import os
import shlex
import subprocess
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.nightly.schedule import status
from orchestrator.nightly.schedule import units as schedule
from orchestrator.nightly.schedule.units import END, MARK, BrokenMarks
from tests.support.schedules import PLANNED, planned, wanted

AWKWARD = ("--versions", "2.13", "--notify", "json://${LOGIN}@here/100%?a=\"b\"&c='d'\\e", "--case", "power[a=b c]")


@pytest.mark.parametrize(("at", "first"), [("02:30", 0), ("02:00", 0), ("23:14", 14), ("00:46", 1)])
def test_all_ask_every_quarter_of_an_hour_and_at_its_minute(at: str, first: int):
    units = schedule.units(wanted(at=at), system=True)
    assert list(units) == ["tfcompare-nightly.service", "tfcompare-nightly.timer"]
    assert f"\nOnCalendar=*:{first}/15\n" in units["tfcompare-nightly.timer"]
    line = schedule.cron_lines(planned(at=at), Path("/data/nightly.sh")).splitlines()[2]
    assert line == f"{first},{first + 15},{first + 30},{first + 45} * * * * /bin/sh /data/nightly.sh"


def test_a_service_ends_what_hangs_a_little_later_than_the_night_itself_does():
    service = schedule.units(wanted(limit_s=6 * 3600.0), system=True)["tfcompare-nightly.service"]
    assert "\nRuntimeMaxSec=23400\n" in service
    # Of a oneshot systemd ignores that limit.
    assert "\nType=exec\n" in service
    words = "nightly run --versions 2.13,nightly --suite studies --if-due 02:30 --missed catch-up"
    assert f"\nExecStart=/usr/bin/tfcompare {words}\n" in service


def test_only_the_system_knows_the_units_that_a_night_follows():
    assert "docker.service" in schedule.units(wanted(), system=True)["tfcompare-nightly.service"]
    assert "docker.service" not in schedule.units(wanted(), system=False)["tfcompare-nightly.service"]


def test_what_systemd_would_take_for_its_own_is_escaped():
    made = wanted(
        ("/opt/a b/100%/tfcompare",), flags=AWKWARD, environment={"A": 'x "y" %h $Z'}, folder=Path("/home/a b/50%")
    )
    service = schedule.units(made, system=True)["tfcompare-nightly.service"]
    assert '\nExecStart=/usr/bin/env "/opt/a b/100%%/tfcompare" nightly run --versions 2.13 --notify ' in service
    assert (
        '"json://$${LOGIN}@here/100%%?a=\\"b\\"&c=\'d\'\\\\e" --case "power[a=b c]" --if-due 02:30 --missed catch-up\n'
        in service
    )
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
    assert f"cd {shlex.quote(str(folder))} || exit" in schedule.script(wanted(folder=folder))


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


def test_a_path_in_a_crontab_is_quoted_for_cron_and_for_the_shell():
    text = schedule.cron_lines(PLANNED, Path("/home/it's 100%/nightly.sh"))
    assert text.splitlines()[2] == "0,15,30,45 * * * * /bin/sh '/home/it'\"'\"'s 100\\%/nightly.sh'"


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
        given = {"flags": AWKWARD, "history": str(self.folder / "history"), "folder": self.folder, **fields}
        self.path = self.folder / "nightly.sh"
        self.path.write_text(schedule.script(wanted((str(program),), **given)))

    def call(self) -> int:
        """With little of an environment, as cron does."""
        variables = {"PATH": "/usr/bin:/bin", "HOME": "/", "NOTED": str(self.noted)}
        return subprocess.run(["/bin/sh", str(self.path)], env=variables, cwd="/").returncode


def test_a_script_hands_on_every_word_its_environment_and_its_exit_code(tmp_path):
    script = Script(tmp_path, environment={"PATH": "/usr/bin:/bin", "SOME": "it's $HOME", "CODE": "6"})
    assert script.call() == 6
    told = script.noted.read_text().splitlines()
    assert told[:12] == ["nightly", "run", *AWKWARD, "--if-due", "02:30", "--missed", "catch-up"]
    assert told[12] == str(script.folder)
    assert "SOME=it's $HOME" in told
    [log] = (script.folder / "history" / "log").iterdir()
    assert log.name == f"nightly-{date.today()}.log"
    assert log.read_text() == "said\n"


def test_a_script_reads_the_file_of_variables_and_passes_them_on(tmp_path):
    (tmp_path / "my secrets").write_text("LOGIN='me:it is $secret'\n# a comment\n")
    script = Script(tmp_path, env_file=tmp_path / "my secrets")
    assert script.call() == 0
    assert "LOGIN=me:it is $secret" in script.noted.read_text().splitlines()


def test_a_folder_that_is_gone_ends_a_script_before_anything_is_run(tmp_path):
    script = Script(tmp_path, folder=tmp_path / "gone")
    assert script.call() != 0
    assert not script.noted.exists()


def test_what_was_written_is_read_again():
    made = wanted(flags=AWKWARD)
    texts = [*schedule.units(made, system=False).values(), schedule.script(made)]
    texts.append(schedule.cron_lines(made.planned, Path("/nightly.sh")))
    for text in texts:
        assert schedule.read_marker(text) == made.planned
        # Also what somebody edited is tfcompare's.
        assert schedule.read_marker(text.replace("Written", "written") + "x\n") == made.planned
    assert schedule.read_marker("[Unit]\nDescription=of somebody else\n") is None
    assert schedule.read_marker(MARK + "{]\n") is None


@pytest.mark.parametrize("name", ["", "../../.ssh/x", "a/b", "a\n", "A B"])
def test_a_marker_names_no_file_elsewhere(name: str):
    assert schedule.read_marker(MARK + schedule.as_text(planned(nights=name)) + "\n") is None


def test_a_crontab_with_one_mark_of_two_is_not_touched():
    ours = schedule.cron_lines(PLANNED, Path("/nightly.sh"))
    for torn in (ours.removesuffix(END), "0 5 * * * mine\n" + END):
        with pytest.raises(BrokenMarks):
            schedule.own_part(torn)


def test_a_plan_passes_through_text():
    assert schedule.from_text(schedule.as_text(PLANNED)) == PLANNED
    assert schedule.from_text("{}") is None
    assert schedule.from_text("") is None


def test_the_scripts_of_all_kinds_are_the_shells_own(tmp_path):
    for missed in ("catch-up", "skip"):
        text = schedule.script(wanted(missed=missed, flags=AWKWARD, env_file=Path("/a b")))
        done = subprocess.run(["/bin/sh", "-n"], input=text, text=True, capture_output=True, env=dict(os.environ))
        assert (done.returncode, done.stderr) == (0, "")


NEW_YORK = {"zone": "America/New_York", "environment": {"PATH": "/usr/bin:/bin", "TZ": "America/New_York"}}


def test_a_zone_that_is_not_the_machines_is_that_of_whoever_asks():
    service = schedule.units(wanted(**NEW_YORK), system=True)["tfcompare-nightly.service"]
    assert "\nEnvironment=TZ=America/New_York\n" in service
    assert "export TZ=America/New_York\n" in schedule.script(wanted(**NEW_YORK))


def test_the_zone_is_what_tz_names():
    assert schedule.zone(None) == schedule.zone(":/etc/localtime") == ""
    assert schedule.zone("America/New_York") == schedule.zone(":/usr/share/zoneinfo/America/New_York")
    assert schedule.zone("") == "UTC"
    with pytest.raises(UsageError, match=r"TZ='Mars/Base'.*Europe/Berlin"):
        schedule.zone("Mars/Base")


def test_the_next_night_is_counted_in_the_zone_of_its_schedule():
    there = planned(zone="America/New_York")
    now = datetime(2026, 11, 23, 4, tzinfo=UTC)
    found = status.find_status(there, "cron", (), None, now)
    assert found.next == datetime(2026, 11, 23, 7, 30, tzinfo=UTC)
    assert f"{found.next:%H:%M %Z}" == "02:30 EST"
    assert found.wrong == ("the nightly run of 2026-11-22 left no result",)
    assert schedule.from_text(schedule.as_text(there)) == there
