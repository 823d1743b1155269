"""The newest run is the one that was written last, and none that claims to be of the future."""

import os
import time
from pathlib import Path

from orchestrator.results.find_runs import FUTURE_S, newest_run, runs_in


def make(folder: Path, name: str, written: float) -> Path:
    (folder / name).mkdir()
    (folder / name / "plan.json").write_text("{}")
    os.utime(folder / name / "plan.json", (written, written))
    return folder / name


def test_a_run_from_before_the_clock_was_set_back_is_not_the_newest(tmp_path: Path):
    now = time.time()
    ahead = make(tmp_path, "ahead", now + 3600)
    further = make(tmp_path, "further", now + 7200)
    older, newer = make(tmp_path, "older", now - 60), make(tmp_path, "newer", now - 30)
    assert newest_run(tmp_path) == newer
    assert runs_in(tmp_path) == [newer, older, further, ahead]


def test_the_clock_of_another_machine_may_be_a_little_ahead(tmp_path: Path):
    now = time.time()
    make(tmp_path, "older", now - 30)
    assert make(tmp_path, "remote", now + FUTURE_S / 2) == newest_run(tmp_path)
