"""A table of versions that is wrong is refused with the line that is."""

import textwrap
from pathlib import Path
from threading import Thread

import pytest

from orchestrator import catalog
from orchestrator.catalog import table, user_data
from orchestrator.errors import UsageError

GOOD = """
[python."3.7"]
image = "python:3.7-slim"
digest = ""
pip = "24.0"
pyarrow = "12.0.1"

[cuda."10.0"]
driver = "410.48"
jit_driver = "410.48"

[version."1.14.0"]
aliases = ["1.14"]
keras = "2.2.5"

[version."1.14.0".cpu]
pythons = ["3.7"]
requirements = ["tensorflow==1.14.0"]

[version."2.0.0"]
aliases = ["2.0"]
keras = "2.3.1"

[version."2.0.0".cpu]
pythons = ["3.7"]
requirements = [
  "tensorflow==2.0.0",
]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "versions.toml"
    path.write_text(textwrap.dedent(text).lstrip())
    return path


def test_a_whole_table_is_read(tmp_path: Path):
    assert list(table.read(written(tmp_path, GOOD)).version) == ["1.14.0", "2.0.0"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('aliases = ["2.0"]', 'aliases = ["1.14"]', r"line 20 \(version.2.0.0.aliases\): '1.14' already means 1.14.0"),
        ('aliases = ["2.0"]', 'aliases = ["1.14.0"]', r"line 20 .*: '1.14.0' already means 1.14.0"),
        ('digest = ""', 'digest = "sha256:12ab"', r"line 3 \(python.3.7.digest\): 'sha256:12ab' is no digest"),
        ('pythons = ["3.7"]\nrequirements = [\n', 'pythons = ["3.9"]\nrequirements = [\n',
         r"line 24 \(version.2.0.0.cpu.pythons\): Python 3.9 has no table"),
        ('keras = "2.3.1"', 'kras = "2.3.1"', r"line 19 \(version.2.0.0.keras\): Field required"),
        ('keras = "2.3.1"', 'keras = 2', r"line 21 \(version.2.0.0.keras\): Input should be a valid string"),
        ('keras = "2.3.1"', 'keras = "2.3.1', r"versions.toml: not TOML: .*line 21"),
        ('[version."2.0.0"]', '[version."two"]', r"'two' is no version number"),
        ('[version."2.0.0".cpu]', '[version."2.0.0".gpu]', r"line 23 .*: a GPU flavour needs `cuda`"),
        ('driver = "410.48"\njit', 'driver = "new"\njit', r"line 8 \(cuda.10.0.driver\): 'new' is no version number"),
    ],
)  # fmt: skip
def test_it_names_the_line_that_is_wrong(tmp_path: Path, old: str, new: str, words: str):
    assert old in GOOD
    with pytest.raises(UsageError, match=words):
        table.read(written(tmp_path, GOOD.replace(old, new, 1)))


def test_a_table_that_is_not_there_is_no_traceback(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        table.read(tmp_path / "versions.toml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    catalog.reread()
    (tmp_path / "tfcompare").mkdir()
    yield tmp_path / "tfcompare"
    monkeypatch.undo()
    catalog.reread()


MINE = """
[version."2.0.1"]
keras = "2.3.1"

[version."2.0.1".cpu]
pythons = ["3.7"]
requirements = ["tensorflow==2.0.1"]
"""


def test_a_version_in_the_users_own_table_is_a_version_like_any_other(folder: Path):
    user_data.write(user_data.table(), MINE)
    catalog.reread()
    [version] = catalog.resolve(["2.0.1"], fewest=1)
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
    user_data.write(user_data.table(), text)
    catalog.reread()
    with pytest.raises(UsageError, match=words):
        catalog.all_versions()


def test_a_digest_that_a_registry_named_takes_the_place_of_the_tables(folder: Path):
    [before] = catalog.resolve(["2.13"], fewest=1)
    assert before.on("gpu")[0].digest == ""
    digest = "sha256:" + "ab" * 32
    user_data.write_digests({before.on("gpu")[0].image: digest})
    catalog.reread()
    [after] = catalog.resolve(["2.13"], fewest=1)
    assert after.on("gpu")[0].digest == digest
    assert after.on("cpu")[0].digest == before.on("cpu")[0].digest


def test_digests_that_cannot_be_read_are_told_with_their_file(folder: Path):
    user_data.write(user_data.digests_file(), "= broken")
    catalog.reread()
    with pytest.raises(UsageError, match=r"digests.toml: .*images lock"):
        catalog.all_versions()


def test_a_table_that_is_not_utf_8_is_refused(tmp_path: Path):
    path = tmp_path / "versions.toml"
    path.write_bytes(b'keras = "\xff"')
    with pytest.raises(UsageError, match=r"versions\.toml: not TOML, which is UTF-8: .*0xff"):
        table.read(path)


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
