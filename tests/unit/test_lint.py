"""What is linted is what git tracks: a folder that is left out by its name would be missed by nobody."""

import re
import subprocess
from pathlib import Path

from tests.conftest import ROOT


def linted(*words: str) -> set[str]:
    told = subprocess.run(
        ["ruff", "check", "--show-files", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return {Path(line).relative_to(ROOT).as_posix() for line in told.splitlines() if line.endswith(".py")}


def test_all_python_that_git_tracks_is_linted_and_only_once():
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    asked = subprocess.run(
        ["make", "--no-print-directory", "-n", "lint"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    [inside] = re.findall(r"ruff check --config tools/ruff-inside.toml (.+)", asked)
    on_the_host, within = linted(), linted("--config", "tools/ruff-inside.toml", *inside.split())
    assert on_the_host | within == set(listed.split())
    assert not on_the_host & within
