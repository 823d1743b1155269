"""Revisions of the user's own code are measured for real: one that was slower, and one that is the same."""

from pathlib import Path

import pytest

from tests.conftest import run_command
from tests.support import repository
from tests.support.end_to_end import compare, comparison

STEP = """
import time

from helper import PAUSE_S


def build(tf, params):
    return lambda: time.sleep(PAUSE_S)
"""
PROGRAM = "import time, helper\nfor step in range(3):\n    time.sleep(helper.PAUSE_S)\n    print(time.time())\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A repository whose step took 3 ms, then 30 ms, and takes 30 ms now."""
    root = repository.begin(tmp_path / "project")
    repository.commit(root, {"mine/step.py": STEP, "mine/helper.py": "PAUSE_S = 0.003\n"}, "fast")
    repository.commit(root, {"mine/helper.py": "PAUSE_S = 0.03\n"}, "slow")
    return root / "mine"


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("venv", marks=pytest.mark.tensorflow),
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.long]),
    ],
)
def test_a_change_of_ones_own_code_is_found_and_an_unchanged_one_is_not(
    tfcompare: str, own: Path, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    docker = engine == "docker"
    env = (
        {"TFCOMPARE_BASE": request.getfixturevalue("docker_base")} if docker else request.getfixturevalue("stub_cache")
    )
    targets = ("2.13", "2.13 @fast", "2.13 @slow")
    flags = ("--engine", engine, "--rounds", "4", "--workload-folder", own, "--output", tmp_path / "run")
    code, answer, stderr = compare(tfcompare, *targets, *flags, env=env)
    assert code == 0, stderr
    before, same = (comparison(answer, "step", "target", {"candidate": f"2.13.0@{name}"}) for name in ("fast", "slow"))
    assert before["verdict"] == "faster"
    assert before["ratio"] < 0.3
    assert same["verdict"] == "same"
    first = repository.git(own, "rev-parse", "fast")
    shown = run_command(tfcompare, "report", tmp_path / "run").stdout
    assert f"2.13.0@fast: your code as it is -> {first[:12]}" in " ".join(shown.split())
    # The branch moves, and the run continues with what it measured.
    repository.commit(own, {"helper.py": "PAUSE_S = 0.0\n"})
    more = run_command(tfcompare, "run", "--resume", tmp_path / "run", "--rounds", "2", "--quiet", env=env)
    assert "changed since" not in more.stderr
    kept = tmp_path / "run" / "workloads" / f"@{first[:12]}" / "helper.py"
    kept.chmod(0o644)
    kept.write_text("PAUSE_S = 0.0\n")
    changed = run_command(tfcompare, "run", "--resume", tmp_path / "run", env=env)
    assert changed.returncode == 2
    assert f"@{first[:12]}" in changed.stderr


@pytest.mark.tensorflow
def test_a_program_has_revisions_as_well(tfcompare: str, own: Path, tmp_path: Path, stub_cache: dict[str, str]) -> None:
    repository.commit(own, {"train.py": PROGRAM})
    repository.commit(own, {"helper.py": "PAUSE_S = 1.2\n"})
    flags = ("--engine", "venv", "--rounds", "6", "--output", tmp_path / "run")
    words = ("--", "python", "train.py")
    code, answer, stderr = compare(tfcompare, "2.13", "2.13 @HEAD~1", *flags, *words, env=stub_cache, cwd=own)
    assert code == 0, stderr
    [found] = [each for each in answer["comparisons"] if each["metric"] == "time"]
    assert (found["candidate"], found["verdict"]) == ("2.13.0@HEAD~1", "faster"), found
