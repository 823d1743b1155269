"""The version comes from the tag; without one, in a shallow clone or without git, it is 0.1.0.dev0."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT

NONE_YET = "0.1.0.dev0"

pytestmark = pytest.mark.skipif(
    find_spec("hatchling") is None or shutil.which("git") is None, reason="no hatchling or git: `make test` has both"
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with one commit that has what a build of the metadata reads."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder)
    return folder


def git(folder: Path, *words: str | Path) -> None:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "one")


def find_version(folder: Path) -> str:
    # Nothing of what chooses the version of a build that runs the tests.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SETUPTOOLS_SCM", "GIT_"))}
    asked = [sys.executable, "-m", "hatchling", "version"]
    return subprocess.run(asked, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout.strip()


def test_a_clone_without_a_tag_has_the_number_of_none(clone: Path):
    assert find_version(clone) == NONE_YET
    commit(clone)
    (clone / "changed").touch()
    assert find_version(clone) == NONE_YET


def test_a_tag_is_the_number_and_commits_after_it_count_up_to_the_next(clone: Path):
    git(clone, "tag", "v0.1.0")
    assert find_version(clone) == "0.1.0"
    commit(clone)
    assert find_version(clone).startswith("0.1.1.dev1+g")


def test_a_tag_that_names_no_version_is_no_version(clone: Path):
    git(clone, "tag", "golden-files-1")
    assert find_version(clone) == NONE_YET


def test_a_shallow_clone_has_the_number_of_none_unless_it_has_the_tag(clone: Path, tmp_path: Path):
    git(clone, "tag", "v0.1.0")
    git(tmp_path, "clone", "--quiet", "--depth", "1", "--branch", "v0.1.0", f"file://{clone}", "at-the-tag")
    assert find_version(tmp_path / "at-the-tag") == "0.1.0"
    commit(clone)
    commit(clone)
    git(tmp_path, "clone", "--quiet", "--depth", "1", "--no-tags", f"file://{clone}", "after-it")
    assert find_version(tmp_path / "after-it") == NONE_YET


def test_an_archive_without_git_has_the_number_of_none(clone: Path, tmp_path: Path):
    git(clone, "tag", "v0.1.0")
    shutil.copytree(clone, tmp_path / "archive", ignore=shutil.ignore_patterns(".git"))
    assert find_version(tmp_path / "archive") == NONE_YET
