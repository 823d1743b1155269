"""A budget that is too short for one round of all cases: some are measured, and --resume measures the others."""

from pathlib import Path

import pytest

from tests.conftest import run_command
from tests.support.end_to_end import Answer, compare, parse

OWN = Path(__file__).parent / "workloads"
CASES = 30


def number_of(shown: Answer) -> int:
    return int(shown["params"]["tens"] + shown["params"]["ones"])


pytestmark = [pytest.mark.usefixtures("stubbed"), pytest.mark.slow]


def test_a_budget_ends_the_first_round_and_the_cases_it_did_not_hold_are_postponed(
    tfcompare: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    flags = ("--engine", "venv", "--versions", "1.14,2.0", "--workload-folder", OWN, "--case", "many", "--output", run)
    code, answer, stderr = compare(tfcompare, *flags, "--budget", "2s")
    assert code == 0, stderr
    assert "Traceback" not in stderr
    reached = {number_of(arm) for arm in answer["arms"] if arm["outcome"] == "measured"}
    assert 0 < len(reached) < CASES
    # In the order of the plan.
    assert reached == set(range(len(reached)))
    ratios = [comparison for comparison in answer["comparisons"] if comparison["kind"] == "target"]
    assert len(ratios) == CASES
    never = [ratio for ratio in ratios if number_of(ratio) not in reached]
    assert {ratio["verdict"] for ratio in never} == {"inconclusive"}
    assert {ratio["reason"] for ratio in never} == {
        "postponed: too few rounds fit into the budget; --resume measures it"
    }
    line = " ".join(stderr.split())
    assert "postponed, because the budget is too short for them: many[tens=0,ones=" in line
    assert answer["run"]["ended_by_budget"].startswith("the budget of 2 s ended the run ")
    assert "the budget of" not in " ".join(answer["warnings"])
    done = run_command(tfcompare, "run", "--resume", run, "--rounds", "2", "--format", "json")
    assert done.returncode == 0, done.stderr
    answer = parse(done)
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    assert len(answer["arms"]) == 2 * CASES
    assert all(arm["rounds"] >= 2 for arm in answer["arms"])
