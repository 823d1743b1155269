"""Many versions as a trend, to the letter; `UPDATE_SNAPSHOTS=1 pytest tests/unit/reports` writes it anew for review."""

import json
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from orchestrator.cli.show import ReportChoice
from orchestrator.model import Case, Evaluation
from orchestrator.reports import html, trend
from orchestrator.reports.html.escape import escape_value as shown_text
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.text import render_plain
from tests.conftest import ROOT
from tests.support import scenes
from tests.support.builders import arm, case_pair, comparison, plan, version_pair
from tests.support.kept import kept
from tests.support.trends import POWER, PREDICT, RELEASES, written

SCHEMA = json.loads((ROOT / "docs" / "schema" / "trend-1.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("run") / "run")


@pytest.fixture(scope="module")
def measured(folder: Path) -> Evaluation:
    return judge_run(RunFolder.open(folder))


def text(of: Evaluation) -> str:
    return render_plain(lambda width: trend.layout(of, width)) + "\n"


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_twenty_three_versions_are_what_the_snapshot_shows(monkeypatch, measured: Evaluation, width: int):
    monkeypatch.setenv("COLUMNS", str(width))
    found = text(measured)
    assert found == kept(f"trend-{width}", found)
    assert all(cell_len(line) <= width for line in found.splitlines())


def steps(of: Evaluation, case: Case) -> Mapping[str, str]:
    return {str(one.pair.candidate): one.verdict for one in of.neighbours if one.pair.case == case}


def test_a_step_is_judged_from_the_rounds_of_its_two_versions(measured: Evaluation):
    found = steps(measured, PREDICT)
    assert {version for version, verdict in found.items() if verdict == "slower"} == {"2.1.4", "2.2.3", "2.13.0"}
    assert {version for version, verdict in found.items() if verdict == "faster"} == {"2.4.4"}
    assert {version for version, verdict in found.items() if verdict == "inconclusive"} == {"2.16.2", "2.17.1"}
    assert len(found) == len(RELEASES) - 1
    one = next(step for step in measured.neighbours if step.pair.candidate == "2.2.3" and step.pair.case == PREDICT)
    assert one.pair.baseline == "2.1.4"
    assert one.ratio == pytest.approx(1.25, rel=0.02)
    assert one.rounds == 6


def test_a_version_without_a_time_is_stepped_over(measured: Evaluation):
    found = [one.pair for one in measured.neighbours if one.pair.case == POWER]
    assert (found[0].baseline, found[0].candidate) == ("1.14.0", "1.15.5")
    assert steps(measured, POWER)["2.0.0"] == "faster"


def test_where_the_baseline_has_no_time_the_oldest_that_has_one_takes_its_place(measured: Evaluation):
    assert {one.pair.baseline for one in measured.references} == {"1.14.0"}
    assert {one.pair.case for one in measured.references} == {POWER}
    found = trend.trend_as_object(measured)["trends"][1]["targets"]
    assert [one["verdict"] for one in found[2:5]] == ["same", "faster", "faster"]
    assert "ratios are to 1.14.0: 1.13.2 has no time." in text(measured)


def test_a_run_of_many_versions_is_shown_as_a_trend_and_one_of_few_as_verdicts(capsys, folder, measured: Evaluation):
    ReportChoice().show(measured, folder)
    assert "steps that differ: 4 of 22" in capsys.readouterr().out
    ReportChoice(table="verdicts").show(measured, folder)
    assert capsys.readouterr().out.startswith("22 targets against 1.13.2, time per step · run ")
    ReportChoice(columns=("time",)).show(measured, folder)
    assert "steps that differ" not in capsys.readouterr().out
    ReportChoice().show(scenes.everything(), folder)
    assert "steps that differ" not in capsys.readouterr().out
    ReportChoice(format="json").show(measured, folder)
    assert json.loads(capsys.readouterr().out)["schema"] == "tfcompare.comparison/1"


def test_what_stands_inside_a_version_is_pointed_at(measured: Evaluation):
    inside = comparison(case_pair(POWER, PREDICT, "2.0.0"), 2.0, "slower")
    assert "--table details" in text(replace(measured, comparisons=(*measured.comparisons, inside)))
    assert "--table details" not in text(measured)


def test_the_object_keeps_its_schema(measured: Evaluation):
    Draft202012Validator.check_schema(SCHEMA)
    found = json.loads(trend.as_json(measured))
    Draft202012Validator(SCHEMA).validate(found)
    predict, power = found["trends"]
    assert [one["target"] for one in predict["targets"]] == list(RELEASES)
    assert power["targets"][0]["outcome"] == "refused"
    assert len(power["steps"]) == len(RELEASES) - 2


@pytest.mark.parametrize("text_", ["\x1b[2J", "\u202e", "[red]", "\x00"])
def test_no_text_from_elsewhere_steers_the_terminal(text_: str):
    found = text(scenes.poisoned(text_))
    assert {character for character in found if not character.isprintable()} <= {"\n"}


def test_versions_that_are_fewer_than_a_trend_are_drawn_all_the_same():
    versions = ("1.0.0", "2.0.0")
    of = Evaluation(
        plan=plan((POWER,), versions),
        manifest=scenes.everything().manifest,
        arms=tuple(arm(POWER, version) for version in versions),
        comparisons=(comparison(version_pair(POWER, *versions), 1.5, "slower"),),
        warnings=(),
    )
    assert "no neighbours to compare." in text(of)


def test_the_page_has_the_trend_of_each_case_as_charts(folder: Path):
    page = html.make_page(folder)[0]
    assert page.count('data-kind="trend"') == page.count('data-kind="pace"') == 2
    assert "2.1.4 against 2.0.0: 20" in page
    assert "neighbours that differ from each other, compared round by round: 4 of 22." in page


def test_the_page_of_few_versions_has_none():
    from orchestrator.results.run import Run

    page = html.render_run_page(Run(Path("run"), scenes.everything(), (), ()), html.Calls())
    assert 'data-kind="trend"' not in page


def test_the_page_of_many_versions_tells_the_steps_and_not_each_version(folder, measured: Evaluation):
    page, _ = html.make_page(folder)
    head = page.partition("<table")[0]
    assert f"{len(RELEASES) - 1} versions, against" in head
    for case, of_case in trend.points(measured).items():
        assert shown_text(f"{case.label}: {trend.summarize_trend(of_case)}") in unescape(head)
    assert "cases (most in" not in head


def test_a_step_is_named_if_it_is_certain_among_all_comparisons(measured: Evaluation):
    of_case = trend.points(measured)[PREDICT]
    assert trend.summarize_trend(of_case).startswith(
        "steps that differ: 4 of 22: 2.1.4 (20.0x slower), 2.2.3 (1.25x slower)"
    )
    marked = [
        replace(point, step=replace(point.step, row_only=True)) if point.arm.target == "2.2.3" else point
        for point in of_case
    ]
    told = trend.summarize_trend(marked)
    assert told.startswith("steps that differ: 3 of 22: 2.1.4 (20.0x slower), 2.4.4 (0.80x faster)")
    assert told.endswith("; 1 not certain among all comparisons; 2 are inconclusive.")
