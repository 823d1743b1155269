"""What the commands that schedule nights ask of systemd and crontab, and what they say.

Both are stand-ins here that note what they are asked; tests/engines/test_schedule.py has the real ones.
"""

import json
import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.history.model import Night
from orchestrator.history.store import Store
from orchestrator.nightly import lock
from orchestrator.nightly.schedule import serve, units
from orchestrator.nightly.schedule.cron import Cron
from tests.support.schedules import PLANNED, wanted
from tests.support.stand_ins import FLAGS, SYSTEMCTL


def test_a_part_that_is_gone_is_told_and_put_back(with_cron, call):
    Cron().install(wanted())
    Cron().script.unlink()
    entry = Cron().entry()
    assert entry is not None
    assert entry.missing == (str(Cron().script),)
    code, out, _ = call("status")
    assert (code, f"problem: {Cron().script} is gone: install it again" in out) == (0, True)
    assert call("install", *FLAGS, "--yes")[0] == 0
    found = Cron().entry()
    assert found is not None
    assert found.missing == ()


def test_install_shows_all_that_it_will_write_and_writes_nothing_unasked(with_cron, call):
    code, out, err = call("install", "--at", "3:15", *FLAGS)
    assert code == 2
    assert "nothing was written: stdin is not a terminal, so no question can be asked; --yes skips it" in err
    assert f"{Cron().script}:\n\n    #!/bin/sh\n" in out
    assert "nightly run --versions 2.13,1.14 --suite studies" in out
    assert f"{Cron().crontab}:\n\n    # tfcompare-nightly " in out
    assert "\n    0,15,30,45 * * * * /bin/sh '" in out
    assert with_cron.files() == []
    assert with_cron.asked("crontab") == ["-l"] * len(with_cron.asked("crontab"))


def test_what_was_shown_is_what_is_written(with_cron, call):
    (with_cron.notes / "table").write_text("0 5 * * * backup\n")
    code, out, err = call("install", "--yes", "--", *FLAGS, "--case", "power[style=eager]")
    assert code == 0, err
    shown = "".join(f"{line.removeprefix('    ')}\n" for line in out.splitlines() if line.startswith("    "))
    assert shown == Cron().script.read_text() + with_cron.table.removeprefix("0 5 * * * backup\n")
    assert "the next nightly run starts at " in out
    entry = Cron().entry()
    assert entry is not None
    assert entry.planned is not None
    assert entry.planned.flags == (*FLAGS, "--case", "power[style=eager]")
    assert entry.planned.history == str(with_cron.folder / "my data" / "tfcompare" / "history")


def test_a_second_install_replaces_the_first_whatever_scheduler_has_it(with_cron, call):
    assert call("install", *FLAGS, "--yes")[0] == 0
    with_cron.has("systemctl", SYSTEMCTL)
    with_cron.set(REFUSED="never asked for")
    code, out, _ = call("install", *FLAGS, "--yes", "--scheduler", "systemd", "--missed", "skip")
    assert code == 0
    assert f"removed the schedule of {Cron().title}" in out
    assert not (with_cron.notes / "table").exists()
    assert [name.partition("-")[0] for name in with_cron.files()] == ["nights", "tfcompare", "tfcompare"]
    [one] = json.loads(call("status", "--format", "json")[1])
    assert (one["at"], one["missed"]) == ("02:00", "skip")


def test_what_somebody_edited_is_kept_beside_what_replaces_it(with_systemd, call):
    assert call("install", *FLAGS, "--yes")[0] == 0
    [timer] = with_systemd.folder.rglob("*.timer")
    timer.write_text(timer.read_text().replace("AccuracySec=1s", "AccuracySec=5s"))
    code, out, _ = call("install", *FLAGS, "--yes")
    assert (code, f"{timer} was replaced; the old one is in {timer}.bak\n" in out) == (0, True)
    assert "AccuracySec=1s" in timer.read_text()
    assert "AccuracySec=5s" in Path(f"{timer}.bak").read_text()
    assert call("uninstall")[0] == 0
    assert {name.rpartition(".")[2] for name in with_systemd.files()} == {"bak"}


def test_a_night_before_the_schedule_was_installed_is_not_caught_up(with_cron, call):
    call("install", *FLAGS, "--at", "03:15", "--yes")
    entry = Cron().entry()
    assert entry is not None
    assert entry.planned is not None
    due, now = entry.planned.due, datetime.now()
    assert due.look(now) == "wait"
    assert due.look(now + timedelta(days=1)) == "begin"
    # A schedule that asks for something else has another file, and leaves none behind.
    call("install", *FLAGS, "--limit", "4h", "--gpu", "--yes")
    assert len([name for name in with_cron.files() if name.startswith("nights-")]) == 1
    (with_cron.folder / "my data" / "tfcompare" / "nightly.sh.bak").unlink()
    call("uninstall")
    assert with_cron.files() == []


def test_uninstall_says_what_it_removed_and_nothing_more_the_second_time(with_cron, call):
    call("install", *FLAGS, "--yes")
    code, out, _ = call("uninstall")
    assert (code, out) == (0, f"removed: {Cron().crontab}, {Cron().script}\n")
    assert call("uninstall")[:2] == (0, "nothing was scheduled here\n")


def test_a_night_that_runs_while_its_schedule_goes_is_told_of(with_cron, call):
    with lock.hold():
        assert f"(pid {os.getpid()}); it continues to its end" in call("uninstall")[1]
        assert f"(pid {os.getpid()})" in call("status")[1]


BAD_FLAGS = {
    "a time that is none": (["--at", "25:00", *FLAGS], "--at '25:00': a time of day"),
    "a fate that is none": (["--missed", "later", *FLAGS], "--missed: unknown way 'later'"),
    "a scheduler that is none": (["--scheduler", "at", *FLAGS], "--scheduler: unknown scheduler 'at'"),
    "no versions": (["--suite", "studies"], "--versions"),
    "a mistyped flag": ([*FLAGS, "--suiet", "studies"], "No such option: --suiet"),
    "an unknown suite": (["--versions", "2.13", "--suite", "studie"], "did you mean studies?"),
    "an unknown version": (["--versions", "2.133", "--suite", "studies"], "unknown version '2.133'"),
    "a bad limit": ([*FLAGS, "--limit", "soon"], "--limit 'soon'"),
    "CPU time of a GPU": ([*FLAGS, "--gpu", "--judge", "cpu"], "what a GPU computes takes no CPU time"),
    "a rule that is the schedule's own": ([*FLAGS, "--if-due", "03:00"], "with the time of --at"),
    "a file that is not there": ([*FLAGS, "--env-file", "nowhere"], "--env-file nowhere: no such file"),
}


@pytest.mark.parametrize(("words", "told"), BAD_FLAGS.values(), ids=BAD_FLAGS)
def test_a_mistake_is_told_now_and_not_at_night(with_cron, call, words: list[str], told: str):
    code, out, err = call("install", *words, "--yes")
    assert (code, out) == (2, "")
    assert told in err
    assert with_cron.files() == []


def test_a_mistyped_flag_is_told_with_the_usage_of_its_own_command(with_cron, call):
    _, _, err = call("install", *FLAGS, "--suiet", "studies", "--yes")
    assert "nightly install" in err
    assert "nightly run" not in err


def test_secrets_of_the_environment_are_not_written_down(with_cron, call):
    with_cron.set(TFCOMPARE_INDEX_URL="https://mirror/token-abc/simple", HTTPS_PROXY="http://me:hidden@proxy", TF_X="1")
    _, out, err = call("install", *FLAGS, "--inherit-env", "--notify", "${HOOK}", "--yes")
    text = Cron().script.read_text()
    assert "token-abc" not in out + err + text
    assert "hidden" not in out + err + text
    assert "export TF_X=1\n" in text
    assert "--notify '${HOOK}'" in text
    for told in ("TFCOMPARE_INDEX_URL may hold", "HTTPS_PROXY may hold", "${HOOK} will have no value"):
        assert told in err
    (with_cron.folder / "secrets").write_text("HOOK='json://me:x@here'\n")
    install = ("install", *FLAGS, "--notify", "${HOOK}", "--env-file", "secrets", "--yes")
    assert "other users can read secrets, which holds secrets; run chmod 600 secrets" in call(*install)[2]
    (with_cron.folder / "secrets").chmod(0o600)
    assert "note: " not in call(*install)[2].replace("note: no cron daemon", "")
    assert f". '{with_cron.folder / 'secrets'}'".replace("'", "") in Cron().script.read_text().replace("'", "")


def test_a_quiet_status_is_an_exit_code(with_cron, call):
    assert call("status", "--quiet") == (3, "", "")
    call("install", *FLAGS, "--yes")
    assert call("status", "--quiet") == (0, "", "")
    [one] = json.loads(call("status", "--format", "json")[1])
    entry = Cron().entry()
    assert entry is not None
    assert entry.planned is not None
    now = datetime.now().astimezone()
    night = Night(
        at=now, night=now.date(), started=now - timedelta(minutes=1), host=entry.planned.host, suite="studies",
        targets=("2.13",), run="", outcome="failed", said=("no engine",), cells=0, screened=0, confirmed=0,
        exit_code=5,
        device="cpu",
        engine="auto",
        selected=(),
        flags=(),
    )  # fmt: skip
    Store(Path(one["history"])).record(night)
    assert call("status", "--quiet") == (3, "", "")
    assert f"problem: the nightly run of {now.date()} failed: no engine" in call("status")[1]


def test_one_who_waits_for_nights_is_told_with_its_plan(with_cron, call):
    planned = units.as_text(PLANNED)
    with lock.hold(name="nightly-serve-cpu", about=planned):
        out = call("status")[1]
        assert f"every night at 02:30, by `tfcompare nightly serve` (pid {os.getpid()})" in out
        code, _, err = call("serve", "--at", "03:00", *FLAGS)
        assert (code, "another nightly-serve-cpu is in progress here since" in err) == (2, True)
        assert "also starts nightly runs here" in call("uninstall")[1]


def test_what_waiting_for_nights_prints_is_its_output(call, monkeypatch):
    """A service has one log, and an error in it is no line of progress."""
    attack = "next at 02:00 \x1b[2J\u202e"
    monkeypatch.setattr(serve, "serve_nights", lambda wanted, view: view.say(attack))
    code, out, err = call("serve", *FLAGS)
    assert (code, out, err) == (0, "next at 02:00 \\x1b[2J\\u202e\n", "")
