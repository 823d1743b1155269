"""The example of the page on workloads of one's own is run as it stands there."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_command
from tests.support.end_to_end import compare, comparison

PAGE = (ROOT / "docs" / "own-workload.md").read_text()


def test_the_documented_example_runs_with_the_documented_command(tfcompare: str, tmp_path: Path) -> None:
    [source] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    [path] = re.findall(r"Save it as `(\S+)`", PAGE)
    [command] = re.findall(r"^    tfcompare run (.*)$", PAGE, re.MULTILINE)
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text(source)
    assert "import" not in source
    few = ("--engine", "venv", "--rounds", "2", "--output", tmp_path / "run")
    code, answer, stderr = compare(tfcompare, *command.split(), *few, cwd=tmp_path)
    assert code == 0, stderr
    assert len(answer["arms"]) == 4 * 2
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    assert comparison(answer, "multiply", "case", {"target": "2.13.0"}, size="64")["rounds"] == 2


def test_the_documented_example_refuses_where_it_says_so(tfcompare: str, tmp_path: Path) -> None:
    [source] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "multiply.py").write_text(source)
    flags = ("--versions", "1.14,2.0", "--workload-folder", tmp_path, "--case", "multiply[size=64]")
    code, answer, stderr = compare(tfcompare, *flags, "--engine", "venv", "--rounds", "2", "--output", tmp_path / "run")
    assert code == 0, stderr
    refused = [arm for arm in answer["arms"] if arm["target"] == "1.14.0"]
    assert {(arm["outcome"], arm["reason"]) for arm in refused} == {
        ("refused", "TensorFlow 1 has no eager mode switched on by default")
    }


NEEDY = """
import os

import helper
import tabulate

REQUIREMENTS = ("tabulate",)
DATA = {"words": "%s"}


def build(tf, params):
    with open(os.path.join(DATA["words"], "words.txt")) as text:
        words = text.read().split()
    return lambda: len(helper.draw(tabulate.tabulate, words))
"""
HELPER = "def draw(tabulate, words):\n    return tabulate([words])\n"
CONTRARY = "REQUIREMENTS = ('numpy>=2',)\ndef build(tf, params): return lambda: 1\n"


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("venv", marks=pytest.mark.tensorflow),
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.long]),
    ],
)
def test_packages_data_and_helpers_are_there_in_every_version(
    tfcompare: str, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    data, own = tmp_path / "data", tmp_path / "own"
    data.mkdir()
    own.mkdir()
    (data / "words.txt").write_text("one two three")
    (own / "needy.py").write_text(NEEDY % data)
    (own / "_helper.py").write_text("")
    (own / "helper").mkdir()
    (own / "helper" / "__init__.py").write_text(HELPER)
    (own / "contrary.py").write_text(CONTRARY)
    docker = engine == "docker"
    # Only packages matter here, and a stub has those of the release.
    env = (
        {"TFCOMPARE_BASE": request.getfixturevalue("docker_base")} if docker else request.getfixturevalue("stub_cache")
    )
    flags = ("--engine", engine, "--rounds", "2", "--workload-folder", own, "--hash-data", "--output", tmp_path / "run")
    flags += ("--data", f"words={data}")
    code, answer, stderr = compare(tfcompare, "--versions", "1.14,2.0", *flags, env=env)
    assert code == 0, stderr
    found = {(arm["workload"], arm["target"]): (arm["outcome"], arm["reason"] or "") for arm in answer["arms"]}
    for version in ("1.14.0", "2.0.0"):
        assert found["needy", version] == ("measured", ""), stderr
        outcome, reason = found["contrary", version]
        assert outcome == "refused"
        assert "it requires numpy>=2, which is incompatible with this target" in reason
    assert "tfcompare_data/needy/words" in (tmp_path / "run" / "manifest.json").read_text()
    (data / "words.txt").write_text("four")
    more = run_command(tfcompare, "run", "--resume", tmp_path / "run", env=env)
    assert more.returncode == 2
    assert "have changed since it was measured" in more.stderr


def test_what_init_writes_returns_the_same_in_two_versions_and_shows_a_change(tfcompare: str, tmp_path: Path) -> None:
    own = tmp_path / "mine"
    assert run_command(tfcompare, "init", own).returncode == 0
    [written] = own.iterdir()
    [factor] = re.findall(r"scale=0\.1\b", written.read_text())
    other = "scale=0.1 if tf.__version__.startswith('1.') else 0.11"
    (own / "changed.py").write_text(written.read_text().replace(factor, other))
    flags = ("--engine", "venv", "--rounds", "2", "--quiet", "--output", tmp_path / "run")
    code, answer, stderr = compare(tfcompare, "--versions", "1.14,2.13", "--workload-folder", own, *flags)
    assert code == 0, stderr
    verdicts = {(each["workload"], each["params"]["units"]): each["verdict"] for each in answer["outputs"]}
    assert {verdicts[written.stem, units] for units in ("32", "256")} <= {"equal", "equal within tolerance"}
    assert {verdicts["changed", units] for units in ("32", "256")} == {"differs"}
