"""What an image is made of, as others' tools read it: whole, valid, and the same bytes each time."""

import json
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from orchestrator.engines.docker.image import Recipe
from orchestrator.errors import UsageError
from orchestrator.images.sbom import document, pins
from tests.unit.images.scenes import flavour, recipe, with_locks

A, B, C = "a" * 64, "b" * 64, "c" * 64
DIGEST = f"sha256:{C}"
LOCK = f"six==1.17.0 --hash=sha256:{A} --hash=sha256:{B}\nsetuptools==2 --hash=sha256:{B}\n"


def written(folder: Path, made: Recipe | None = None, lock: str = LOCK) -> dict:
    own = with_locks(flavour(), folder, lock, f"pip==24.0 --hash=sha256:{A}\nsetuptools==1 --hash=sha256:{A}\n")
    return json.loads(document(own, made or recipe(base=f"python:3.7-slim@{DIGEST}")))


def test_every_package_of_both_locks_is_in_it_with_its_hashes(tmp_path: Path):
    parts = {part["name"]: part for part in written(tmp_path)["components"]}
    assert set(parts) == {"six", "setuptools", "pip", "python", "python:3.7-slim"}
    assert (parts["six"]["version"], parts["six"]["purl"]) == ("1.17.0", "pkg:pypi/six@1.17.0")
    assert {one["content"] for one in parts["six"]["hashes"]} == {A, B}
    assert {one["alg"] for one in parts["six"]["hashes"]} == {"SHA-256"}
    assert parts["setuptools"]["version"] == "2", "what is installed last is what is there"
    assert parts["python"]["version"] == "3.7"


def test_the_base_is_in_it_with_its_digest_or_without_where_nobody_knows_it(tmp_path: Path):
    [base] = [part for part in written(tmp_path)["components"] if part["type"] == "container"]
    assert (base["version"], base["hashes"]) == (DIGEST, [{"alg": "SHA-256", "content": C}])
    [local] = [part for part in written(tmp_path, recipe(base="own:3.7"))["components"] if part["type"] == "container"]
    assert (local["name"], "version" in local, "hashes" in local) == ("own:3.7", False, False)


def test_it_names_the_image_that_it_is_of_and_says_that_all_the_rest_is_in_it(tmp_path: Path):
    found = written(tmp_path)
    image = found["metadata"]["component"]
    assert (image["name"], image["version"]) == ("tfcompare", f"1.14.0-cpu-{'a' * 12}")
    assert {"name": "tfcompare.spec", "value": "a" * 64} in image["properties"]
    [inside] = [one["dependsOn"] for one in found["dependencies"] if one["ref"] == image["bom-ref"]]
    assert set(inside) == {part["bom-ref"] for part in found["components"]}


def test_it_is_the_same_document_until_the_recipe_is_another(tmp_path: Path):
    first, again = written(tmp_path), written(tmp_path)
    other = written(tmp_path, recipe(spec="b" * 64))
    assert first == again
    assert "timestamp" not in first["metadata"]
    assert first["serialNumber"] != other["serialNumber"]


@pytest.mark.parametrize("number", ["1.14.0", "2.13.0", "2.21.0"])
def test_the_real_ones_are_valid_cyclonedx(number: str):
    text = document(flavour(number), recipe(number))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    named = {part["name"] for part in json.loads(text)["components"]}
    assert {pin.name for pin in pins(flavour(number))} <= named
    assert {"numpy", "pip"} <= named


def test_a_lock_that_is_none_is_told_with_its_line(tmp_path: Path):
    with pytest.raises(UsageError, match=r"lock\.txt, line 2: "):
        written(tmp_path, lock="# one\nsix\n")
