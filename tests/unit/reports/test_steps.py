"""What a program's steps and losses look like in the tables, and examples per second of a workload."""

from dataclasses import replace

import pytest

from orchestrator.model import Case, Evaluation
from orchestrator.reports import matrix, table
from orchestrator.reports.html.rows import ARM_COLUMNS, fit_columns
from tests.support.builders import arm, change_arm, comparison, evaluation, plan, version_pair

PROGRAM = Case("python train.py --epochs 2", ())


@pytest.fixture
def measured() -> Evaluation:
    """A program that is slower as a whole, by its start, and whose steps are faster."""
    arms = (
        arm(PROGRAM, "2.0.0", time=4000.0, first=None, first_step_ms=800.0, step=20.0, losses=(0.9, 0.5)),
        arm(PROGRAM, "2.13.0", time=6000.0, first=None, first_step_ms=900.0, step=10.0, losses=(0.9, 0.25)),
    )
    whole = version_pair(PROGRAM, "2.0.0", "2.13.0")
    comparisons = (comparison(whole, 1.5, "slower"), comparison(replace(whole, metric="step"), 0.5, "faster"))
    return evaluation(plan=plan([PROGRAM], ("2.0.0", "2.13.0")), arms=arms, comparisons=comparisons)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "140")


def line(drawn: str, *words: str) -> str:
    [found] = [line for line in drawn.splitlines() if all(word in line for word in words)]
    return found


def test_the_matrix_has_a_row_for_the_whole_and_one_for_the_steps(measured: Evaluation):
    drawn = matrix.render_matrix(measured)
    assert "1.50x" in line(drawn, "python train.py --epochs 2", "4.00 s")
    assert "0.50x" in line(drawn, "python train.py --epochs 2, a step of fit", "20.0 ms")
    assert line(drawn, "loss after the last epoch: 2.0.0 0.5, 2.13.0 0.25")
    # Two rows of one case are no suite.
    assert "geometric mean" not in drawn
    assert drawn.startswith("2.13.0 against 2.0.0, time per step · run ")


def test_the_details_have_a_table_of_steps(measured: Evaluation):
    drawn = table.render_details(measured)
    assert "1.50x" in line(drawn, "2.13.0", "6.00 s")
    assert "0.50x" in line(drawn, "2.13.0", "900 ms", "10.0 ms", "0.25")


def test_a_program_without_steps_has_neither(measured: Evaluation):
    arms = tuple(change_arm(each, step=None, first_step_ms=None, losses=()) for each in measured.arms)
    plain = replace(measured, arms=arms, comparisons=measured.comparisons[:1])
    for drawn in (matrix.render_matrix(plain), table.render_details(plain)):
        assert "a step of fit" not in drawn
        assert "loss after" not in drawn


def test_examples_per_second_are_a_column_where_a_workload_counts_them():
    with_items = evaluation()
    drawn = table.render_details(replace(with_items, arms=tuple(replace(each, items=32) for each in with_items.arms)))
    # 32 examples in steps of 10 ms.
    assert "3,200" in line(drawn, "2.0.0", "10.0 ms", "1.00x")
    assert "items/s" not in table.render_details(with_items)


def test_the_page_of_a_program_has_no_columns_of_calls():
    measured = plan([PROGRAM], ("2.0.0", "2.13.0"))
    usual = [column.header for column in fit_columns(ARM_COLUMNS, measured)]
    of_program = [
        column.header for column in fit_columns(ARM_COLUMNS, replace(measured, program=("python", "train.py")))
    ]
    assert {"Time per step", "First call", "Build"} <= set(usual)
    assert of_program == [*usual[:-4], "Whole time", "Rounds"]
