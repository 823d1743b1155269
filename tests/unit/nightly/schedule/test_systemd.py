"""What is asked of systemd and written for it; a stand-in for systemctl notes it."""

import os

import pytest

from orchestrator.errors import UsageError
from orchestrator.nightly.schedule.systemd import Systemd
from tests.support.schedules import PLANNED, wanted
from tests.support.stand_ins import FLAGS


@pytest.mark.parametrize("system", [True, False])
def test_a_timer_is_written_enabled_started_and_taken_away_again(with_systemd, system: bool):
    one = Systemd(system=system)
    user = "" if system else "--user "
    assert one.entry() is None
    one.install(wanted())
    assert with_systemd.files() == ["tfcompare-nightly.service", "tfcompare-nightly.timer"]
    assert {str(one.folder / name) for name in with_systemd.files()} == set(one.render_files(wanted()))
    assert with_systemd.asked("systemctl") == [
        f"{user}daemon-reload",
        f"{user}enable tfcompare-nightly.timer",
        f"{user}restart tfcompare-nightly.timer",
    ]
    entry = one.entry()
    assert entry is not None
    assert (entry.planned, entry.missing) == (PLANNED, ())
    one.uninstall()
    assert with_systemd.files() == []
    assert with_systemd.asked("systemctl")[3:] == [
        f"{user}disable --now tfcompare-nightly.timer",
        f"{user}daemon-reload",
    ]
    one.uninstall()


def test_the_manager_of_a_user_and_of_the_system_have_folders_of_their_own(with_systemd):
    assert Systemd(system=False).folder == with_systemd.folder / "config" / "systemd" / "user"
    assert Systemd(system=True).folder == with_systemd.folder / "system"


def test_what_systemd_refuses_leaves_nothing_behind(with_systemd):
    with_systemd.set(REFUSED="enable")
    with pytest.raises(
        UsageError, match=r"systemctl enable tfcompare-nightly.timer: Failed to do it: Access denied; --"
    ):
        Systemd(system=True).install(wanted())
    assert with_systemd.files() == []


def test_a_unit_folder_that_cannot_be_written_is_named(with_systemd):
    (with_systemd.folder / "config").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*tfcompare-nightly.service: Not a directory"):
        Systemd(system=False).install(wanted())


def test_a_user_who_is_not_logged_in_has_no_timers_unless_asked_for(with_systemd):
    [note] = Systemd(system=False).notes()
    assert "enable-linger" in note
    with_systemd.has("loginctl", "#!/bin/sh\necho yes\n")
    assert Systemd(system=False).notes() == ()
    assert Systemd(system=True).notes() == ()


def test_a_unit_of_somebody_else_by_our_name_is_not_removed_and_is_kept_when_it_is_replaced(with_systemd, call):
    timer = Systemd(system=os.getuid() == 0).folder / "tfcompare-nightly.timer"
    timer.parent.mkdir(parents=True, exist_ok=True)
    timer.write_text("[Timer]\nOnCalendar=weekly\n")
    assert call("uninstall")[:2] == (0, "nothing was scheduled here\n")
    assert timer.read_text() == "[Timer]\nOnCalendar=weekly\n"
    kept = timer.with_name("tfcompare-nightly.timer.bak")
    assert f"{timer} was replaced; the old one is in {kept}\n" in call("install", *FLAGS, "--yes")[1]
    assert kept.read_text() == "[Timer]\nOnCalendar=weekly\n"
    assert kept.stat().st_mode & 0o777 == 0o600
