"""The real command asks why, on both engines: a known change is named, and where nothing differs, nothing is."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.conftest import ROOT, run_command
from tests.support.end_to_end import Answer

SCHEMA = json.loads((ROOT / "docs" / "schema" / "why-1.json").read_text())
# The step of this workload takes longer with one variable, less long with another, and dies with a third.
STEP = """
import os
import time

PAUSE_S = 0.004
if os.environ.get("SLOW"):
    PAUSE_S *= 3
if os.environ.get("FAST"):
    PAUSE_S /= 3
if os.environ.get("DEADLY"):
    raise RuntimeError("not with DEADLY")


def build(tf, params):
    return lambda: time.sleep(PAUSE_S)
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "step.py").write_text(STEP)
    return tmp_path / "own"


@pytest.fixture(
    params=[
        pytest.param("venv", marks=pytest.mark.tensorflow),
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.long]),
    ]
)
def place(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """An engine, and the variables of the command that uses it."""
    if request.param == "docker":
        return "docker", {"TFCOMPARE_BASE": request.getfixturevalue("docker_base")}
    return "venv", request.getfixturevalue("stub_cache")


def ask(tfcompare: str, *words: str | Path, env: dict[str, str], code: int = 0) -> tuple[Answer, str]:
    done = run_command(tfcompare, "why", *words, "--format", "json", env=env)
    assert done.returncode == code, done.stderr
    answer = json.loads(done.stdout)
    Draft202012Validator(SCHEMA).validate(answer)
    return answer, done.stderr


def blamed(answer: Answer) -> list[str]:
    return [", ".join(rung["changed"]) for rung in answer["rungs"] if rung["matters"]]


def test_the_guilty_change_is_named_and_the_page_shows_it(
    tfcompare: str, own: Path, tmp_path: Path, place: tuple[str, dict[str, str]]
) -> None:
    engine, env = place
    flags = ("--case", "step", "--workload-folder", own, "--engine", engine, "--output", tmp_path / "why")
    answer, stderr = ask(tfcompare, "2.13", "2.13 SLOW=1 OTHER=1 THIRD=1", *flags, env=env)
    assert answer["whole"]["verdict"] == "slower", stderr
    assert blamed(answer) == ["SLOW none -> 1"]
    [remedy] = [each for each in answer["remedies"] if each["helps"]]
    assert set(shlex.split(remedy["target"])) == {"2.13.0", "OTHER=1", "THIRD=1"}
    assert any("sleep" in line for line in answer["where"])
    page = (tmp_path / "why" / "report.html").read_text()
    assert "SLOW none -&gt; 1" in page
    assert 'class="flames"' in page
    shown = run_command(tfcompare, "why", "--resume", tmp_path / "why", env={**env, "COLUMNS": "80"})
    assert shown.returncode == 0, shown.stderr
    assert "Why: SLOW none -> 1" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_where_nothing_differs_nothing_is_blamed(
    tfcompare: str, own: Path, tmp_path: Path, place: tuple[str, dict[str, str]]
) -> None:
    engine, env = place
    flags = ("--case", "step", "--workload-folder", own, "--engine", engine, "--output", tmp_path / "why")
    answer, _ = ask(tfcompare, "2.13", "2.13 OTHER=1 THIRD=1", *flags, env=env)
    assert blamed(answer) == []
    assert answer["remedies"] == []
    assert answer["whole"]["verdict"] in ("same", "inconclusive")


@pytest.mark.tensorflow
def test_two_changes_that_cancel_each_other_are_both_named(
    tfcompare: str, own: Path, tmp_path: Path, stub_cache: dict[str, str]
) -> None:
    flags = ("--case", "step", "--workload-folder", own, "--engine", "venv", "--output", tmp_path / "why")
    answer, _ = ask(tfcompare, "2.13", "2.13 SLOW=1 FAST=1", *flags, env=stub_cache)
    assert blamed(answer) == ["SLOW none -> 1", "FAST none -> 1"]


@pytest.mark.tensorflow
def test_the_change_that_stops_a_case_is_named(
    tfcompare: str, own: Path, tmp_path: Path, stub_cache: dict[str, str]
) -> None:
    flags = ("--case", "step", "--workload-folder", own, "--engine", "venv", "--output", tmp_path / "why")
    answer, _ = ask(tfcompare, "2.13", "2.13 OTHER=1 DEADLY=1", *flags, env=stub_cache)
    assert blamed(answer) == ["DEADLY none -> 1"]
    assert "not with DEADLY" in answer["death"]


@pytest.mark.tensorflow
def test_a_run_is_asked_about_its_largest_difference(
    tfcompare: str, own: Path, tmp_path: Path, stub_cache: dict[str, str]
) -> None:
    flags = ("--workload-folder", own, "--engine", "venv", "--rounds", "4", "--output", tmp_path / "run")
    done = run_command(tfcompare, "run", "2.13", "2.13 OTHER=1", "2.13 SLOW=1", *flags, env=stub_cache)
    assert done.returncode == 0, done.stderr
    # The run keeps a copy of what it measured.
    (own / "step.py").write_text("def build(tf, params):\n    raise RuntimeError\n")
    answer, _ = ask(tfcompare, tmp_path / "run", "--output", tmp_path / "why", env=stub_cache)
    assert answer["new"]["name"] == "2.13.0+SLOW=1"
    assert blamed(answer) == ["SLOW none -> 1"]
    equal = run_command(tfcompare, "why", tmp_path / "run", "nothing", env=stub_cache)
    assert equal.returncode == 2
    assert "is not one case of the run" in equal.stderr


@pytest.mark.tensorflow
def test_a_program_is_asked_about_as_well(tfcompare: str, tmp_path: Path, stub_cache: dict[str, str]) -> None:
    (tmp_path / "train.py").write_text("import os, time\ntime.sleep(2.0 if os.environ.get('SLOW') else 0.1)\n")
    words = ("why", "2.13", "2.13 SLOW=1 OTHER=1", "--engine", "venv", "--output", tmp_path / "why")
    program = ("--format", "json", "--", "python", "train.py")
    done = run_command(tfcompare, *words, *program, env=stub_cache, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert blamed(json.loads(done.stdout)) == ["SLOW none -> 1"]


REFUSED = {
    "no case": (("2.13", "2.13 A=1"), "name one case with --case, or a program after --"),
    "one target": (("2.13",), "or two targets"),
    "equal targets": (("2.13", "2.13", "--case", "power[style=eager]"), "named twice"),
    "several cases": (("2.13", "2.13 A=1", "--case", "power"), "name one of them"),
    "no such version": (("2.13", "2.99", "--case", "power[style=eager]"), "2.99"),
    "flags of a run": (("--resume", "nowhere", "--case", "power[style=eager]"), "leave --case out, or ask again"),
    "no such folder": (("--resume", "nowhere"), "holds no question"),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("what", REFUSED)
def test_a_mistake_is_one_sentence(tfcompare: str, tmp_path: Path, stub_cache: dict[str, str], what: str) -> None:
    words, said = REFUSED[what]
    engine = () if "--resume" in words else ("--engine", "venv")
    done = run_command(tfcompare, "why", *words, *engine, env=stub_cache, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@pytest.mark.tensorflow
def test_a_run_of_a_stranger_and_a_changed_question_execute_nothing(
    tfcompare: str, own: Path, tmp_path: Path, stub_cache: dict[str, str]
) -> None:
    flags = ("--workload-folder", own, "--engine", "venv", "--rounds", "4", "--output", tmp_path / "run")
    done = run_command(tfcompare, "run", "2.13", "2.13 SLOW=1", *flags, env=stub_cache)
    assert done.returncode == 0, done.stderr
    for seal in (tmp_path / "run").glob("seal"):
        seal.unlink()
    mark = tmp_path / "executed"
    copied = next((tmp_path / "run" / "workloads").glob("step.py"))
    copied.chmod(0o644)
    copied.write_text(f"open({str(mark)!r}, 'w')\n{STEP}")
    refused = run_command(tfcompare, "why", tmp_path / "run", "--output", tmp_path / "why", env=stub_cache)
    assert refused.returncode == 2
    assert "tfcompare trust" in refused.stderr or "changed since" in refused.stderr
    assert not mark.exists()


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.timeout(1800)
def test_keras_is_named_as_what_made_a_step_cheap(tfcompare: str, tmp_path: Path) -> None:
    words = ("2.20 keras==3.8.0", "2.20 keras==3.5.0 TF_ENABLE_ONEDNN_OPTS=1")
    flags = ("--case", "train_tiny[model=mlp,loop=train_on_batch]", "--judge", "cpu", "--engine", "venv")
    env = {"TFCOMPARE_DATA": str(tmp_path / "data")}
    answer, stderr = ask(tfcompare, *words, *flags, "--budget", "10m", "--output", tmp_path / "why", env=env)
    assert answer["whole"]["verdict"] == "slower", stderr
    assert blamed(answer) == ["Keras 3.8.0 -> 3.5.0"]


@pytest.mark.tensorflow
def test_what_is_interrupted_answers_with_what_it_has(
    tfcompare: str, own: Path, tmp_path: Path, stub_cache: dict[str, str]
) -> None:
    import os
    import signal
    import time

    flags = ("--case", "step", "--workload-folder", own, "--engine", "venv", "--output", tmp_path / "why")
    words = (tfcompare, "why", "2.13", "2.13 SLOW=1 OTHER=1", *map(str, flags))
    process = subprocess.Popen(
        words, env={**os.environ, **stub_cache}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    journal = tmp_path / "why" / "steps" / "01" / "journal.jsonl"
    until = time.monotonic() + 120
    while time.monotonic() < until and not (journal.exists() and journal.read_text().count('"ended"') > 10):
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "tfcompare why step" in stdout
    assert f"tfcompare why --resume {tmp_path / 'why'}" in stderr
    answer, _ = ask(tfcompare, "--resume", tmp_path / "why", env=stub_cache)
    assert blamed(answer) == ["SLOW none -> 1"]
