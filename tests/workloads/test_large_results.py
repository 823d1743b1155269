"""A result of gigabytes costs its replicate time, and hardly any memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

SIZE = 2 * 2**30
# Reads the whole file as float32 and may take 32 MiB for that; the pages of the file are none of its data.
PROGRAM = """
import resource, sys
import numpy
from workloads.sketches import sketch

with open("/proc/self/status") as status:
    [held_kb] = [int(line.split()[1]) for line in status if line.startswith("VmData:")]
limit = held_kb * 1024 + 32 * 2 ** 20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    numpy.ones(64 * 2 ** 20, "u1")
except MemoryError:
    print(sketch(numpy.memmap(sys.argv[1], "float32", "r")))
"""


@pytest.mark.slow
def test_two_gigabytes_take_little_memory(tmp_path: Path):
    [line] = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:")]
    if int(line.split()[1]) * 1024 < SIZE + 2**30:
        pytest.skip("less than 3 GiB of memory are free")
    # A file without blocks: the disk holds nothing of it.
    path = tmp_path / "zeros"
    path.touch()
    os.truncate(path, SIZE)
    argv = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    path.unlink()
    [part] = json.loads(done.stdout or done.stderr)["parts"]
    assert (part["type"], part["shape"]) == ("float32", [SIZE // 4])
    assert sum(band["count"] for band in part["bands"]) == SIZE // 4
