"""Lines of a crontab come and go; a stand-in for crontab keeps it."""

import pytest

from orchestrator.errors import UsageError
from orchestrator.nightly.schedule import schedulers, units
from orchestrator.nightly.schedule.cron import Cron
from tests.support.schedules import PLANNED, planned, wanted


def test_lines_of_a_crontab_come_and_go_and_what_was_there_stays(with_cron):
    (with_cron.notes / "table").write_text("MAILTO=me\n0 5 * * * backup\n")
    one = Cron()
    one.install(wanted())
    assert with_cron.table.startswith("MAILTO=me\n0 5 * * * backup\n# tfcompare-nightly {")
    assert with_cron.files() == ["nightly.sh"]
    assert one.script.stat().st_mode & 0o777 == 0o700
    once = with_cron.table
    one.install(wanted())
    assert with_cron.table == once
    entry = one.entry()
    assert entry is not None
    assert (entry.planned, entry.missing) == (PLANNED, ())
    one.uninstall()
    assert with_cron.table == "MAILTO=me\n0 5 * * * backup\n"
    assert with_cron.files() == []
    assert one.entry() is None


OTHERS = {
    "nothing": "",
    "a line": "0 5 * * * /usr/bin/backup\n",
    "odd ones": "# mine\n\n\tMAILTO=''\n0 5 * * * echo 100\\%  \n#\x80 \udce9t\udce9\r\n\n",
    "one like ours": "0 2 * * * tfcompare nightly run\n# tfcompare-nightlyish {}\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_lines_of_others_stay_as_they_were_byte_by_byte(with_cron, text: str):
    table, one = with_cron.notes / "table", Cron()

    def read() -> str:
        return table.read_bytes().decode("utf-8", "surrogateescape") if table.exists() else ""

    table.write_bytes(text.encode("utf-8", "surrogateescape"))
    one.install(wanted())
    ours = units.cron_lines(PLANNED, one.script)
    assert read() == text + ours
    one.install(wanted())
    assert read() == text + ours
    one.uninstall()
    assert read() == text
    later, newer = "5 5 * * * added later\n", planned(at="04:00")
    table.write_bytes((text + ours + later).encode("utf-8", "surrogateescape"))
    one.install(wanted(at="04:00"))
    assert read() == text + units.cron_lines(newer, one.script) + later
    one.uninstall()
    assert read() == text + later


def test_where_there_was_no_crontab_there_is_none_again(with_cron):
    one = Cron()
    one.install(wanted())
    one.uninstall()
    assert not (with_cron.notes / "table").exists()
    asked = len(with_cron.asked("crontab"))
    one.uninstall()
    assert with_cron.asked("crontab")[asked:] == ["-l"]


def test_a_crontab_that_is_refused_leaves_nothing_behind(with_cron):
    with_cron.set(REFUSED="yes")
    with pytest.raises(UsageError, match='crontab -: "-":1: bad minute; the crontab is as it was'):
        Cron().install(wanted())
    assert with_cron.files() == []


def test_a_crontab_that_lost_one_of_two_marks_is_left_alone(with_cron):
    one = Cron()
    one.install(wanted())
    (with_cron.notes / "table").write_text(with_cron.table.replace(units.END, ""))
    for do in (one.entry, one.uninstall, lambda: one.install(wanted())):
        with pytest.raises(UsageError, match=r"one of the two marks.*crontab -e"):
            do()


def test_whoever_may_not_use_cron_is_told_so(with_cron):
    with_cron.set(DENIED="You (somebody) are not allowed to use this program (crontab)")
    with pytest.raises(UsageError, match=r"crontab -l: You \(somebody\) are not allowed"):
        schedulers.find_scheduler("cron")
