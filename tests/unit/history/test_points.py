"""From a run to points: what every version came to against the reference, in the rounds that both shared."""

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from orchestrator.history.model import Point
from orchestrator.history.points import commit_of, of_run
from orchestrator.model import MergedHost
from orchestrator.results.run import Run, load_run
from tests.support.builders import environment_facts, manifest, plan, rows, run_folder, target, write_stream
from tests.support.trends import POWER, PREDICT, RELEASES, written
from workloads.sketches import sketch

HOST = {"id": "abc", "cpu": "A CPU", "kernel": "6.1", "gpus": "NVIDIA L4, driver 535.1"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(written(tmp_path_factory.mktemp("run") / "run"))


@pytest.fixture(scope="module")
def points(run: Run) -> dict[tuple[str, str], Point]:
    return {(point.case, point.target): point for point in of_run(run, "screen")}


def test_every_version_but_the_reference_has_a_point_in_every_case(points: dict[tuple[str, str], Point]):
    assert set(points) == {(case.label, version) for case in (PREDICT, POWER) for version in RELEASES[1:]}
    assert {point.reference for point in points.values()} == {RELEASES[0]}


def test_the_effect_is_that_of_the_comparison(run: Run, points: dict[tuple[str, str], Point]):
    comparisons = [one for one in run.comparisons if one.pair.across and one.ratio]
    assert len(comparisons) == len(RELEASES) - 1
    for comparison in comparisons:
        point = points[comparison.pair.arms[0][0], str(comparison.pair.candidate)]
        assert point.effect is not None
        assert point.error is not None
        assert math.exp(point.effect) == pytest.approx(comparison.ratio)
        assert point.rounds == comparison.rounds == 6
        assert point.error > 0
        assert point.outcome == "measured"
        assert point.target_figure / point.reference_figure == pytest.approx(comparison.ratio, rel=0.05)


def test_other_metrics_and_results_are_followed_as_well(tmp_path: Path):
    asked = plan(looks=(4,), metrics=("memory",), outputs=True)
    folder = run_folder(tmp_path / "run", asked)
    for place, version in enumerate(asked.targets):
        batches = []
        for count in range(1, 5):
            of_replicate = rows(version=version, round=count, replicate=4 * place + count)
            of_replicate[0].update(
                memory_kb=1000 * (1 + place) + count, output=sketch(2.0 + place), fifth_output=sketch(2.0)
            )
            batches.append(of_replicate)
        write_stream(folder.settled / f"{version}-1.arrow", batches)
    points = {point.metric: point for point in of_run(load_run(folder.path), "screen")}
    assert set(points) == {"time", "memory", "output"}
    memory, results, times = points["memory"], points["output"], points["time"]
    assert memory.effect is not None
    assert math.exp(memory.effect) == pytest.approx(2.0, rel=0.01)
    assert memory.verdict == "slower"
    assert memory.target_figure == pytest.approx(2002.5 * 1024)
    assert times.target_figure == 10.0
    assert (results.verdict, results.effect, results.target_figure) == ("differs", None, pytest.approx(1 / 3))
    assert len({point.key for point in points.values()}) == 3


def test_without_a_time_of_the_reference_a_point_says_why_it_has_none(points: dict[tuple[str, str], Point]):
    point = points[POWER.label, "2.13.0"]
    assert (point.effect, point.error, point.rounds) == (None, None, 0)
    assert point.outcome == "refused"
    assert point.reason == "the reference 1.13.2: not in this one"


def test_the_night_is_the_day_on_which_the_run_began_unless_it_is_said(run: Run):
    assert {point.night for point in of_run(run, "screen")} == {run.plan.created.astimezone().date()}
    asked = of_run(run, "confirm", date(2026, 11, 22))
    assert {(point.night, point.stage) for point in asked} == {(date(2026, 11, 22), "confirm")}


def test_a_version_may_be_followed_by_another_name(run: Run):
    found = {point.target: point.build for point in of_run(run, "screen", names={"2.19.1": "nightly"})}
    assert found["nightly"] == "2.19.1"
    assert "2.19.1" not in found
    assert found["2.18.1"] == "2.18.1"


def test_a_point_is_of_the_machine_that_measured_its_case(run: Run):
    hosts = (
        MergedHost(run="1", host={**HOST, "id": "a"}, cases=(POWER.label,)),
        MergedHost(run="2", host={**HOST, "id": "b", "kernel": "6.2"}, cases=(PREDICT.label,)),
    )
    merged = replace(run.manifest, host={"id": "merged-1"}, hosts=hosts)
    points = of_run(replace(run, evaluation=replace(run.evaluation, manifest=merged)), "screen")
    found = {(point.case, point.host, point.surroundings.kernel) for point in points}
    assert found == {(POWER.label, "a", "6.1"), (PREDICT.label, "b", "6.2")}


def test_surroundings_are_those_of_the_manifest(run: Run):
    facts = environment_facts(version="x", kind="docker", identity="sha256:1", lock="l", python="3.11.7")
    environments = {target(version): replace(facts, identity=f"sha256:{version}") for version in RELEASES}
    known = replace(facts, identity="sha256:2.13.0", packages={"numpy": "1.24"}, variables={"TF_X": "1"})
    environments[target("2.13.0")] = known
    workers = {target("2.13.0"): {"python": "3.11.7"}}
    manifest = replace(
        run.manifest,
        host=HOST,
        environments=environments,
        sources={"predict": "p1", "power": "q1", "worker": "w1"},
        workers=workers,
        variables={"OMP_NUM_THREADS": "2"},
    )
    changed = replace(run, evaluation=replace(run.evaluation, manifest=manifest))
    found = {(point.case, point.target): point.surroundings for point in of_run(changed, "screen")}
    there = found[PREDICT.label, "2.13.0"]
    assert (there.image, there.reference_image) == ("sha256:2.13.0", f"sha256:{RELEASES[0]}")
    assert (there.source, there.kernel, there.machine, there.python) == ("p1", "6.1", "A CPU", "3.11.7")
    assert (there.variables, there.reference_variables) == ("OMP_NUM_THREADS=2 TF_X=1", "OMP_NUM_THREADS=2")
    on_gpu = replace(changed, evaluation=replace(changed.evaluation, plan=replace(run.plan, device="gpu")))
    assert {point.surroundings.driver for point in of_run(on_gpu, "screen")} == {"NVIDIA L4, driver 535.1"}
    plain = replace(run.plan, threads=(1, 2), untuned_datasets=True)
    set_up = replace(changed, evaluation=replace(changed.evaluation, plan=plain))
    settings = {point.surroundings.settings for point in of_run(set_up, "screen")}
    assert (there.settings, settings) == ("", {"threads 1,2; datasets untuned"})
    # No driver has a say where no GPU was used.
    assert there.driver == ""
    assert found[POWER.label, "2.13.0"].source == "q1"
    assert {one.worker for one in found.values()} == {"w1"}


BASE, RECIPE = "python:3.11@sha256:12", "ab" * 32


@pytest.mark.parametrize(
    ("details", "name"),
    [
        ({"base": BASE, "spec": RECIPE}, RECIPE),
        # What this name stands for may change.
        ({"base": "python:3.11", "spec": RECIPE}, "sha256:built"),
        ({"image": "mine:1@sha256:12"}, "sha256:built"),
        ({}, "sha256:built"),
    ],
)
def test_an_image_that_is_built_again_from_the_same_parts_is_the_same(run: Run, details: dict[str, str], name: str):
    facts = environment_facts("2.13.0", kind="docker", identity="sha256:built", details=details)
    manifest = replace(run.manifest, environments={**run.manifest.environments, target("2.13.0"): facts})
    found = of_run(replace(run, evaluation=replace(run.evaluation, manifest=manifest)), "screen")
    assert {point.surroundings.image for point in found if point.target == "2.13.0"} == {name}


DESCRIBED = {
    "v1.12.1-125034-g2d3f4c1c9b7": "2d3f4c1c9b7",
    "v2.13.0-rc2-7-g1cb1a030a62": "1cb1a030a62",
    "v2.0.0": "v2.0.0",
    "v2.13.0-rc2-7-g1cb1a030a62-dirty": "1cb1a030a62",
    "unknown": "",
    "stub": "",
    "v2.13.0-rc2-7-g1cb1a030a62...main?expand=1": "",
    "": "",
}


@pytest.mark.parametrize("described", DESCRIBED)
def test_a_build_says_which_commit_it_was_made_of(described: str):
    build = target("2.13.0")
    known = manifest(("2.13.0",), workers={build: {"tensorflow_git": described}})
    assert commit_of(known, build) == DESCRIBED[described]
    assert commit_of(replace(known, workers={}), build) == ""
