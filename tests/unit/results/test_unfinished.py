"""While a run is measured, a report shows its last look; a run that was killed is judged where it ended."""

import math
import random
from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.model import Comparison, Evaluation
from orchestrator.plan.pairs import LOOKS
from orchestrator.results.compare_runs import compare_runs
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.warnings import GOING
from tests.support.builders import MS, case, finished, plan, rows, run_folder, write_stream

A = case("a")
CUT = "the run was cut short; what it measured is here"
INTERRUPTED = finished(how="interrupted", seconds=1.0)


def begun(path: Path, rounds: int, looks: tuple[int, ...] = LOOKS) -> RunFolder:
    """A run without an end, after this many rounds, in which one arm takes 20 % longer."""
    of = plan([A], looks=looks, run=path.name, metrics=("memory", "first"))
    run = run_folder(path, of)
    draw = random.Random(rounds)
    for place, version in enumerate(of.targets):
        batches = []
        for number in range(1, rounds + 1):
            wall = int(10 * MS * (1.2 if place else 1.0) * math.exp(draw.gauss(0, 0.15)))
            batches.append(rows(A, version, round=number, replicate=2 * number + place, bursts=(wall,) * 3, run=of.run))
        write_stream(run.settled / f"{version}-0.arrow", batches)
    return run


def only(evaluation: Evaluation) -> Comparison:
    [comparison] = evaluation.comparisons
    return comparison


def ends(comparison: Comparison) -> tuple[float | None, float | None]:
    return comparison.ci_low, comparison.ci_high


@pytest.mark.parametrize(("rounds", "last"), [(4, 4), (5, 4), (6, 6), (9, 8), (12, 10), (19, 16)])
def test_a_run_that_goes_on_is_judged_by_its_last_look(tmp_path: Path, rounds: int, last: int):
    """However often somebody looks, a comparison is judged from the same rounds and at the same level as by the run."""
    run = begun(tmp_path / "run", rounds)
    at_look = judge_run(run, at_look=True)
    with run.hold():
        seen = judge_run(RunFolder.open(run.path))
    assert only(seen).rounds == last
    assert {arm.rounds for arm in seen.arms} == {last}
    assert GOING in seen.warnings
    if rounds == last:
        assert ends(only(seen)) == ends(only(at_look))
    # First calls are judged once, when the rounds have ended.
    assert set(seen.metrics) == {"memory"}


def test_rounds_before_the_only_look_are_not_judged_while_the_run_goes_on(tmp_path: Path):
    run = begun(tmp_path / "run", 7, (10,))
    with run.hold():
        seen = only(judge_run(RunFolder.open(run.path)))
    assert (seen.rounds, seen.missing, seen.ci_low) == (7, 3, None)


@pytest.mark.parametrize("rounds", [5, 6, 9])
def test_a_run_that_was_killed_is_judged_as_one_that_was_interrupted(tmp_path: Path, rounds: int):
    run = begun(tmp_path / "run", rounds)
    killed = judge_run(run)
    assert CUT in killed.warnings
    assert set(killed.metrics) == {"memory", "first"}
    run.record(INTERRUPTED)
    interrupted = judge_run(run)
    assert (ends(only(killed)), only(killed).rounds) == (ends(only(interrupted)), rounds)
    with run.hold():
        assert only(judge_run(run)) == only(interrupted), "more rounds begin with what the report said"


def test_a_run_in_progress_is_not_compared_with_another(tmp_path: Path):
    going, ended = begun(tmp_path / "going", 8), begun(tmp_path / "ended", 8)
    ended.record(INTERRUPTED)
    with going.hold(), pytest.raises(UsageError, match="is still being measured; wait until it has finished"):
        compare_runs(going.path, ended.path)
