"""The commands on images end in one line and an exit code where there is no engine, no image or no such version."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.catalog import user_data
from orchestrator.errors import UsageError
from tests.conftest import run_command
from tests.support.commands import called

COMMANDS = {
    "list": ["list"],
    "list as json": ["list", "--format", "json", "--all"],
    "verify": ["verify", "1.14"],
    "prune": ["prune", "--yes", "--all"],
    "lock": ["lock", "1.14"],
    "save": ["save", "images.tar", "1.14"],
}


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No engine, and folders of this test's own."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'nobody.sock'}")
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TFCOMPARE_BASE", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("argv", COMMANDS.values(), ids=COMMANDS)
def test_an_engine_that_is_not_there_is_one_line_and_4(tfcompare: str, tmp_path: Path, argv: list[str]):
    # A process of its own: the docker package leaves a socket open where nobody listens.
    done = run_command(tfcompare, "images", *argv, cwd=tmp_path)
    assert done.returncode == 4
    assert done.stdout == ""
    assert done.stderr.startswith("tfcompare: no Docker engine answers (its socket does not exist); ")
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


BAD_CALLS = {
    "an unknown version": (["verify", "2.130"], "unknown version '2.130' (did you mean 2.13"),
    "the same version twice": (["save", "images.tar", "2.0,2.0.0"], "named twice"),
    "an unknown format": (["list", "--format", "jsno"], "did you mean json?"),
    "an unknown format of a lock": (["lock", "--format", "html"], "choose from table, json"),
    "a file that is not there": (["load", "nowhere.tar"], "nowhere.tar: cannot be read: No such file"),
    "one name for all": (["build", "--name", "mine:latest"], "without {version} in it"),
    "no file": (["save"], "Missing argument 'FILE'"),
}


@pytest.mark.parametrize(("argv", "words"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_a_bad_call_is_told_before_the_engine_is_asked(monkeypatch, capsys, argv: list[str], words: str):
    assert called(monkeypatch, "images", *argv) == 2
    streams = capsys.readouterr()
    assert words in streams.err
    assert streams.out == ""


def test_a_digests_file_that_is_none_is_told_by_its_path(monkeypatch, capsys, tmp_path: Path):
    path = tmp_path / "data" / "tfcompare" / "digests.toml"
    path.parent.mkdir(parents=True)
    path.write_text("hello")
    assert called(monkeypatch, "images", "lock", "1.14", "--base", "mine:{python}") == 2
    assert f"{path}: " in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_told_by_its_path(monkeypatch):
    monkeypatch.setenv("TFCOMPARE_DATA", "/proc")
    with pytest.raises(UsageError, match=r"^cannot write /proc/tfcompare/.lock: .*TFCOMPARE_DATA"):
        user_data.write_digests({"mine:1": "sha256:1"})


def test_the_commands_are_known_without_the_client_of_the_engine():
    code = "import orchestrator.cli.images.common, sys; sys.exit('docker' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_builds_images_waits_for_nothing_of_what_measures_and_draws():
    """With nothing to do it takes less than a second, and each of these takes a part of one to import."""
    code = (
        "import sys, orchestrator.cli.main, orchestrator.cli.images.build, orchestrator.images.build\n"
        "print([name for name in ('numpy', 'pyarrow', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
