"""The made run that reports are timed with is one that reports can read."""

from pathlib import Path

from bench.report import CALLS, ROUNDS, VERSIONS, compact_run, write_run
from orchestrator.results.run import load_run


def test_a_made_run_is_whole_before_and_after_its_streams_are_compacted(tmp_path: Path):
    path = tmp_path / "run"
    assert write_run(path, 2) == 2 * len(VERSIONS) * ROUNDS * (CALLS + 4)
    before = load_run(path)
    assert {(arm.outcome, arm.rounds) for arm in before.arms} == {("measured", ROUNDS)}
    assert before.evaluation.of_metrics
    compact_run(path)
    assert load_run(path).arms == before.arms
