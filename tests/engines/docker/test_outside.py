"""A workload folder of a stranger reads nothing outside of itself on any engine, unless the user allows it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import run_command

PRIVATE = "PRIVATE-KEY-planted"
READS_LINK = """
import os

def build(tf, params):
    with open(os.path.join(os.path.dirname(__file__), "assets", "id_rsa")) as file:
        raise ValueError("read: " + file.read())
"""
READS_DATA = """
import os

DATA = {"keys": %r}

def build(tf, params):
    with open(os.path.join(DATA["keys"], "id_rsa")) as file:
        raise ValueError("read: " + file.read())
"""
PROGRAM = "print(open('assets/id_rsa').read())\n"

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "secret"
    folder.mkdir()
    (folder / "id_rsa").write_text(PRIVATE)
    # The user of a container may read it, so that only the refusal keeps it from there.
    (folder / "id_rsa").chmod(0o644)
    return folder


@pytest.fixture(params=[pytest.param("venv"), pytest.param("docker", marks=pytest.mark.docker)])
def run(request: pytest.FixtureRequest, tfcompare: str, tmp_path: Path) -> Run:
    docker = request.param == "docker"
    env = {"TFCOMPARE_BASE": request.getfixturevalue("stub_base")} if docker else request.getfixturevalue("stub_cache")
    (tmp_path / "mine").mkdir()

    def call(*words: str | Path, **more: str) -> tuple[int, str]:
        few = ("--engine", request.param, "--rounds", "2", "--output", tmp_path / "run")
        done = run_command(
            tfcompare, "run", *few, *words, env={**env, "TFCOMPARE_DATA": str(tmp_path / "user"), **more}, cwd=tmp_path
        )
        return done.returncode, done.stdout + done.stderr

    return call


def find_private(folder: Path) -> list[Path]:
    """Return the files of a run that have the private text."""
    return [path for path in folder.rglob("*") if path.is_file() and PRIVATE.encode() in path.read_bytes()]


WORKLOADS = ("--versions", "1.14,2.0", "--workload-folder", "mine")


@pytest.mark.slow
def test_a_link_out_of_the_folder_ends_the_run_and_the_flag_allows_it(run: Run, secret: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "leak.py").write_text(READS_LINK)
    (tmp_path / "mine" / "assets").symlink_to(secret)
    code, text = run(*WORKLOADS)
    assert code == 2
    [line] = text.splitlines()
    assert f"assets is a link to '{secret}'" in line
    assert f"`--data assets={secret}` allows it, and so does `tfcompare trust mine`" in line
    assert not find_private(tmp_path / "run")
    code, text = run(*WORKLOADS, "--data", f"assets={secret}")
    assert code == 6, text
    assert f"ValueError: read: {PRIVATE}" in text
    # It is used where it is, and no copy of it is made.
    assert not find_private(tmp_path / "run" / "workloads")


@pytest.mark.slow
def test_data_outside_of_the_folder_end_the_run_and_trust_allows_them(run: Run, secret: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "leak.py").write_text(READS_DATA % str(secret))
    code, text = run(*WORKLOADS)
    assert code == 2
    [line] = text.splitlines()
    assert f"DATA['keys'] is '{secret}', which is outside of the folder" in line
    assert f"`--data keys={secret}` allows it" in line
    assert not find_private(tmp_path / "run")
    code, text = run(*WORKLOADS, TFCOMPARE_TRUST="1")
    assert code == 6, text
    assert f"ValueError: read: {PRIVATE}" in text


def test_a_dry_run_lists_what_is_read_outside_of_the_folder(run: Run, secret: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "leak.py").write_text(READS_DATA % "../secret")
    assert run(*WORKLOADS, "--dry-run")[0] == 2
    code, text = run(*WORKLOADS, "--dry-run", "--data", f"keys={secret}")
    assert code == 0, text
    assert f"reads {secret}, which is outside of mine" in text


@pytest.mark.slow
def test_a_program_sees_no_file_that_a_link_of_its_project_leads_to(run: Run, secret: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "train.py").write_text(PROGRAM)
    (tmp_path / "mine" / "assets").symlink_to(secret)
    words = ("1.14", "2.0", "--workload-folder", "mine")
    code, text = run(*words, "--", "python", "train.py")
    assert code == 2
    [line] = text.splitlines()
    assert f"`--data assets={secret}` allows it" in line
    assert not find_private(tmp_path / "run")
    code, text = run(*words, "--data", f"assets={secret}", "--", "python", "train.py")
    assert code == 0, text
