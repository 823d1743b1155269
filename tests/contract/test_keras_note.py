"""Whether `keras` is the package or the user's own: the note of a run says what Python finds in a real worker."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.catalog.changed import LEGACY
from orchestrator.catalog.version import TargetChanges
from orchestrator.engines.worker.client import Burst, Opened
from orchestrator.measure.session import note_keras
from orchestrator.plan.request import RunOptions, check_request
from tests.support.bench import Bench

USES = """
    import keras
    print("it found", keras.WHOSE, flush=True)

    def build(tf, params):
        return lambda: 1.0
    """
OWN = "WHOSE = 'the own'\n"
OF_PROGRAMS = {
    "none of the user's": ("none.py", "train.py", "the package"),
    "a file next to the script": ("keras.py", "train.py", "the own"),
    "a package next to the script": ("keras/__init__.py", "train.py", "the own"),
    "a folder that is no package": ("keras/notes.py", "train.py", "the package"),
    "a file next to a script in a folder": ("code/keras.py", "code/train.py", "the own"),
    "a file away from the script": ("keras.py", "code/train.py", "the package"),
}


@pytest.fixture
def bench(bench: Bench) -> Bench:
    """A worker in whose environment there is a package `keras`."""
    write(bench.folder / "stub" / "keras" / "__init__.py", "WHOSE = 'the package'\n")
    return bench


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def note(bench: Bench, program: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the notes of a run whose second target has Keras 2."""
    planned = check_request(RunOptions(versions=("2.15", "2.16"), own_workloads=bench.workloads, program=program))
    first, second = planned.selection.versions
    changes = TargetChanges(name="keras-2", definition="2.16 keras=2 as keras-2", variables=(LEGACY,))
    versions = (first, replace(second, changes=changes))
    return note_keras(replace(planned, selection=replace(planned.selection, versions=versions)))


@pytest.mark.parametrize(("own", "script", "found"), OF_PROGRAMS.values(), ids=OF_PROGRAMS)
def test_a_program_is_noted_if_it_finds_the_package(bench: Bench, own: str, script: str, found: str):
    (bench.workloads / script).parent.mkdir(exist_ok=True)
    bench.workload(script.removesuffix(".py"), USES)
    write(bench.workloads / own, OWN)
    number, _ = bench.open(f"python {script}", program=("python", script))
    ran = bench.burst(number, 1)
    assert isinstance(ran, Burst), ran
    bench.close(number)
    assert f"it found {found}" in bench.log.read_text()
    assert len(note(bench, ("python", script))) == (found == "the package")


@pytest.mark.parametrize("own", ["none.py", "keras.py", "keras/__init__.py"])
def test_a_workload_finds_the_package_whatever_is_next_to_it(bench: Bench, own: str):
    """Its folder is last on the path."""
    bench.workload("uses", USES)
    write(bench.workloads / own, f"{OWN}\ndef build(tf, params):\n    return lambda: 1.0\n")
    number, opened = bench.open("uses")
    assert isinstance(opened, Opened), opened
    bench.close(number)
    assert "it found the package" in bench.log.read_text()
    assert [text.partition(" ")[0] for text in note(bench)] == ["uses"]
