"""A run with Keras 2 says which of the user's workloads import the package that stays Keras 3."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.catalog.changed import LEGACY
from orchestrator.catalog.version import TargetChanges
from orchestrator.measure.session import make_manifest, note_keras
from orchestrator.plan.request import PlannedRun, RunOptions, check_request

BUILD = "def build(tf, params):\n    return lambda: 1.0\n"
NOTE = "imports keras, which is Keras 3 in keras-2 as well: keras=2 changes tf.keras alone. Use tf.keras"


def plan(options: RunOptions, *variables: tuple[str, str]) -> PlannedRun:
    """Return a planned run whose second target has these variables; it is not locked, which would take an index."""
    planned = check_request(options)
    first, second = planned.selection.versions
    changes = TargetChanges(name="keras-2", definition="2.16 keras=2 as keras-2", variables=variables)
    versions = (first, replace(second, changes=changes))
    return replace(planned, selection=replace(planned.selection, versions=versions))


@pytest.mark.parametrize("program", [("python", "own.py"), ()], ids=["program", "workload"])
def test_a_keras_that_stays_3_is_noted_with_keras_2_alone(tmp_path: Path, program: tuple[str, ...]):
    (tmp_path / "own.py").write_text(f"import keras\n{BUILD}")
    options = RunOptions(versions=("2.15", "2.16"), own_workloads=tmp_path, program=program)
    [note] = note_keras(plan(options, LEGACY))
    assert note.startswith(f"{'python own.py' if program else 'own'} {NOTE}")
    assert note in make_manifest(plan(options, LEGACY), {}).notes
    assert note_keras(plan(options, ("TF_XLA_FLAGS", "1"))) == ()
    assert note_keras(check_request(options)) == ()
    (tmp_path / "own.py").write_text(f"from tensorflow import keras\n{BUILD}")
    assert note_keras(plan(options, LEGACY)) == ()


def test_workloads_of_tfcompare_are_not_looked_into():
    options = RunOptions(versions=("2.15", "2.16"), suite="smoke")
    assert note_keras(plan(options, LEGACY)) == ()
