"""Environments that start from others: which one is chosen, what is shared, and that nothing writes into it."""

import json
import os
import sys
from pathlib import Path

import pytest

from orchestrator.catalog.lockfile import Pin, describe_pins
from orchestrator.engines.folder_lock import FolderLock
from orchestrator.engines.venv.donor import MARKER, describe_python, hold_donor, link_from, select
from orchestrator.engines.venv.interpreters import Interpreter

PYTHON = Interpreter(Path(sys.executable), "3.11.7", "/usr", "3.11.7 of Monday")
TF, KERAS, NUMPY, SIX = (
    Pin(name, number, (64 * digit,))
    for name, number, digit in (
        ("tensorflow-cpu", "2.20.0", "1"), ("keras", "3.5.0", "2"), ("numpy", "2.1.3", "3"), ("six", "1.17.0", "4"),
    )
)  # fmt: skip
NEWER = Pin("keras", "3.8.0", (64 * "5",))


def environment(folder: Path, name: str, pins: list[Pin], python: Interpreter = PYTHON, marked: bool = True) -> Path:
    path = folder / name
    packages = path / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    for pin in pins:
        (packages / f"{pin.name}.py").write_text(f"number = {pin.number!r}\n")
    (packages / "link.py").symlink_to("six.py")
    (packages / "linked").symlink_to("..")
    (path / "bin").mkdir()
    (path / "bin" / "python").symlink_to(sys.executable)
    (path / "bin" / "saved_model_cli").write_text(f"#!{path}/bin/python\nprint('it runs')\n")
    (path / "bin" / "saved_model_cli").chmod(0o755)
    (path / "lib64").symlink_to("lib")
    (path / "pyvenv.cfg").write_text("home = /usr\n")
    if marked:
        marker = {"python": describe_python(python), "pins": describe_pins(pins)}
        (path / MARKER).write_text(json.dumps(marker))
    return path


def test_the_environment_that_shares_most_is_chosen_and_the_difference_is_named(tmp_path: Path):
    environment(tmp_path, "far", [TF, Pin("keras", "3.1.0", (64 * "6",)), NUMPY, Pin("six", "1.0", (64 * "7",))])
    extra = Pin("wrapt", "1.0", (64 * "8",))
    near = environment(tmp_path, "near", [TF, KERAS, NUMPY, SIX, extra])
    with hold_donor(tmp_path, describe_pins([TF, NEWER, NUMPY, SIX]), PYTHON) as donor:
        assert donor
        assert (donor.path, donor.changed, donor.gone) == (near, {"keras"}, {"wrapt"})
        # Nobody removes it meanwhile.
        assert not FolderLock(near).exclude()
    assert FolderLock(near).exclude()
    assert select([TF, NEWER, NUMPY, SIX], donor.changed) == f"keras==3.8.0 --hash=sha256:{64 * '5'}\n"


OTHER_FILE = Pin("tensorflow-cpu", "2.20.0", (64 * "9",))
REBUILT = Interpreter(Path(sys.executable), "3.11.7", "/usr", "3.11.7 of Tuesday")


@pytest.mark.parametrize(
    ("pins", "python", "marked"),
    [
        ([OTHER_FILE, KERAS, NUMPY, SIX], PYTHON, True),
        ([KERAS, NUMPY, SIX], PYTHON, True),
        ([TF], PYTHON, True),
        ([TF, KERAS, NUMPY, SIX], REBUILT, True),
        ([TF, KERAS, NUMPY, SIX], PYTHON, False),
        ([], PYTHON, True),
    ],
    ids=["another file", "no TensorFlow", "too little", "another build of Python", "incomplete", "a wheel of the user"],
)
def test_an_environment_that_is_not_alike_gives_nothing(
    tmp_path: Path, pins: list[Pin], python: Interpreter, marked: bool
):
    environment(tmp_path, "other", pins, python, marked)
    with hold_donor(tmp_path, describe_pins([TF, NEWER, NUMPY, SIX]), PYTHON) as donor:
        assert donor is None


def test_an_environment_is_not_taken_if_what_is_removed_would_take_files_of_another_package(tmp_path: Path):
    both = Pin("tensorflow", "2.20.0", (64 * "8",))
    near = environment(tmp_path, "near", [TF, both, KERAS, NUMPY, SIX])
    far = environment(tmp_path, "far", [TF, KERAS, Pin("numpy", "2.0.0", (64 * "7",)), SIX])
    for pin in (TF, both):
        info = near / "lib" / "python3.11" / "site-packages" / f"{pin.name.replace('-', '_')}-2.20.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {pin.name}\nVersion: 2.20.0\n")
        (info / "RECORD").write_text(f"tensorflow/__init__.py,sha256=x,1\n{info.name}/RECORD,,\n")
    with hold_donor(tmp_path, describe_pins([TF, KERAS, NUMPY, SIX]), PYTHON) as donor:
        assert donor
        assert donor.path == far
    # Where nothing is removed, sharing files does no harm.
    with hold_donor(tmp_path, describe_pins([TF, both, NEWER, NUMPY, SIX]), PYTHON) as donor:
        assert donor
        assert donor.path == near


@pytest.mark.parametrize("text", ["", "[]", "{", '{"python": 1, "pins": 5}', '{"pins": {"tensorflow-cpu": null}}'])
def test_a_marker_that_says_nothing_useful_gives_nothing(tmp_path: Path, text: str):
    (environment(tmp_path, "other", [TF, KERAS]) / MARKER).write_text(text)
    with hold_donor(tmp_path, describe_pins([TF, KERAS]), PYTHON) as donor:
        assert donor is None


def test_files_are_shared_and_scripts_name_the_python_of_their_environment(tmp_path: Path):
    donor = environment(tmp_path, "donor", [TF, KERAS, NUMPY, SIX])
    new = tmp_path / "new"
    (new / "bin").mkdir(parents=True)
    (new / "bin" / "python").symlink_to(sys.executable)
    (new / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    link_from(donor, new)
    packages = new / "lib" / "python3.11" / "site-packages"
    shared = donor / "lib" / "python3.11" / "site-packages"
    assert (packages / "keras.py").stat().st_ino == (shared / "keras.py").stat().st_ino
    assert (os.readlink(packages / "link.py"), os.readlink(packages / "linked")) == ("six.py", "..")
    assert (new / "bin" / "saved_model_cli").read_text() == f"#!{new}/bin/python\nprint('it runs')\n"
    assert os.access(new / "bin" / "saved_model_cli", os.X_OK)
    assert not (new / MARKER).exists()
    assert not (new / "pyvenv.cfg").exists()
    # pip replaces a file by a new one of its name, and so leaves the donor's as it is.
    (packages / "keras.py").unlink()
    (packages / "keras.py").write_text("number = '3.8.0'\n")
    assert (shared / "keras.py").read_text() == "number = '3.5.0'\n"
