"""To add a metric takes one entry in one table: it is measured, shown, written, followed over nights and guarded."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.conftest import ROOT
from tests.support.truths import Stage

ENTRY = """
    MetricSpec(
        name="faults", about="page faults", meaning="those that need no disk", more="takes more page faults",
        less="takes fewer page faults", worse="more", better="less", unit="count", show="{:.0f}".format, margin=0.2,
        values=lambda replicate: log_of(replicate.minor_faults), figure=lambda replicate: replicate.minor_faults,
    ),
"""
# Each call writes to this many new pages.
PAGES = """
    import mmap
    def build(tf, params):
        def step():
            memory = mmap.mmap(-1, 4096 * (200 if NEWER else 20))
            for place in range(0, len(memory), 4096):
                memory[place] = 1
            time.sleep(0.002)
        return step
"""
# A step of this metric in the nights of a history, and what is judged of it.
NIGHTS = """
    from dataclasses import replace
    from orchestrator.history.wording import describe_alarm
    from tests.support.judged_nights import lived, made, opened
    for step in (1.5, 1.0):
        points = [replace(point, metric="faults") for point in made(30, {20: step})]
        print([describe_alarm(alarm) for alarm in opened(lived(points, first=18))])
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The program with one entry more."""
    tree = tmp_path / "tree"
    for name in ("orchestrator", "workloads", "images"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "tests").symlink_to(ROOT / "tests")
    table = tree / "orchestrator" / "metrics" / "table.py"
    before, head, entries = table.read_text().partition("SPECS = (")
    table.write_text(before + head + ENTRY + entries)
    return tree


def call(tree: Path, *words: str | Path, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=tree, env={**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "160"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_metric_is_one_entry(tmp_path: Path, tree: Path) -> None:
    stage, program = Stage(tmp_path / "truth", {}, {}, tree=tree), ("-m", "orchestrator")
    flags = ("--rounds", "4", "--metric", "faults", "--fail-on", "faults:more>50%")
    code, answer, told = stage.measure({"pages.py": PAGES}, *flags, differ=True)
    assert code == 1, told
    assert "faults:more" in told
    [judged] = answer["metrics"]
    assert (judged["metric"], judged["verdict"]) == ("faults", "slower")
    old, new = (arm["figures"]["faults"] for arm in answer["arms"])
    assert new > 2 * old
    code, answer, told = stage.measure({"pages.py": PAGES}, *flags, differ=False)
    assert code == 0, told
    assert answer["metrics"][0]["verdict"] in ("same", "inconclusive")

    run, history = tmp_path / "truth" / "different" / "run", tmp_path / "history"
    shown = call(tree, *program, "report", run, "--table", "details", "--columns", "+faults")
    assert "2.0.0 takes more page faults than 1.14.0" in " ".join(shown.split())
    assert f"{new:.0f}" in shown
    assert json.loads(call(tree, *program, "report", run, "--format", "json"))["metrics"] == [judged]
    table = call(tree, *program, "export", run, "--format", "csv", "--table", "arms")
    assert {float(row["faults"]) for row in csv.DictReader(io.StringIO(table))} == {old, new}
    call(tree, *program, "history", "import", run, "--history", history)
    followed = call(tree, *program, "history", "--history", history, "--metric", "faults")
    assert "page faults" in followed
    alarms = call(tree, "-c", dedent(NIGHTS)).splitlines()
    assert alarms[0].startswith("['1.5")
    assert "more page faults" in alarms[0]
    assert alarms[1] == "[]"
