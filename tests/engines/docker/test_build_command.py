"""`tfcompare images build` for real: several at once, each costs itself only, and what came of each is told.

The versions are a user's own, of one tiny package each, so that only the building is in question.
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from orchestrator.images.build import BuiltImage
from tests.conftest import run_command

SIX = "six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274\n"
WRONG = SIX.replace("4721", "0000")

Build = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def world(tmp_path: Path) -> dict[str, str]:
    """With the versions 9.1.0 and 9.2.0, and 9.3.0 whose lock is wrong."""
    folder = tmp_path / "data" / "tfcompare"
    (folder / "locks").mkdir(parents=True)
    table = ""
    for number, lock in (("9.1.0", SIX), ("9.2.0", SIX), ("9.3.0", WRONG)):
        table += f'[version."{number}"]\nkeras = ""\n[version."{number}".cpu]\npythons = ["3.7"]\n'
        table += 'requirements = ["six"]\n'
        # The folder's name keeps the builder's cache out of it.
        (folder / "locks" / f"{number}-cpu-py3.7.txt").write_text(f"# {tmp_path} {number}\n{lock}")
    (folder / "versions.toml").write_text(table)
    return {"TFCOMPARE_DATA": str(tmp_path / "data"), "TFCOMPARE_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def build(client: docker.DockerClient, tfcompare: str, docker_base: str, world: dict[str, str]) -> Iterator[Build]:
    """The command in that world."""

    def call(*flags: str) -> subprocess.CompletedProcess[str]:
        return run_command(tfcompare, "images", "build", *flags, "--base", docker_base, env=world)

    yield call
    for image in client.images.list(filters={"label": "tfcompare.spec"}):
        if image.labels["tfcompare.version"].startswith("9."):
            client.api.remove_image(image.id, force=True)


def test_one_that_fails_costs_itself_only_and_the_exit_code_says_so(
    client: docker.DockerClient, build: Build, tmp_path: Path
) -> None:
    done = build("9.1.0", "9.2.0,9.3.0", "--format", "json", "--sbom", str(tmp_path / "sboms"))
    assert done.returncode == 5, done.stderr
    first, second, third = json.loads(done.stdout)
    assert [(one["version"], one["outcome"]) for one in (first, second, third)] == [
        ("9.1.0", "built"), ("9.2.0", "built"), ("9.3.0", "failed"),
    ]  # fmt: skip
    for one in (first, second):
        image = client.images.get(one["tag"])
        assert (one["id"], one["size"]) == (image.id, image.attrs["Size"])
    assert third["tag"] is None
    assert "a different file from the one in the lock" in third["reason"]
    assert "9.3.0: its image could not be built: the index served a different file" in done.stderr
    assert "9.1.0: made in " in done.stderr
    logs = sorted((tmp_path / "cache" / "tfcompare" / "builds").glob("*/*.log"))
    assert [log.name for log in logs] == ["build-9.1.0.log", "build-9.2.0.log", "build-9.3.0.log"]
    assert str(logs[2]) in done.stderr
    assert sorted(path.name for path in (tmp_path / "sboms").iterdir()) == ["9.1.0-cpu.cdx.json", "9.2.0-cpu.cdx.json"]
    named = {part["name"] for part in json.loads((tmp_path / "sboms" / "9.1.0-cpu.cdx.json").read_text())["components"]}
    assert {"six", "pip", "python"} <= named


def test_with_nothing_changed_nothing_is_done_and_no_log_is_kept(build: Build, tmp_path: Path) -> None:
    assert build("9.1.0..9.2.0", "--quiet").returncode == 0
    again = build("9.1.0..9.2.0", "--at-once", "1")
    assert again.returncode == 0, again.stderr
    assert again.stdout.count(" ready ") == 2
    assert again.stdout.count("tfcompare:9.") == 2
    assert " built " not in again.stdout
    assert len(list((tmp_path / "cache" / "tfcompare" / "builds").iterdir())) == 1


def test_a_wrong_call_ends_before_any_work(build: Build, tmp_path: Path) -> None:
    wrong = {
        ("9.1",): "unknown version '9.1'",
        ("9.1.0", "--at-once", "0"): "--at-once",
        ("9.1.0", "--wheelhouse", str(tmp_path / "nowhere")): "there is no such folder",
        ("9.1.0", "--ca-bundle", str(tmp_path / "nowhere")): "No such file",
        ("9.1.0", "--format", "jsno"): "did you mean json?",
    }
    for flags, words in wrong.items():
        done = build(*flags)
        assert (done.returncode, words in done.stderr, done.stdout) == (2, True, ""), done.stderr


def test_a_password_on_the_command_line_is_in_nothing_that_is_printed(build: Build) -> None:
    done = build("9.1.0", "--index-url", "http://user:passw0rd@nowhere.invalid/t0ken/simple", "--verbose")
    assert done.returncode == 5
    assert "its name cannot be resolved" in done.stderr
    assert not [word for word in ("passw0rd", "t0ken") if word in done.stdout + done.stderr]


def test_an_interrupt_ends_a_build_at_once_and_says_what_is_kept(
    client: docker.DockerClient, tfcompare: str, world: dict[str, str], docker_base: str
) -> None:
    """The index takes the question and never answers, so the build would go on for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        argv = [tfcompare, "images", "build", "9.1.0", "--base", docker_base]
        argv += ["--index-url", f"http://127.0.0.1:{port}/simple"]
        with subprocess.Popen(argv, env={**os.environ, **world}, stderr=subprocess.PIPE, text=True) as process:
            silent.settimeout(60)
            asked, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            begun = time.monotonic()
            stderr = process.communicate(timeout=60)[1]
            took = time.monotonic() - begun
            asked.close()
    assert (process.returncode, "interrupted; finished images and build steps are kept" in stderr) == (130, True), (
        stderr
    )
    assert took < 10


def test_an_interrupt_ends_a_run_at_once_while_its_images_are_built(
    tfcompare: str, world: dict[str, str], docker_base: str, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        argv = [tfcompare, "run", "--versions", "9.1.0,9.2.0", "--engine", "docker", "--base", docker_base]
        argv += ["--index-url", f"http://127.0.0.1:{silent.getsockname()[1]}/simple", "--case", "power[style=eager]"]
        argv += ["--output", str(tmp_path / "run")]
        with subprocess.Popen(
            argv, env={**os.environ, **world}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            silent.settimeout(60)
            asked, _ = silent.accept()
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
            asked.close()
    assert (process.returncode, stdout) == (130, ""), stderr
    assert "interrupted before anything was measured; environments that are done are kept" in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "run" / "plan.json").exists()


def test_without_an_engine_the_exit_code_is_that_of_an_engine(tfcompare: str, tmp_path: Path) -> None:
    done = run_command(tfcompare, "images", "build", "1.14", env={"DOCKER_HOST": f"unix://{tmp_path}/nobody.sock"})
    assert (done.returncode, "no Docker engine answers" in done.stderr) == (4, True)


def test_what_came_of_a_version_is_one_word() -> None:
    assert BuiltImage(version=None, tag="t", new=True).outcome == "built"  # type: ignore[arg-type]
    assert BuiltImage(version=None, tag="t").outcome == "ready"  # type: ignore[arg-type]
    assert BuiltImage(version=None, reason="no").outcome == "failed"  # type: ignore[arg-type]
