"""Which nightlies go and which stay, and that the table and the locks of everything else stay as they are."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import lock_on_demand, user_data
from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.nightly import cleanup
from orchestrator.terminal.view import View
from tests.support.heard import Heard
from tests.support.nightly_locks import DAY_S, age, lock, locks, table

DAYS = [f"2.99.0.dev2099010{day}" for day in range(1, 6)]
OWN = (
    '# mine, and not to be lost\n[version."2.98.0"]\nkeras = ""\n'
    '[version."2.98.0".cpu]\npythons = ["3.11"]\nrequirements = ["mine"]\n'
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("orchestrator.engines.docker.client.connect_engine", _nobody)
    catalog.reread()
    yield tmp_path
    monkeypatch.undo()
    catalog.reread()


def _nobody(timeout_s: float) -> None:
    """As the real one does; that leaves a socket open, which no test may."""
    raise EngineUnavailable("no Docker engine answers")


def chosen(keep: int, **used_days_ago: float) -> list[str]:
    versions = [lock(DAYS[int(day[1:]) - 1], days) for day, days in used_days_ago.items()]
    return [version.number for version in cleanup.old(versions, keep, datetime.now(UTC))]


def test_the_newest_few_stay_by_their_own_date_whenever_they_were_used() -> None:
    assert chosen(2, d1=9, d2=9, d3=9, d4=900) == DAYS[:2]


def test_what_was_asked_for_within_as_many_days_stays_too() -> None:
    assert chosen(2, d1=1.5, d2=2.5, d3=0, d4=0, d5=0) == [DAYS[1]]


@pytest.mark.parametrize("keep", [3, 4, 9])
def test_fewer_than_are_kept_all_stay(keep: int) -> None:
    assert chosen(keep, d1=99, d2=99, d3=99) == []


def test_a_clock_that_goes_backwards_keeps_more_and_not_less() -> None:
    assert chosen(1, d1=-400, d2=9, d3=9) == [DAYS[1]]


def test_the_table_and_the_locks_of_all_others_stay_to_the_letter() -> None:
    lock(DAYS[0], 9)
    user_data.write_user_file(user_data.find_user_table(), table() + "\n" + OWN)
    lock(DAYS[1], 9)
    lock(DAYS[2], 9)
    user_data.write_user_file(user_data.find_user_table(), table() + "\n# the end\n")
    said: list[str] = []
    retired = cleanup.retire(1, Heard(said))
    assert retired.numbers == tuple(DAYS[:2])
    assert said == [f"old nightlies removed: {DAYS[0]}, {DAYS[1]}"]
    assert locks() == [f"{DAYS[2]}-cpu-py3.11.txt"]
    assert table() == (
        f'{lock_on_demand.HEAD}\n{OWN}\n[version."{DAYS[2]}"]\nkeras = ""\n\n'
        f'[version."{DAYS[2]}".cpu]\npythons = ["3.11"]\n'
        f'requirements = [\n    "tf-nightly=={DAYS[2]}",\n]\n\n# the end\n'
    )
    assert [version.number for version in catalog.all_versions() if version.number > "2.9"][-2:] == ["2.98.0", DAYS[2]]
    assert (catalog.find_version(DAYS[0]), catalog.find_version(DAYS[2]) is None) == (None, False)


def test_a_table_of_which_all_is_gone_can_be_written_again() -> None:
    version = lock(DAYS[0])
    lock_on_demand.forget_lock(version)
    assert table() == lock_on_demand.HEAD
    lock(DAYS[1])
    assert catalog.find_version(DAYS[1])


def test_a_nightly_that_somebody_described_himself_never_goes() -> None:
    for number in DAYS[:3]:
        age(lock(number), 99)
    [mine] = catalog.resolve_versions([DAYS[0]], fewest=1)[0].flavours
    mine.lock.write_text("# mine\ntf-nightly==2.99\n")
    assert cleanup.retire(1, View()).numbers == (DAYS[1],)
    assert catalog.find_version(DAYS[0])


def test_a_patch_that_was_locked_on_first_use_never_goes() -> None:
    for number in ("2.3.0", "2.3.1", DAYS[0], DAYS[1]):
        age(lock(number), 99)
    assert cleanup.retire(1, View()).numbers == (DAYS[0],)
    assert locks() == ["2.3.0-cpu-py3.11.txt", "2.3.1-cpu-py3.11.txt", f"{DAYS[1]}-cpu-py3.11.txt"]


@pytest.mark.parametrize(
    "entry",
    [
        "[version.'{}'] # changed by hand\nkeras = '''\n[version.\"2.98.1\"]\n'''\n# why\ncpu.pythons = ['3.11']\n"
        "cpu.requirements = ['tf-nightly']\n",
        "version.'{}' = {{ keras = '', cpu = {{ pythons = ['3.11'], requirements = ['tf-nightly'] }} }}\n",
    ],
)
def test_an_entry_goes_however_it_is_written_and_the_comment_behind_it_stays(entry: str) -> None:
    version = lock(DAYS[0])
    user_data.write_user_file(user_data.find_user_table(), entry.format(DAYS[0]) + OWN)
    lock_on_demand.forget_lock(version)
    assert table() == OWN


def test_an_entry_in_pieces_is_left_alone_and_told() -> None:
    version = lock(DAYS[0], 9)
    lock(DAYS[1])
    cpu = f'[version."{DAYS[0]}".cpu]'
    image = '[python."3.99"]\nimage = "python"\ndigest = ""\npip = "1"\npyarrow = "1"\n'
    written = table().replace(cpu, image + cpu)
    user_data.write_user_file(user_data.find_user_table(), written)
    catalog.reread()
    with pytest.raises(UsageError, match=f"{DAYS[0]} has an entry that tfcompare did not write"):
        lock_on_demand.forget_lock(version)
    said: list[str] = []
    assert cleanup.retire(1, Heard(said)).numbers == ()
    assert "remove it by hand" in said[0]
    assert table() == written


def test_nothing_old_is_nothing_said() -> None:
    lock(DAYS[0], 99)
    said: list[str] = []
    assert (cleanup.retire(3, Heard(said)), said) == (cleanup.Removal(), [])


def test_a_table_that_cannot_be_read_fails_no_night() -> None:
    user_data.write_user_file(user_data.find_user_table(), "[version.broken\n")
    catalog.reread()
    said: list[str] = []
    assert cleanup.retire(1, Heard(said)).numbers == ()
    assert said[0].startswith("old nightlies are left alone: ")


def test_an_engine_that_stops_answering_keeps_the_entries_for_the_next_night(monkeypatch: pytest.MonkeyPatch) -> None:
    lock(DAYS[0], 9)
    lock(DAYS[1])

    class Gone:
        def close(self) -> None:
            pass

        @property
        def api(self) -> object:
            raise EngineUnavailable("the Docker engine stopped answering")

    monkeypatch.setattr("orchestrator.engines.docker.client.connect_engine", lambda timeout_s: Gone())
    retired = cleanup.retire(1, View())
    assert (retired.numbers, retired.spared) == (
        (),
        (f"{DAYS[0]} is left alone: the Docker engine stopped answering",),
    )
    assert catalog.find_version(DAYS[0])


def test_when_a_version_was_used_its_lock_tells() -> None:
    version = lock(DAYS[0], 2)
    assert abs((datetime.now(UTC) - cleanup.last_use(version)).total_seconds() - 2 * DAY_S) < 60
