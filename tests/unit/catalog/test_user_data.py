"""What a user adds to the table of versions is read with it, and may not contradict it."""

from pathlib import Path
from threading import Thread

import pytest

from orchestrator import catalog
from orchestrator.catalog import user_data
from orchestrator.errors import UsageError

MINE = """
[version."2.0.1"]
keras = "2.3.1"

[version."2.0.1".cpu]
pythons = ["3.7"]
requirements = ["tensorflow==2.0.1"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    catalog.reread()
    (tmp_path / "tfcompare").mkdir()
    yield tmp_path / "tfcompare"
    monkeypatch.undo()
    catalog.reread()


def test_a_version_in_the_users_own_table_is_a_version_like_any_other(folder: Path):
    user_data.write_user_file(user_data.find_user_table(), MINE)
    catalog.reread()
    [version] = catalog.resolve_versions(["2.0.1"], fewest=1)
    assert version.on("cpu")[0].lock == folder / "locks" / "2.0.1-cpu-py3.7.txt"
    assert version.on("cpu")[0].image == "python:3.7-slim"
    assert version not in catalog.releases()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MINE.replace("2.0.1", "2.0.0"), "2.0.0 is in both tables"),
        (MINE.replace("keras =", 'aliases = ["2.13"]\nkeras ='), r"line 3 .*'2.13' already means 2.13.0"),
        (MINE.replace("3.7", "3.1"), r"Python 3.1 has no table"),
    ],
)
def test_it_must_not_contradict_the_table_that_comes_with_tfcompare(folder: Path, text: str, words: str):
    user_data.write_user_file(user_data.find_user_table(), text)
    catalog.reread()
    with pytest.raises(UsageError, match=words):
        catalog.all_versions()


def test_a_digest_that_a_registry_named_takes_the_place_of_the_tables(folder: Path):
    [before] = catalog.resolve_versions(["2.0"], fewest=1)
    assert before.on("gpu")[0].digest == ""
    digest = "sha256:" + "ab" * 32
    user_data.write_digests({before.on("gpu")[0].image: digest})
    catalog.reread()
    [after] = catalog.resolve_versions(["2.0"], fewest=1)
    assert after.on("gpu")[0].digest == digest
    assert after.on("cpu")[0].digest == before.on("cpu")[0].digest


def test_digests_that_cannot_be_read_are_told_with_their_file(folder: Path):
    user_data.write_user_file(user_data.digests_file(), "= broken")
    catalog.reread()
    with pytest.raises(UsageError, match=r"digests.toml: .*images lock"):
        catalog.all_versions()


def test_digests_that_two_processes_find_are_all_kept(folder: Path, monkeypatch):
    """The other one writes between this one's reading and writing, unless it has to wait."""
    read, other = user_data.digests, Thread(target=user_data.write_digests, args=({"theirs:1": "sha256:2"},))

    def interrupted() -> dict[str, str]:
        monkeypatch.setattr(user_data, "digests", read)
        known = read()
        other.start()
        other.join(0.3)
        return known

    monkeypatch.setattr(user_data, "digests", interrupted)
    user_data.write_digests({"mine:1": "sha256:1"})
    other.join()
    assert user_data.digests() == {"mine:1": "sha256:1", "theirs:1": "sha256:2"}
