"""Reports of runs whose targets are compared with their neighbours, or each with all others."""

from pathlib import Path

import pytest

from orchestrator.model import Evaluation
from orchestrator.plan.pairs import plan_pairs
from orchestrator.reports import matrix
from orchestrator.reports.html.calls import Calls
from orchestrator.reports.html.document import render_page
from orchestrator.reports.summary import sentences
from orchestrator.results.run import load_run
from tests.support.builders import MS, case, finished, plan, rows, run_folder, targets, workload, write_stream

CASES = (case("power", style="eager"), case("power", style="function"))
VERSIONS = ("2.20.0+keras==3.5.0", "2.20.0+keras==3.8.0", "2.20.0+numpy<2")
TIMES = (10.0, 20.0, 40.0)


@pytest.fixture
def measured(tmp_path: Path):
    def measure(pairing, times=TIMES) -> Path:
        pairs = plan_pairs(CASES, targets(VERSIONS), {"power": workload()}, pairing=pairing)
        run = run_folder(tmp_path / pairing, plan(CASES, VERSIONS, pairs=pairs))
        for place, (version, ms) in enumerate(zip(VERSIONS, times, strict=True)):
            batches = [
                rows(each, version, round=number, replicate=100 * number + 10 * place + which,
                     bursts=(int(ms * MS * (1 + number / 1000)),) * 3)
                for number in range(1, 7)
                for which, each in enumerate(CASES)
            ]  # fmt: skip
            write_stream(run.settled / f"{version}-1.arrow", batches)
        run.record(finished(seconds=30.0))
        return run.path

    return measure


def draw(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "120")
    return matrix.render_matrix(evaluation).splitlines()


def test_neighbours_stand_in_one_table_and_say_what_each_is_against(measured, monkeypatch: pytest.MonkeyPatch):
    evaluation = load_run(measured("neighbours")).evaluation
    lines = draw(evaluation, monkeypatch)
    assert lines[0].startswith(
        "2.20.0+keras==3.8.0 and 2.20.0+numpy<2, each against the one before, from 2.20.0+keras==3.5.0 on"
    )
    [eager] = [line for line in lines if line.startswith(" power eager")]
    assert eager.count("2.00x") == 2
    assert sentences(evaluation) == (
        "2.20.0+keras==3.8.0 is slower than 2.20.0+keras==3.5.0 in 2 of 2 cases (most in power eager, 2.00x).",
        "2.20.0+numpy<2 is slower than 2.20.0+keras==3.8.0 in 2 of 2 cases (most in power eager, 2.00x).",
    )


def test_all_pairs_have_a_table_for_each_target_that_others_are_against(measured, monkeypatch: pytest.MonkeyPatch):
    evaluation = load_run(measured("all")).evaluation
    text = "\n".join(draw(evaluation, monkeypatch))
    assert text.startswith("3 targets, each against all others")
    assert text.count("4.00x") >= 2
    first, second = (text.index(name) for name in ("20.1 ms", "10.0 ms"))
    assert second < first
    told = sentences(evaluation)
    assert "2.20.0+numpy<2 is slower than 2.20.0+keras==3.5.0 in 2 of 2 cases (most in power eager, 4.00x)." in told
    assert "2.20.0+numpy<2 is slower than 2.20.0+keras==3.8.0 in 2 of 2 cases (most in power eager, 2.00x)." in told


@pytest.mark.parametrize(("pairing", "count"), [("first", 4), ("neighbours", 4), ("all", 6)])
def test_equal_targets_are_the_same_however_they_are_paired(measured, pairing: str, count: int):
    evaluation = load_run(measured(pairing, (10.0, 10.0, 10.0))).evaluation
    assert [each.verdict for each in evaluation.comparisons] == count * ["same"]
    assert all("is the same as" in sentence for sentence in sentences(evaluation))


@pytest.mark.parametrize("pairing", ["first", "neighbours", "all"])
def test_no_sign_of_a_pin_is_markup_on_the_page(measured, pairing: str):
    calls = Calls()
    page = render_page(load_run(measured(pairing), also=calls.add), calls)
    assert "2.20.0+numpy<2" not in page
    assert "2.20.0+numpy&lt;2" in page
