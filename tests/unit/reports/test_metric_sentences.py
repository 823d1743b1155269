"""What changed in addition to times: a sentence where something did, and one line where nothing did."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from orchestrator.model import ArmResult, Comparison, Evaluation, Metric, OutputComparison
from orchestrator.reports import matrix, metrics, table
from orchestrator.reports.metric_sentences import metric_sentences
from tests.support.builders import OLD, arm, case, change_arm, comparison, evaluation, plan, target, version_pair

MB = 2.0**20
CASES = tuple(case("power", size=str(size)) for size in range(3))


def of(
    *ratios: tuple[float | None, str], metric: Metric = "memory", versions: Sequence[str] = (OLD, "2.0.0")
) -> Evaluation:
    """A case for each ratio, the same in every version; more memory is needed in each later one."""
    cases = CASES[: len(ratios)]
    arms: list[ArmResult] = []
    comparisons: list[Comparison] = []
    for one, (ratio, verdict) in zip(cases, ratios, strict=True):
        for version in versions:
            share = 1.0 if version == OLD else ratio or 1.0
            arms.append(arm(one, version, memory=200 * MB * share, first=1000.0 * share))
        comparisons += [
            comparison(replace(version_pair(one, OLD, version), metric=metric), ratio, verdict)
            for version in versions[1:]
        ]
    return evaluation(
        plan=plan(cases, versions), arms=tuple(arms), comparisons=(), metrics={metric: tuple(comparisons)}
    )


@pytest.mark.parametrize(
    ("ratios", "told"),
    [
        (
            [(1.5, "slower"), (1.2, "slower"), (1.0, "same")],
            ["2.0.0 needs more memory than 1.0.0 in 2 of 3 cases (most in power 0, 1.50x: 200 MiB to 300 MiB)."],
        ),
        (
            [(0.5, "faster"), (1.1, "inconclusive")],
            [
                "2.0.0 needs less memory than 1.0.0 in 1 of 2 cases (power 0, 0.50x: 200 MiB to 100 MiB); "
                "1 inconclusive."
            ],
        ),
        (
            [(1.5, "slower"), (0.5, "faster")],
            [
                "2.0.0 needs more memory than 1.0.0 in 1 of 2 cases (power 0, 1.50x: 200 MiB to 300 MiB) and needs "
                "less memory in 1 (power 1, 0.50x: 200 MiB to 100 MiB)."
            ],
        ),
        ([(1.0, "same"), (1.0, "inconclusive")], ["peak memory: the same in 1 of 2 comparisons."]),
        ([(1.3, "inconclusive"), (None, "inconclusive")], ["peak memory: nothing decided in 1 comparison."]),
        ([(None, "inconclusive")], []),
    ],
)
def test_a_sentence_for_a_version(ratios: list[tuple[float | None, str]], told: list[str]):
    assert list(metric_sentences(of(*ratios))) == told


def test_open_first_calls_have_one_line_about_what_the_rounds_could_have_shown():
    found = of((1.0, "same"), (1.3, "inconclusive"), (0.9, "inconclusive"), metric="first")
    comparisons = [replace(each, mde=mde) for each, mde in zip(found.metrics["first"], (0.1, 0.3, 0.5), strict=True)]
    told = metric_sentences(replace(found, metrics={"first": tuple(comparisons)}))
    assert told[-1] == (
        "first call: only changes beyond 40% would have been seen in 2 open comparisons; --metric first measures more "
        "rounds for them."
    )
    asked = replace(found, plan=replace(found.plan, metrics=("first",), decides=("first",)))
    assert metric_sentences(replace(asked, metrics={"first": tuple(comparisons)}))[-1].endswith("open comparisons.")
    wild = [replace(each, mde=3.0) for each in comparisons]
    told = metric_sentences(replace(found, metrics={"first": tuple(wild)}))
    assert "only changes beyond a factor of two would have been seen in 2 open comparisons" in told[-1]


def test_first_calls_that_are_all_decided_have_no_such_line():
    assert not any(
        "only changes" in line for line in metric_sentences(of((1.0, "same"), (2.0, "slower"), metric="first"))
    )


def test_what_all_cases_of_a_version_share_names_no_case():
    found = of((1.5, "slower"), metric="import")
    arms = tuple(change_arm(arm, **{"import": 2000.0 if arm.target == OLD else 3000.0}) for arm in found.arms)
    told = metric_sentences(replace(found, arms=arms))
    assert told == ("2.0.0 takes longer to import than 1.0.0 (1.50x: 2.00 s to 3.00 s).",)


def test_versions_in_which_nothing_changed_share_a_line():
    found = of((1.5, "slower"), versions=(OLD, "2.0.0", "2.1.0"))
    [worse, same] = found.metrics["memory"]
    same = replace(same, ratio=1.0, verdict="same")
    told = metric_sentences(replace(found, metrics={"memory": (worse, same)}))
    assert told[1:] == ("peak memory in the others: the same in 1 of 1 comparison.",)


def test_of_many_versions_those_that_changed_most_are_told():
    versions = (OLD, *(f"2.{minor}.0" for minor in range(5)))
    found = of((1.5, "slower"), versions=versions)
    own = [replace(each, ratio=1.1 + number / 10) for number, each in enumerate(found.metrics["memory"])]
    told = metric_sentences(replace(found, metrics={"memory": tuple(own)}))
    assert [sentence.split()[0] for sentence in told] == ["2.2.0", "2.3.0", "2.4.0", "peak"]
    assert told[-1] == "peak memory changed less in 2.0.0, 2.1.0: --table metrics."


def test_a_control_arm_is_no_version():
    found = of((1.5, "slower"))
    [only] = found.metrics["memory"]
    control = replace(only.pair, candidate=target(f"{OLD}+control"))
    assert metric_sentences(replace(found, metrics={"memory": (replace(only, pair=control),)})) == ()


def output(one: int, verdict: str, **more: object) -> OutputComparison:
    return replace(
        OutputComparison(case=CASES[one], baseline=target(OLD), candidate=target("2.0.0"), verdict=verdict), **more
    )


OUTPUTS = (
    output(0, "differs", difference=0.12),
    output(1, "differs", reason="float32[3,2], not float32[2,3]"),
    output(2, "equal within tolerance", difference=2e-6, ulps=17.0),
)


def test_results_that_differ_are_named_and_the_others_counted():
    told = metric_sentences(replace(of((1.0, "same"), (1.0, "same"), (1.0, "same")), outputs=OUTPUTS))
    assert told[1:] == (
        "2.0.0 returns different results from 1.0.0 in 2 of 3 cases (most in power 1: float32[3,2], not float32[2,3]).",
        "`tfcompare profile --explain-output` names the first layer of Keras that returns something else.",
        "results of 3 comparisons: 1 equal within tolerance.",
    )


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    monkeypatch.setenv("COLUMNS", "120")
    return replace(of((1.5, "slower"), (1.0, "same"), (1.1, "inconclusive")), outputs=OUTPUTS)


def test_the_table_has_a_row_for_each_case_and_the_sum_of_what_was_found(whole: Evaluation):
    drawn = " ".join(str_of(metrics.layout(whole, 120)).split())
    assert "peak memory, margin 5%" in drawn
    assert "power 0 200 MiB ▲ 1.50x 1.46-1.54" in drawn
    assert "power 0 ≠ 12%" in drawn
    assert "power 1 ≠ (1)" in drawn
    assert "power 2 ≈ 2e-06" in drawn
    assert "(1) float32[3,2], not float32[2,3]" in drawn


def test_the_details_begin_with_these_sentences_and_the_matrix_has_rows(whole: Evaluation):
    details, short = (" ".join(str_of(layout(whole, 120)).split()) for layout in (table.layout, matrix.layout))
    assert "2.0.0 needs more memory than 1.0.0 in 1 of 3 cases" in details
    assert "peak memory ▲ up to 1.50x in 1 of 3" in short


def test_a_case_without_a_figure_has_no_row(whole: Evaluation):
    arms = tuple(change_arm(arm, memory=None) if arm.case == CASES[1] else arm for arm in whole.arms)
    [table] = str_of(metrics.layout(replace(whole, arms=arms, outputs=()), 120)).split("margin 5%")[1:]
    assert "power 0" in table
    assert "power 1" not in table


def test_a_run_in_which_only_times_were_compared_says_so():
    assert "only times were compared" in str_of(metrics.layout(evaluation(), 100))


def str_of(layout: object) -> str:
    from orchestrator.terminal.text import render_plain

    return render_plain(lambda width: layout)


@pytest.mark.parametrize(
    ("ratios", "told"),
    [
        (
            [(1.5, "slower"), (1.2, "slower"), (1.3, "inconclusive")],
            "2.0.0 needs more memory than 1.0.0 in 1 of 3 cases (power 0, 1.50x: 200 MiB to 300 MiB); 1 inconclusive; "
            "1 not certain among all comparisons.",
        ),
        (
            [(1.0, "same"), (1.2, "slower")],
            "peak memory: the same in 1 of 2 comparisons; 1 not certain among all comparisons.",
        ),
        (
            [(1.3, "inconclusive"), (1.2, "slower")],
            "peak memory: nothing decided in 2 comparisons; 1 not certain among all comparisons.",
        ),
    ],
)
def test_what_is_certain_in_its_row_alone_changes_nothing(ratios: list[tuple[float, str]], told: str):
    found = of(*ratios)
    first, second, *others = found.metrics["memory"]
    marked = (first, replace(second, row_only=True), *others)
    assert metric_sentences(replace(found, metrics={"memory": marked})) == (told,)
