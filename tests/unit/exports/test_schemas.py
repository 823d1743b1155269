"""The published JSON Schemas say what is printed: all of it, and nothing else."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from orchestrator.exports import export_run
from orchestrator.model import Evaluation
from orchestrator.results.run import Run
from tests.conftest import ROOT
from tests.support import scenes
from tests.support.claims_scene import scene as claims_scene
from tests.support.commands import called
from tests.support.export_runs import POISONS, of_scene

SCHEMAS = {
    name: json.loads((ROOT / "docs" / "schema" / f"{name}.json").read_text()) for name in ("comparison-1", "claims-1")
}
FORECAST = json.loads((ROOT / "docs" / "schema" / "forecast-1.json").read_text())
SCENES = {
    "everything": scenes.everything, "hostile": scenes.hostile, "exploratory": scenes.exploratory,
    **{f"poisoned {name}": lambda poison=poison: scenes.poisoned(poison) for name, poison in POISONS.items()},
}  # fmt: skip


def read(run: Run) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = export_run(run, "json").text
    assert text is not None
    return json.loads(text, parse_constant=refuse)


def validate(found: dict[str, Any], name: str) -> None:
    Draft202012Validator(SCHEMAS[name], format_checker=Draft202012Validator.FORMAT_CHECKER).validate(found)


def gpu_only() -> Evaluation:
    """Claims on a machine that can show none of them, and one that was withdrawn."""
    found = claims_scene()
    claims = tuple(replace(claim, devices=("tpu",), withdrawn=True) for claim in found.plan.claims)
    return replace(found, plan=replace(found.plan, claims=claims))


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "schema").glob("*.json")), ids=lambda path: path.stem)
def test_no_schema_has_what_is_optional_or_deprecated(path: Path):
    schema = json.loads(path.read_text())
    assert all(sorted(part["required"]) == sorted(part["properties"]) for part in objects(schema))
    assert "deprecated" not in path.read_text()


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_of_draft_2020_12(name: str):
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_property_is_described_and_required_and_no_other_is_allowed(name: str):
    for part in objects(SCHEMAS[name]):
        assert part["additionalProperties"] is False
        assert sorted(part["required"]) == sorted(part["properties"])
        for told in part["properties"].values():
            assert 0 < len(told["description"]) <= 90


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every part of a schema that names properties."""
    if isinstance(schema, list):
        return [found for one in schema for found in objects(one)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if isinstance(schema.get("properties"), dict) else []
    return own + [found for one in schema.values() for found in objects(one)]


def test_a_forecast_is_what_its_schema_says(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    Draft202012Validator.check_schema(FORECAST)
    assert (
        called(monkeypatch, "run", "--versions", "1.14,2.0", "--engine", "venv", "--dry-run", "--format", "json") == 0
    )
    found = json.loads(capsys.readouterr().out)
    Draft202012Validator(FORECAST).validate(found)
    assert [each["target"] for each in found["targets"]] == ["1.14.0", "2.0.0"]
    assert found["looks"][-1] == 20
    assert 2 <= found["open_at_once"]["arms"] <= found["open_at_once"]["most"]


def test_a_run_that_was_measured_is_accepted_by_its_schema(run: Run):
    validate(read(run), "comparison-1")


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_every_scene_is_accepted_by_the_schema_of_comparisons(scene):
    validate(read(of_scene(scene())), "comparison-1")


@pytest.mark.parametrize("scene", [claims_scene, gpu_only])
def test_a_run_of_claims_keeps_theirs(scene):
    found = read(of_scene(scene()))
    assert found["schema"] == "tfcompare.claims/1"
    validate(found, "claims-1")


@pytest.mark.parametrize(
    ("name", "found"), [("comparison-1", scenes.everything), ("claims-1", claims_scene)], ids=["comparison", "claims"]
)
def test_schema_and_output_name_the_same_properties(name: str, found):
    printed = read(of_scene(found()))
    schema = SCHEMAS[name]
    assert named(schema, schema) == keys(printed, schema, schema)


def resolved(part: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    return whole["$defs"][part["$ref"].removeprefix("#/$defs/")] if "$ref" in part else part


def named(part: dict[str, Any], whole: dict[str, Any], at: str = "") -> set[str]:
    """The path of every property of a schema."""
    part = resolved(part, whole)
    found = named(part["items"], whole, f"{at}[]") if "items" in part else set()
    for name, told in part.get("properties", {}).items():
        found |= {f"{at}.{name}"} | named(told, whole, f"{at}.{name}")
    return found


def keys(value: Any, part: dict[str, Any], whole: dict[str, Any], at: str = "") -> set[str]:
    """The path of every property of an output; below a free map, whose names are data, there is none."""
    part = resolved(part, whole)
    if isinstance(value, list):
        return {path for one in value for path in keys(one, part.get("items", {}), whole, f"{at}[]")}
    if not isinstance(value, dict) or "properties" not in part:
        return set()
    found = {f"{at}.{name}" for name in value}
    for name, one in value.items():
        found |= keys(one, part["properties"].get(name, {}), whole, f"{at}.{name}")
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_a_schema_does_not_name_is_refused(run: Run, name: str):
    found = read(run if name == "comparison-1" else of_scene(claims_scene()))
    for changed in ({**found, "more": 1}, {key: found[key] for key in found if key != "run"}):
        assert not Draft202012Validator(SCHEMAS[name]).is_valid(changed)


def test_the_scene_of_claims_has_what_their_schema_is_about():
    """Or the tests above would be of nothing."""
    assert {one["metric"] for claim in read(of_scene(claims_scene()))["claims"] for one in claim["checks"]} == {
        "time", "first", "memory", "traces_per_call", None,
    }  # fmt: skip
