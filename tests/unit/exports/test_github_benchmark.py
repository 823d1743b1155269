"""The list for github-action-benchmark: its fields, their types, and what they hold."""

import json

import pytest

from orchestrator.exports.github_benchmark import render
from orchestrator.results.run import Run
from tests.support import scenes
from tests.support.builders import case
from tests.support.export_runs import EAGER, FIT, MID, OLD, POISONS, of_scene


@pytest.fixture(scope="module")
def entries(run: Run) -> dict[str, dict]:
    return {entry["name"]: entry for entry in json.loads(render(run))}


def test_every_arm_with_a_time_is_an_entry_with_the_fields_that_the_action_reads(run: Run, entries: dict[str, dict]):
    of_times = [entry for entry in entries.values() if entry["unit"] == "ms/step"]
    assert len(of_times) == sum(1 for arm in run.arms if arm.time_ms is not None)
    memory = entries[f"{EAGER.label} {OLD} memory"]
    assert (memory["value"], memory["unit"]) == (2.0, "MiB")
    assert entries[f"{EAGER.label} {OLD} first"]["unit"] == "ms"
    for entry in of_times:
        assert {name: type(value) for name, value in entry.items()} == {
            "name": str, "unit": str, "value": float, "range": str, "extra": str,
        }  # fmt: skip


def test_smaller_is_better_and_the_spread_is_that_of_the_replicates(entries: dict[str, dict]):
    entry = entries[f"{FIT.label} {OLD}"]
    assert entry["unit"] == "ms/step"
    assert entry["value"] == pytest.approx(3.0, rel=0.01)
    assert entry["range"].startswith("± 0.00")


def test_verdict_and_reason_stand_in_extra(entries: dict[str, dict]):
    assert entries[f"{EAGER.label} {MID}"]["extra"].startswith("slower 4.00x (3.98-4.01) against 1.14.0\n")
    assert "inconclusive" in entries[f"{FIT.label} {MID}"]["extra"]
    assert entries[f"{EAGER.label} {OLD}"]["extra"] == "tfcompare run 20260102-030405-abcd"


def test_an_arm_that_died_late_says_so():
    (found,) = [one for one in json.loads(render(of_scene(scenes.everything()))) if "died: " in one["extra"]]
    assert found["value"] == 22.6
    assert "killed by SIGKILL" in found["extra"]


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_no_name_leaves_the_code_in_the_table_that_the_action_makes(poison: str):
    for entry in json.loads(render(of_scene(scenes.poisoned(poison)))):
        assert not set(entry["name"]) & set("`|\n")
        assert entry["name"].isprintable()
        assert len(entry["name"]) <= 1000


def test_names_that_differ_in_what_cannot_be_printed_stay_apart():
    found = [
        json.loads(render(of_scene(scenes.one_case(case(f"a{sign}b")))))[0]["name"] for sign in ("\n", " ", "\x00")
    ]
    assert len(set(found)) == 3
