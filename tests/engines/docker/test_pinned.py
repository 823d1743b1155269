"""A workload folder in a container: a copy made when the run began, with large files in their places, read-only."""

import json
from pathlib import Path
from textwrap import dedent

from tests.conftest import run_command

WORKLOAD = """
    import os

    HERE = os.path.dirname(__file__)

    def build(tf, params):
        for name in ("large.bin", "data/large.bin"):
            assert os.path.getsize(os.path.join(HERE, name)) == 11 * 10**6
            try:
                open(os.path.join(HERE, name), "ab")
            except OSError as error:
                assert error.strerror == "Read-only file system", error.strerror
            else:
                raise AssertionError("a large file can be written to")
        with open(os.path.join(HERE, "data", "small.txt")) as file:
            assert file.read() == "small"
        return lambda: 1.0
"""


def test_large_files_are_mounted_and_small_ones_copied(tfcompare: str, stub_base: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "data").mkdir(parents=True)
    (mine / "reads.py").write_text(dedent(WORKLOAD))
    (mine / "data" / "small.txt").write_text("small")
    for name in ("large.bin", "data/large.bin"):
        with (mine / name).open("wb") as file:
            file.truncate(11 * 10**6)
        (mine / name).chmod(0o666)
    out = tmp_path / "run"
    done = run_command(
        tfcompare, "run", "--versions", "1.14,2.0", "--engine", "docker", "--base", stub_base, "--rounds", "2",
        "--workload-folder", mine, "--format", "json", "--output", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {arm["outcome"] for arm in json.loads(done.stdout)["arms"]} == {"measured"}
    assert [one["name"] for one in json.loads((out / "plan.json").read_text())["large"]] == [
        "data/large.bin",
        "large.bin",
    ]
    assert (out / "workloads" / "data" / "small.txt").read_text() == "small"
    (mine / "reads.py").unlink()
    more = run_command(tfcompare, "run", "--resume", out, "--rounds", "2", "--base", stub_base, "--quiet")
    assert more.returncode in (0, 3), more.stderr
