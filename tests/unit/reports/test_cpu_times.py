"""What is said of CPU times: only where a busy or noisy machine leaves a third of the rows open."""

from dataclasses import replace

import pytest

from orchestrator.model import Evaluation
from orchestrator.reports import matrix, table
from orchestrator.reports.cpu_times import describe_cpu_times
from orchestrator.reports.html.document import _summary
from orchestrator.results.warnings import check_noise
from tests.support.builders import NEW, OLD, arm, case, case_pair, comparison, evaluation, plan, version_pair

CASES = tuple(case("power", size=str(size)) for size in range(4))
OPEN = {"ratio": 1.1, "ci_low": 0.8, "ci_high": 1.5, "verdict": "inconclusive", "mde": 0.4, "spread": 0.063}
DECIDED = {"cpu_ratio": 1.05, "cpu_low": 1.03, "cpu_high": 1.07, "cpu_spread": 0.007, "cpu_verdict": "slower"}
UNDECIDED = DECIDED | {"cpu_low": 0.98, "cpu_high": 1.12, "cpu_verdict": "inconclusive"}
SLOWER = {"ratio": 2.0, "verdict": "slower"} | DECIDED


def of(*judged: dict[str, object], crowded: bool = False, **changes) -> Evaluation:
    cases = CASES[: len(judged)]
    return evaluation(
        plan=replace(plan(cases), **changes),
        arms=tuple(arm(one, version) for one in cases for version in (OLD, NEW)),
        comparisons=tuple(comparison(version_pair(one), **each) for one, each in zip(cases, judged, strict=True)),
        crowded=crowded,
    )


def test_the_rows_that_cpu_time_decides_are_named_with_their_ratios_and_both_spreads():
    found = of(OPEN | DECIDED, OPEN | UNDECIDED, OPEN | DECIDED | {"cpu_ratio": 1.0, "cpu_verdict": "same"})
    said = list(describe_cpu_times(found))
    assert said == [
        "CPU time decides 2 of 3 open comparisons: power 0 in 2.0.0 slower 1.05x (1.03-1.07), power 2 in 2.0.0 same "
        "1.00x (1.03-1.07).",
        "From round to round, ratios of CPU times vary by 0.7% and those of wall times by 6.5%: --columns +cpu-ratio "
        "shows them, and a run with --judge cpu is judged by them.",
    ]
    for report in (matrix.render_matrix(found), table.render_details(found)):
        assert " ".join(said) in " ".join(report.split())
    assert list(_summary(found))[-2:] == said
    [warning] = check_noise(found.plan, found.comparisons)
    assert "; CPU time decides 2 of these (--columns +cpu-ratio), `tfcompare doctor` shows what helps" in warning


def test_that_cpu_time_decides_nothing_is_said_as_well():
    assert list(describe_cpu_times(of(*[OPEN | UNDECIDED] * 3))) == [
        "CPU time decides none of 3 open comparisons.",
        "From round to round, ratios of CPU times vary by 0.7% and those of wall times by 6.5%: --columns +cpu-ratio "
        "shows them.",
    ]


def test_a_pair_of_cases_is_named_by_both():
    pair = case_pair(CASES[0], CASES[1])
    found = of(SLOWER, SLOWER, crowded=True)
    found = replace(found, comparisons=(comparison(pair, **OPEN, **DECIDED),))
    assert next(describe_cpu_times(found)).endswith("power 1 against power 0 in 2.0.0 slower 1.05x (1.03-1.07).")


@pytest.mark.parametrize(
    ("judged", "changes"),
    [
        # On a machine that is neither noisy nor shared, something else leaves rows open.
        ([OPEN | DECIDED | {"mde": 0.04}] * 3, {}),
        # Fewer than a third.
        ([OPEN | DECIDED, SLOWER, SLOWER, SLOWER], {"crowded": True}),
        # Too few to call a machine noisy.
        ([OPEN | DECIDED] * 2, {}),
        # Nothing is known of CPU time, or it says nothing.
        ([OPEN] * 3, {}),
        ([OPEN | DECIDED | {"cpu_verdict": None}] * 3, {"device": "gpu", "crowded": True}),
    ],
)
def test_otherwise_nothing_is_said(judged: list[dict[str, object]], changes: dict):
    assert list(describe_cpu_times(of(*judged, **changes))) == []


def test_shared_cores_are_enough_for_a_single_open_row():
    assert list(describe_cpu_times(of(OPEN | DECIDED))) == []
    assert len(list(describe_cpu_times(of(OPEN | DECIDED, crowded=True)))) == 2


def test_an_exploratory_row_is_decided_by_nothing():
    said = next(describe_cpu_times(of(OPEN | DECIDED | {"exploratory": True}, crowded=True)))
    assert said == "CPU time decides none of 1 open comparison."


def test_a_run_that_is_judged_by_cpu_time_says_so_at_its_times():
    found = of(SLOWER, judge="cpu")
    found = replace(found, arms=tuple(replace(each, wall_ms=12.5) for each in found.arms))
    text = " ".join(table.render_details(found, ("+wall",)).split())
    for words in ("judged by CPU time", "CPU time: of all its threads", "of CPU times", "12.5 ms"):
        assert words in text
    text = " ".join(matrix.render_matrix(found).split())
    assert "judged by CPU time" in text
    assert "CPU time per step" in text
