"""Targets for real, on both engines: wheels that hold a stub of TensorFlow, variables, and an image that somebody made.

The wheels are locked by the real resolver and installed by the real pip; one of them takes its time.
"""

import json
import subprocess
from contextlib import suppress
from pathlib import Path

import docker
import pytest

from orchestrator import catalog
from orchestrator.catalog import lockfile
from tests.conftest import run_command
from tests.support.end_to_end import Answer, compare, comparison
from tests.support.packages import own_tensorflow, wheel

WORKLOAD = """
import os

def build(tf, params):
    told = os.environ.get("TF_TOLD", "nothing")

    def step():
        tf.work()
        return len(told)

    return step
"""
WORK = "import time\n\n\ndef work():\n    time.sleep({})\n"
QUICK, SLOW = (WORK.format(seconds) for seconds in (0.010, 0.015))
# A version that is an image of another maker's, in a table of the user's.
BUILD = """
[version."2.0.0+acme"]
aliases = ["2.0-acme"]
keras = ""
build = {{maker = "acme", image = "{}", cuda = "11.8", compute = ["8.0"]}}
"""
# So that the resolver has something to find, and the lock something besides.
NEEDS = ("numpy", "six")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("targets")
    (folder / "own").mkdir()
    (folder / "own" / "work.py").write_text(WORKLOAD)
    return folder


@pytest.fixture(scope="module")
def wheels(scene: Path) -> dict[str, str]:
    made = {}
    for name, code in (("quick", QUICK), ("slow", SLOW)):
        (scene / name).mkdir()
        made[name] = f"wheel={own_tensorflow(scene / name, needs=NEEDS, code=code)} as {name}"
    return made


def environment(scene: Path) -> dict[str, str]:
    return {"TFCOMPARE_CACHE": str(scene / "cache"), "TFCOMPARE_DATA": str(scene / "data"), "TF_TOLD": "of the shell"}


def differences(answer: Answer, candidate: str) -> dict[str, tuple[str, str]]:
    [found] = [each for each in answer["differences"] if each["candidate"] == candidate]
    return {fact["name"]: (fact["baseline"], fact["candidate"]) for fact in (*found["facts"], *found["packages"])}


@pytest.mark.tensorflow
def test_wheels_and_variables_are_compared_in_virtual_environments(tfcompare: str, scene: Path, wheels: dict[str, str]):
    told = wheels["quick"].replace(" as ", " TF_TOLD=more as told-")
    flags = ("--engine", "venv", "--workload-folder", scene / "own", "--rounds", "4", "--output", scene / "venv")
    code, answer, stderr = compare(
        tfcompare, wheels["quick"], "--target", wheels["slow"], "-t", told, *flags, env=environment(scene)
    )
    assert code == 0, stderr
    assert "note: TF_TOLD of your shell is not passed on" in stderr
    assert comparison(answer, "work", "target", {"candidate": "slow"})["verdict"] == "slower"
    assert comparison(answer, "work", "target", {"candidate": "told-quick"})["verdict"] != "slower"
    assert differences(answer, "told-quick") == {"TF_TOLD": ("none", "more")}
    assert list(differences(answer, "slow")) == ["wheel"]
    outcomes = {arm["target"]: arm["outcome"] for arm in answer["arms"]}
    assert outcomes == dict.fromkeys(("quick", "slow", "told-quick"), "measured")
    again = run_command(
        tfcompare, "run", "--resume", scene / "venv", "--rounds", "2", "--format", "json", env=environment(scene)
    )
    assert again.returncode in (0, 3), again.stderr


@pytest.mark.tensorflow
def test_the_variables_of_the_shell_reach_all_targets_if_asked(tfcompare: str, scene: Path, wheels: dict[str, str]):
    flags = ("--engine", "venv", "--workload-folder", scene / "own", "--rounds", "2", "--output", scene / "inherited")
    code, answer, stderr = compare(tfcompare, *wheels.values(), "--inherit-env", *flags, env=environment(scene))
    assert code == 0, stderr
    assert "is not passed on" not in stderr
    assert "variables of your shell reached every target: TF_TOLD=of the shell" in answer["warnings"]
    assert json.loads((scene / "inherited" / "manifest.json").read_text())["variables"] == {"TF_TOLD": "of the shell"}


@pytest.mark.tensorflow
def test_an_image_cannot_be_a_virtual_environment(tfcompare: str, scene: Path, wheels: dict[str, str]):
    flags = ("--engine", "venv", "--workload-folder", scene / "own", "--rounds", "2", "--output", scene / "no-image")
    code, answer, stderr = compare(
        tfcompare, *wheels.values(), "-t", "image=some/image as image", *flags, env=environment(scene)
    )
    assert code == 5
    assert "image: an image runs on the docker engine only; take --engine docker" in stderr
    assert comparison(answer, "work", "target", {"candidate": "slow"})["rounds"] == 2


@pytest.mark.long
@pytest.mark.docker
def test_wheels_and_an_image_are_compared_on_docker(
    tfcompare: str, scene: Path, wheels: dict[str, str], docker_base: str
):
    """The image is another's work: it has a program that runs before every other, and lacks what writes results."""
    client = docker.from_env()
    env = environment(scene) | {"TFCOMPARE_BASE": docker_base}
    flags = ("--engine", "docker", "--workload-folder", scene / "own", "--rounds", "4")
    code, answer, stderr = compare(tfcompare, *wheels.values(), *flags, "--output", scene / "docker", env=env)
    assert code == 0, stderr
    assert comparison(answer, "work", "target", {"candidate": "slow"})["verdict"] == "slower"
    manifest = json.loads((scene / "docker" / "manifest.json").read_text())
    built = manifest["environments"]["slow"]["details"]["tag"]
    own, other = "tfcompare-tests-own:latest", "tfcompare-tests-other-machine:latest"
    try:
        dockerfile = scene / "Dockerfile"
        dockerfile.write_text(
            f"FROM {built}\nUSER 0\nRUN python -m pip uninstall --yes pyarrow"
            " && printf '#!/bin/sh\\necho WELCOME\\nexec \"$@\"\\n' > /welcome && chmod 755 /welcome\n"
            'ENTRYPOINT ["/welcome"]\n'
        )
        build = ["docker", "build", "--network", "none", "--quiet"]
        subprocess.run([*build, "--tag", own, "--file", dockerfile, scene], check=True)
        dockerfile.write_text("FROM scratch\nCOPY Dockerfile /\n")
        subprocess.run(
            [*build, "--platform", "linux/arm64", "--tag", other, "--file", dockerfile, scene],
            check=True,
        )
        texts = (
            wheels["quick"],
            f"image={own} TF_TOLD=more as own",
            f"image={docker_base.format(python='3.7')} as bare",
            f"image={other} as other",
            "2.0-acme",
        )
        (scene / "data" / "tfcompare" / "versions.toml").write_text(BUILD.format(own))
        code, answer, stderr = compare(tfcompare, *texts, *flags, "--output", scene / "image", env=env)
        assert code == 5, stderr
        assert "holds no TensorFlow that can be imported" in stderr
        assert f"{other} is an image for arm64, not for amd64" in stderr
        for name in ("own", "2.0.0+acme"):
            assert comparison(answer, "work", "target", {"candidate": name})["verdict"] == "slower"
        found = differences(answer, "own")
        assert found["pyarrow"][1] == "none"
        assert found["TF_TOLD"] == ("none", "more")
    finally:
        for name in (own, other, built):
            with suppress(docker.errors.ImageNotFound):
                client.images.remove(name, force=True)


# TensorFlow has this package, and does not import it.
MARK = """
import oauthlib


def build(tf, params):
    return lambda: float(oauthlib.MARK)
"""


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("venv", marks=pytest.mark.tensorflow),
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.long]),
    ],
)
def test_a_wheel_of_a_package_is_installed_although_its_number_is_there_already(
    tfcompare: str, tmp_path: Path, engine: str, request: pytest.FixtureRequest
):
    env = {"TFCOMPARE_BASE": request.getfixturevalue("docker_base")} if engine == "docker" else {}
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mark.py").write_text(MARK)
    version = catalog.find_version("2.13")
    assert version
    number = lockfile.list_packages(version.on("cpu")[0].lock)["oauthlib"]
    targets = []
    for name, mark in (("one", 1), ("two", 2), ("again", 1)):
        (tmp_path / name).mkdir()
        made = wheel(tmp_path / name, "oauthlib", number, code=f"MARK = {mark}\n# {name}\n")
        targets.append(f"2.13 wheel={made} as {name}")
    flags = ("--engine", engine, "--workload-folder", tmp_path / "own", "--rounds", "2", "--output", tmp_path / "run")
    code, answer, stderr = compare(tfcompare, *targets, *flags, env=env)
    assert code in (0, 3), stderr
    verdicts = {each["candidate"]: each["verdict"] for each in answer["outputs"]}
    assert (verdicts["two"], verdicts["again"]) == ("differs", "equal"), stderr
    assert list(differences(answer, "two")) == ["wheel"]
