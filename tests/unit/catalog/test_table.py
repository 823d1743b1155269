"""A table of versions that is wrong is refused with the line that is."""

import os
import textwrap
from pathlib import Path

import pytest

from orchestrator.catalog import table
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
    assert list(table.read_table(written(tmp_path, GOOD)).version) == ["1.14.0", "2.0.0"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('aliases = ["2.0"]', 'aliases = ["1.14"]', r"line 20 \(version.2.0.0.aliases\): '1.14' already means 1.14.0"),
        ('keras = "2.3.1"', 'keras = "2.3.1"\nbuild = {maker = "A", image = "a", cuda = "12.1", compute = ["8.0"]}',
         r"2.0.0.build.*: a build is an image that is used as it is: it has no cpu"),
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
        table.read_table(written(tmp_path, GOOD.replace(old, new, 1)))


def test_a_table_that_is_not_there_is_no_traceback(tmp_path: Path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        table.read_table(tmp_path / "versions.toml")


def test_a_table_that_is_too_large_or_no_file_is_refused(tmp_path: Path):
    path = tmp_path / "versions.toml"
    path.write_text(GOOD + "#" * 2**20)
    with pytest.raises(UsageError, match="cannot be read: it has more than 1 MiB"):
        table.read_table(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UsageError, match="cannot be read: Not a regular file"):
        table.read_table(path)


@pytest.mark.parametrize("text", ["a = " + "9" * 5000, "a = " + "[" * 100_000], ids=["long number", "deep list"])
def test_what_the_parser_itself_gives_up_on_is_refused(tmp_path: Path, text: str):
    path = tmp_path / "versions.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"versions\.toml: not TOML: .*(limit|recursion)"):
        table.read_table(path)


def test_a_table_that_is_not_utf_8_is_refused(tmp_path: Path):
    path = tmp_path / "versions.toml"
    path.write_bytes(b'keras = "\xff"')
    with pytest.raises(UsageError, match=r"versions\.toml: not TOML: .*0xff"):
        table.read_table(path)
