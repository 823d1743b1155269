"""The whole path on Docker: the real command, the real images, the real suite."""

import hashlib
import json
from pathlib import Path

import docker

from orchestrator import catalog
from orchestrator.catalog import workloads
from orchestrator.engines.docker.engine import DockerEnvironment
from orchestrator.results.streams import read_stream
from tests.conftest import run_command
from tests.engines.docker.conftest import containers, version


def test_smoke_suite_is_measured_and_documented(
    client: docker.DockerClient,
    tfcompare: str,
    docker_base: str,
    environments: dict[str, DockerEnvironment],
    tmp_path: Path,
) -> None:
    out = tmp_path / "run"
    done = run_command(
        tfcompare, "run", "--engine", "docker", "--base", docker_base, "--suite", "smoke", "--versions", "1.14,2.0",
        "--rounds", "2", "--format", "json", "--quiet", "--output", out,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    answer, end = json.JSONDecoder().raw_decode(done.stdout)
    assert done.stdout[end:] == "\n"
    assert answer["schema"] == "tfcompare.comparison/1"
    assert answer["run"]["engine"] == "docker"
    assert {arm["target"] for arm in answer["arms"]} == {"1.14.0", "2.0.0"}
    cases = len(workloads.suite("smoke").cases)
    assert [(arm["outcome"], arm["rounds"]) for arm in answer["arms"]] == [("measured", 2)] * 2 * cases

    manifest = json.loads((out / "manifest.json").read_text())
    for number, built in environments.items():
        facts = manifest["environments"][number]
        assert facts["kind"] == "docker"
        assert facts["identity"] == built.facts.identity == client.images.get(facts["details"]["tag"]).id
        assert facts["lock"] == catalog.lock_hash(version(number).on("cpu")[0])
        assert manifest["workers"][number]["python"].startswith(f"{facts['python']}.")
    assert manifest["workers"]["1.14.0"]["tensorflow"] == "1.14.0"
    measured = {arm["workload"] for arm in answer["arms"]}
    hashed = {name: hashlib.sha256((workloads.BUILTIN / f"{name}.py").read_bytes()).hexdigest() for name in measured}
    assert hashed.items() <= manifest["sources"].items()
    assert set(manifest["sources"]) == {"worker", *measured}

    streams = sorted((out / "streams").iterdir())
    parts = {f"{number}-{part}.arrow" for number in environments for part in (1, 2)}
    assert {stream.name for stream in streams} == parts, "each round has a new worker"
    assert not any(read_stream(stream)[1] for stream in streams), "closed by their workers"
    assert containers(client, out) == []
