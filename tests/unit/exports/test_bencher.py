"""Bencher Metric Format, held against its published rules."""

import json

import jsonschema
import pytest

from orchestrator.exports.bencher import LONGEST_NAME, render
from orchestrator.results.run import Run
from tests.support import scenes
from tests.support.export_runs import BATCH, EAGER, JIT, MID, NEW, OLD, of_scene

# What Bencher's reference says of the format, in a schema of its own.
NUMBERS = {"value", "lower_value", "upper_value"}
RULES = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "properties": {name: {"type": "number"} for name in sorted(NUMBERS)},
            "required": ["value"],
            "additionalProperties": False,
        },
    },
}


def test_it_keeps_the_rules_of_the_format(run: Run):
    found = json.loads(render(run))
    jsonschema.validate(found, RULES)
    assert len(found) == sum(1 for arm in run.arms if arm.time_ms is not None)


def test_latency_is_in_nanoseconds_between_the_quartiles_of_the_replicates(run: Run):
    latency = json.loads(render(run))[f"{EAGER.label} {OLD}"]["latency"]
    assert latency["value"] == pytest.approx(10e6, rel=0.01)
    assert 9.95e6 < latency["lower_value"] < latency["value"] < latency["upper_value"] < 10.05e6


def test_candidates_have_their_ratio_with_its_interval_and_the_baseline_has_none(run: Run):
    found = json.loads(render(run))
    ratio = found[f"{EAGER.label} {MID}"]["ratio"]
    assert ratio["value"] == pytest.approx(4.0, rel=0.01)
    assert ratio["lower_value"] <= ratio["value"] <= ratio["upper_value"]
    assert found[f"{EAGER.label} {OLD}"].keys() == {"latency", "first", "memory"}


def test_memory_is_in_bytes_and_a_first_call_in_nanoseconds_with_their_ratios(run: Run):
    found = json.loads(render(run))[f"{EAGER.label} {MID}"]
    assert found["memory"] == {"value": 2048 * 1024}
    assert found["first"]["value"] == pytest.approx(50e6)
    assert found["memory-ratio"]["value"] == 1.0


def test_an_arm_without_a_time_is_left_out_and_one_without_a_ratio_has_its_time(run: Run):
    found = json.loads(render(run))
    assert f"{JIT.label} {OLD}" not in found
    assert f"{BATCH.label} {NEW}" not in found
    assert found[f"{JIT.label} {NEW}"].keys() == {"latency", "first", "memory"}


def test_names_stay_within_the_limit_and_apart():
    found = json.loads(render(of_scene(scenes.poisoned("é" * 2_000))))
    assert len(found) == 3
    assert all(len(name.encode()) <= LONGEST_NAME for name in found)
