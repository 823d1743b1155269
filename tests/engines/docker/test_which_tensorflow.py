"""Which TensorFlow answered: an image that passes for another version is lost, and the run says so."""

import json
from pathlib import Path

import docker

from tests.engines.docker.conftest import OWN, STUB_BASE, build_stubs, stand_in
from tests.support.end_to_end import compare


def test_an_image_that_passes_for_another_version_is_lost(
    tfcompare: str, client: docker.DockerClient, stubs: dict[str, object], stub_base: str, tmp_path: Path
) -> None:
    flags = ("--engine", "docker", "--base", stub_base, "--workload-folder", OWN, "--rounds", "2", "--case", "naps")
    try:
        stand_in(client, stubs["1.14.0"].facts.identity, "2.0.0", "cpu", STUB_BASE)
        code, answer, stderr = compare(tfcompare, "1.14", "2.0", *flags, "--output", tmp_path / "forged")
    finally:
        build_stubs(client, tmp_path / "stubs")
    assert code == 7, stderr
    found = {arm["target"]: arm["reason"] or "" for arm in answer["arms"]}
    assert "its TensorFlow states 1.14.0, and 2.0.0 is 2.0.0; `docker image rm tfcompare:2.0.0-cpu-" in found["2.0.0"]
    assert "2.0.0" not in json.loads((tmp_path / "forged" / "manifest.json").read_text())["workers"]
    code, _, stderr = compare(tfcompare, "1.14", "2.0", *flags, "--output", tmp_path / "good")
    assert code == 0, stderr
