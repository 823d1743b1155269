"""A bundle of `make gpu-bundle` is installed and measures on a machine without a network."""

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_python
from tools.gpu_bundle import __main__ as packing


@pytest.mark.long
@pytest.mark.tensorflow
def test_in_a_namespace_without_interfaces_a_bundle_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    apart = ["unshare", "--net"] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace: this user can make none")
    python = require_python("3.11")
    # This takes a quarter of the time.
    monkeypatch.setattr(packing, "FILTERS", ({"id": lzma.FILTER_LZMA2, "preset": 0},))
    monkeypatch.setenv("TFCOMPARE_CACHE", os.environ.get("TFCOMPARE_CACHE", ""))
    bundle, there = tmp_path / "bundle", tmp_path / "another place"
    packing.make_bundle(["2.13"], bundle, 90, with_cuda=False, device="cpu")
    assert all(part.stat().st_size <= packing.PART_BYTES for part in bundle.glob("bundle.tar.xz.*"))
    # Neither this Python nor its packages are on that machine.
    nothing = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYENV_ROOT": "/nowhere"}
    subprocess.run([*apart, python.path, bundle / "install.py", "--to", there], env=nothing, check=True, timeout=300)
    tfcompare = there / "host" / "bin" / "tfcompare"
    ready = subprocess.run(
        [*apart, tfcompare, "run", "2.13", "--control", "--engine", "venv", "--dry-run"],
        env=nothing, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"2.13.0: ready (Python {python.version})" in ready.stdout, ready
    case = ("--case", "power[style=eager]", "--rounds", "2")
    run = ("run", "2.13", "--control", "--engine", "venv", *case, "--format", "json")
    done = subprocess.run(
        [*apart, tfcompare, *run, "--output", tmp_path / "run"],
        env=nothing, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {arm["outcome"] for arm in json.loads(done.stdout)["arms"]} == {"measured"}
    checked = subprocess.run(
        [*apart, there / "check", "--minutes", "1", "--output", tmp_path / "check"],
        env=nothing, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "neither NVML nor nvidia-smi shows a GPU" in checked.stdout, checked
    assert str(sys.base_prefix) not in (there / "host" / "pyvenv.cfg").read_text()
