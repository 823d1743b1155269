"""`run --resume --fail-on`: a gate is judged if the run was planned to compare its metric, and refused if not.

Workers take the times and the memory of a script; all else is the command's.
"""

import shlex
from pathlib import Path

import pytest

from orchestrator.model import Ended
from orchestrator.results.run_folder import RunFolder
from tests.support.actors import Part, Stage, offer
from tests.support.commands import called
from tests.support.engines import offer_engines
from tests.support.theatre import OPEN, VERSIONS, Theatre, noisy

FLAGS = ("--versions", "1.14,2.0", "--case", OPEN.label, "--rounds", "3", "--quiet")


def offer_versions(monkeypatch: pytest.MonkeyPatch, *, differ: bool) -> None:
    """Versions whose times stay open, so that the run can be continued; the later one may need half as much again."""
    old, new = VERSIONS
    parts = {
        (OPEN.label, old): Part(memory_kb=200_000),
        (OPEN.label, new): Part(noisy, memory_kb=300_000 if differ else 200_000),
    }
    offer(monkeypatch, venv=Theatre(Stage(parts)))


def count_rounds(run: Path) -> int:
    return len({entry.round for entry in RunFolder.open(run).entries() if isinstance(entry, Ended)})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.mark.parametrize(("differ", "code"), [(True, 1), (False, 0)], ids=["different", "equal"])
def test_a_gate_of_a_planned_metric_is_judged(monkeypatch, capsys, run: Path, differ: bool, code: int):
    offer_versions(monkeypatch, differ=differ)
    assert called(monkeypatch, "run", *FLAGS, "--metric", "memory", "--output", str(run)) == 0
    rounds = count_rounds(run)
    capsys.readouterr()
    gate = ("--rounds", "4", "--fail-on", "memory:more>10%", "--quiet")
    assert called(monkeypatch, "run", "--resume", str(run), *gate) == code
    out, err = capsys.readouterr()
    assert "power" in out
    assert ("1 memory:more>10% of 1 comparison" in err) == differ
    assert count_rounds(run) == rounds + 4


@pytest.mark.parametrize(("differ", "code"), [(True, 1), (False, 0)], ids=["different", "equal"])
def test_a_gate_of_another_metric_is_refused_with_the_command_that_judges_it(
    monkeypatch, capsys, run: Path, differ: bool, code: int
):
    offer_versions(monkeypatch, differ=differ)
    assert called(monkeypatch, "run", *FLAGS, "--metric", "cpu", "--output", str(run)) == 0
    rounds = count_rounds(run)
    capsys.readouterr()
    gates = "slower>900%,memory:more>10%"
    assert called(monkeypatch, "run", "--resume", str(run), "--rounds", "4", "--fail-on", gates) == 2
    out, err = capsys.readouterr()
    command = f"tfcompare report {run} --metric cpu,memory --fail-on ..."
    assert (out, err) == (
        "",
        "tfcompare: --fail-on memory:more>10%: this run was not planned to compare memory; leave it out, and judge it "
        f"afterwards: {command}\n",
    )
    assert count_rounds(run) == rounds
    # As the line says: without that gate, and with the command.
    assert called(monkeypatch, "run", "--resume", str(run), "--rounds", "4", "--fail-on", "slower>900%") == 0
    assert count_rounds(run) == rounds + 4
    _, *words, _ = shlex.split(command)
    assert called(monkeypatch, *words, gates) == code


@pytest.mark.parametrize(("gate", "code"), [("memory:more", 0), ("cpu:slower", 2)])
def test_a_run_whose_environments_were_not_ready_is_continued_for_its_gates(
    monkeypatch, capsys, run: Path, gate: str, code: int
):
    offer_engines(monkeypatch, venv=True)
    assert called(monkeypatch, "run", *FLAGS, "--metric", "memory", "--output", str(run)) == 5
    offer_versions(monkeypatch, differ=False)
    capsys.readouterr()
    assert called(monkeypatch, "run", "--resume", str(run), "--rounds", "4", "--fail-on", gate) == code
    assert ("not planned to compare cpu" in capsys.readouterr().err) == (code == 2)
