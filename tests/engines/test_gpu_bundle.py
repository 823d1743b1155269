"""A bundle of `make gpu-bundle` is installed and measures on a machine without a network."""

import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_python
from tests.engines.mirror import leave_network, measure_without_network
from tools.gpu_bundle import __main__ as packing


@pytest.mark.long
@pytest.mark.tensorflow
def test_in_a_namespace_without_interfaces_a_bundle_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    apart = leave_network()
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
    flags = ("2.13", "--control", "--case", "power[style=eager]")
    assert measure_without_network(tfcompare, tmp_path / "run", nothing, *flags) == {"measured"}
    checked = subprocess.run(
        [*apart, there / "check", "--minutes", "1", "--output", tmp_path / "check"],
        env=nothing, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "neither NVML nor nvidia-smi shows a GPU" in checked.stdout, checked
    assert str(sys.base_prefix) not in (there / "host" / "pyvenv.cfg").read_text()
