"""Wheels of the user's own: what is read off them, and which are refused."""

import zipfile
from pathlib import Path

import pytest

from orchestrator.catalog import wheel
from orchestrator.errors import UsageError
from tests.support.packages import own_tensorflow

NEEDS = ("numpy<2.0.0,>=1.23.5", 'tensorboard; extra == "boards"', "six>=1.12.0")


def test_a_wheel_says_what_it_is_for_and_what_it_needs(tmp_path: Path):
    path = own_tensorflow(tmp_path, needs=NEEDS)
    found = wheel.read_wheel(path)
    assert (found.name, found.number, found.pythons) == ("tensorflow-cpu", "2.15.1+mine", ("3.11",))
    assert found.requirements == ("numpy<2.0.0,>=1.23.5", "six>=1.12.0")
    assert len(found.digest) == 64


def test_a_wheel_that_was_built_again_is_another(tmp_path: Path):
    before = wheel.read_wheel(own_tensorflow(tmp_path))
    after = wheel.read_wheel(own_tensorflow(tmp_path, code="built = 'again'\n"))
    assert before.digest != after.digest


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ("cp311-cp311-win_amd64", "it is for win_amd64, but targets run on Linux on x86_64"),
        ("cp311-cp311-manylinux_2_17_aarch64", "it is for manylinux_2_17_aarch64"),
        ("cp311-cp311-macosx_12_0_arm64", "it is for macosx_12_0_arm64"),
    ],
)
def test_a_wheel_for_another_machine_is_refused(tmp_path: Path, tags: str, words: str):
    with pytest.raises(UsageError, match=words):
        wheel.read_wheel(own_tensorflow(tmp_path, tags=tags))


def test_a_wheel_without_tensorflow_is_refused(tmp_path: Path):
    path = tmp_path / "six-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("six-1.0.dist-info/METADATA", "Name: six\nVersion: 1.0\n")
    with pytest.raises(UsageError, match="it contains no package `tensorflow`"):
        wheel.read_wheel(path)


def test_what_is_no_wheel_is_refused(tmp_path: Path):
    named, text = tmp_path / "tensorflow.whl", tmp_path / "tensorflow_cpu-2.15.1-cp311-cp311-linux_x86_64.whl"
    named.write_text("x")
    text.write_text("x")
    with pytest.raises(UsageError, match="a wheel must keep the file name that it was built with"):
        wheel.read_wheel(named)
    with pytest.raises(UsageError, match="it cannot be read as a wheel"):
        wheel.read_wheel(text)
    with pytest.raises(UsageError, match="No such file"):
        wheel.read_wheel(tmp_path / "absent.whl")


@pytest.mark.parametrize("marker", ["", " ; python_version >= '3'"])
def test_an_address_among_what_a_wheel_needs_is_refused(tmp_path: Path, marker: str):
    path = own_tensorflow(tmp_path, needs=("numpy", f"evilpkg @ http://127.0.0.1:1/evilpkg-1.0.tar.gz{marker}"))
    with pytest.raises(UsageError, match=r"its metadata: 'evilpkg ?@ http://.*': name a package of the index, not an"):
        wheel.read_wheel(path)
