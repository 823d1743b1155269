"""The journal says how each arm ended."""

from pathlib import Path

from orchestrator.model import Ended
from orchestrator.results.endings import read_endings
from tests.support.builders import OLD, plan, run_directory


def test_the_journal_keeps_what_tensorflow_states_of_its_threads(tmp_path: Path):
    run = run_directory(tmp_path / "run", plan())
    for threads in ((1, 2), (0, 0), None, ()):
        run.record(Ended(version=OLD, case="a", round=1, replicate=99, outcome="measured", threads=threads))
    assert read_endings(run).threads == {("a", OLD): {(1, 2), (0, 0)}}
