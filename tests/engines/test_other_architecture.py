"""Versions for Linux on ARM, as the index has them: they are resolved for it here, and none has been run there.

The release with the oldest wheels is not among them: its metadata is in a wheel of hundreds of megabytes.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import lockfile, user_data, uv
from orchestrator.machine import supported
from tests.support.commands import called


@pytest.fixture
def on_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(supported.platform, "machine", lambda: "aarch64")
    catalog.reread()
    yield
    monkeypatch.undo()
    catalog.reread()


def test_a_dry_run_locks_what_the_index_has_for_arm(on_arm: None, tmp_path: Path, monkeypatch, capsys):
    words = ("run", "2.9", "2.16", "2.21", "--engine", "venv", "--dry-run", "--format", "json", "-c", "power")
    assert called(monkeypatch, *words) == 0
    out, err = capsys.readouterr()
    states = {each["target"]: each for each in json.loads(out)["targets"]}
    assert states["2.9.3"]["state"] == "impossible"
    assert "TensorFlow has wheels for Linux on aarch64 from 2.10 on" in json.dumps(states["2.9.3"])
    assert {states[number]["state"] for number in ("2.16.2", "2.21.0")} == {"to build"}
    assert "2.16.2: locking it for aarch64" in err
    for number in ("2.16.2", "2.21.0"):
        [path] = user_data.locks().glob(f"{number}-cpu-py*-aarch64.txt")
        pins = {pin.name: pin for pin in lockfile.read_lock(path)}
        assert pins["tensorflow"].number == number
        assert all(pin.hashes for pin in pins.values())
        assert not re.search(r"nvidia|cpu-aws", path.read_text())
    # uv finds a file for that machine for every pin, with a hash of the lock.
    binary = uv.find_uv()
    assert binary
    install = [
        binary,
        *uv.INSTALL,
        *uv.target_arguments(path.stem.split("-py")[1].split("-")[0]),
        "--dry-run",
        "-r",
        str(path),
    ]
    done = subprocess.run(
        [*install, "--target", str(tmp_path / "there"), "--no-config"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "aarch64" in " ".join(install)
