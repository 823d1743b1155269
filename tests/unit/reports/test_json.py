"""The JSON report is part of the interface: these keys, these types, nothing else."""

import json
from typing import Any

import pytest

from orchestrator.metrics import METRICS
from orchestrator.reports import json as report_json
from orchestrator.reports import table
from orchestrator.reports.json import as_json, comparison_as_object
from tests.support import scenes

ARM = {
    "workload", "params", "target", "outcome", "reason", "failure", "external", "rounds", "figures", "steps",
    "second_s", "train_s", "wall_s", "resident_bytes", "items", "items_per_s", "first_step_s", "losses", "drift",
}  # fmt: skip
COMPARISON = {
    "workload", "params", "kind", "target", "baseline", "candidate", "metric", "ratio", "ci_low", "ci_high", "rounds",
    "verdict", "reason", "mde", "seed_percent", "second_ratio", "sign_flip_p", "exploratory", "row_only",
    "size", "cpu_ratio", "cpu_low", "cpu_high", "difference", "difference_low", "difference_high", "missing_rounds",
    "pilot_ratio", "spread", "cpu_spread", "cpu_verdict",
}  # fmt: skip
RUN = {"id", "engine", "device", "created", "suite", "margin", "judge", "ended_by_budget", "host"}
MEAN = {"metric", "baseline", "candidate", "ratio", "ci_low", "ci_high", "cases", "rounds"}


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """Read strictly: a NaN or an infinity would be no JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(as_json(scenes.everything()), parse_constant=refuse)


def test_it_has_exactly_the_keys_that_readers_rely_on(report: dict[str, Any]):
    assert report.keys() == {
        "schema", "run", "arms", "comparisons", "warnings", "differences", "goes_with", "metrics", "outputs", "means",
    }  # fmt: skip
    assert report["schema"] == "tfcompare.comparison/1"
    assert report["run"].keys() == RUN
    assert {frozenset(arm) for arm in report["arms"]} == {frozenset(ARM)}
    assert {frozenset(comparison) for comparison in report["comparisons"]} == {frozenset(COMPARISON)}
    assert {frozenset(mean) for mean in report["means"]} == {frozenset(MEAN)}


def test_a_comparison_across_versions_names_full_versions_and_no_version_of_its_own(report: dict[str, Any]):
    across = [comparison for comparison in report["comparisons"] if comparison["kind"] == "target"]
    assert len(across) == 6
    assert {(found["baseline"], found["target"]) for found in across} == {("1.14.0", None)}
    assert across[0]["params"] == {"loop": "fit", "mode": "graph", "model": "small"}


def test_a_comparison_inside_a_version_names_case_labels_and_what_both_share(report: dict[str, Any]):
    inside = [comparison for comparison in report["comparisons"] if comparison["kind"] == "case"]
    assert [found["target"] for found in inside] == ["1.14.0", "2.0.0", "2.13.0"]
    assert inside[0]["baseline"] == "train_loop[loop=fit,mode=eager,model=small]"
    assert inside[0]["candidate"] == "train_loop[loop=fit,mode=graph,model=small]"
    assert inside[0]["params"] == {"loop": "fit", "model": "small"}


def test_an_arm_that_was_refused_is_an_arm_with_its_reason_and_nulls(report: dict[str, Any]):
    refused = next(arm for arm in report["arms"] if arm["outcome"] == "refused")
    assert refused["reason"] == "tf.function has no jit switch before TensorFlow 2.1."
    others = ARM - {"workload", "params", "target", "outcome", "reason", "external", "rounds", "figures", "steps"}
    assert {refused[key] for key in others} == {None}
    assert refused["figures"] == dict.fromkeys(METRICS)
    assert refused["rounds"] == 0


def test_an_arm_tells_its_phases_and_its_drift_as_a_fraction(report: dict[str, Any]):
    settled, drifting = report["arms"][0], report["arms"][2]
    assert settled["figures"]["first"] == 0.05
    assert [settled[key] for key in ("steps", "second_s", "train_s", "drift")] == [1, 0.00592, 0.61, None]
    assert drifting["drift"] == pytest.approx(0.12)


def test_a_comparison_tells_whether_it_is_exploratory_and_what_else_was_estimated():
    found = comparison_as_object(scenes.exploratory())["comparisons"][0]
    assert [found[key] for key in ("exploratory", "sign_flip_p", "second_ratio")] == [True, 0.0005, None]


def test_what_stands_above_the_table_as_a_warning_stands_here_too(report: dict[str, Any]):
    assert report["warnings"] == list(scenes.everything().warnings)
    assert comparison_as_object(scenes.poisoned("!"))["warnings"] == ["broken!", "warned!"]


def test_what_has_no_reason_has_null_for_it(report: dict[str, Any]):
    assert report["arms"][0]["reason"] is None
    assert report["comparisons"][1]["reason"] is None


def test_a_moment_is_told_with_its_zone(report: dict[str, Any]):
    assert report["run"]["created"] == "2026-01-02T03:04:05+00:00"


def test_arms_and_comparisons_come_in_the_order_of_the_table(report: dict[str, Any]):
    both = scenes.everything()
    assert [arm["target"] for arm in report["arms"]] == [arm.target for arm in both.arms]
    assert [found["candidate"] for found in report["comparisons"]] == [
        found.pair.flat.candidate for found in both.comparisons
    ]


@pytest.mark.parametrize("render", [report_json.as_json, table.render_details])
def test_every_format_draws_every_scene_without_an_end_of_line_too_many(render):
    for scene in (scenes.everything, scenes.hostile, scenes.exploratory):
        text = render(scene())
        assert text
        assert text == text.strip("\n")
