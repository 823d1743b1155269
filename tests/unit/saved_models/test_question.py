"""A wrong question is refused in one line, before anything is installed."""

from pathlib import Path

import pytest

from orchestrator.saved_models.question import FORMATS, MODELS, SavedFile, find_saved
from tests.support.commands import called
from workloads.saving import formats
from workloads.saving import models as builtin

FILES = {
    "good.py": "def build(tf): pass\n",
    "bare.py": "def other(tf): pass\n",
    "two.py": "def build(tf, params): pass\n",
    "broken.py": "def build(tf: pass\n",
    "inputs.py": "def build(tf): pass\ndef inputs(): pass\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "old.h5").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name the targets, e.g. tfcompare models --versions 2.8,2.13,2.16,2.20"),
        (("2.8", "2.8"), "2.8"),
        (("2.8",), "a comparison takes at least two versions"),
        (("2.8", "2.16", "--formats", "kers"), "did you mean keras?"),
        (("2.8", "2.16", "--models", "lsmt"), "did you mean lstm?"),
        (("2.8", "2.16", "--fail-on", "dies"), "did you mean died?"),
        (("2.8", "2.16", "--model", "absent.py"), "name a Python file with build(tf)"),
        (("2.8", "2.16", "--model", "bare.py"), "it needs a function build(tf) that returns a model"),
        (("2.8", "2.16", "--model", "two.py"), "line 1: build takes one argument, build(tf)"),
        (("2.8", "2.16", "--model", "inputs.py"), "line 2: inputs takes one argument, inputs(tf)"),
        (("2.8", "2.16", "--model", "broken.py"), "cannot be read as Python"),
        (("2.8", "2.16", "--model", "good.py", "--models", "lstm"), "leave it out with --model"),
        (("2.8", "2.16", "--budget", "1m"), "add --time"),
        (("2.8", "2.16", "--saved", "old.h5", "--time"), "leave it out"),
        (("2.8", "2.16", "--saved", "absent"), "name a folder of saved models"),
        (("2.8", "2.16", "--saved", "empty"), "it holds no .keras or .h5 file and no SavedModel folder"),
        (("2.8", "2.16", "--saved", "notes.txt"), "name a folder of saved models"),
        (("2.8", "2.16", "--saved", "empty", "--formats", "h5"), "leave it out with --saved"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(monkeypatch, capsys, words: tuple[str, ...], message: str):
    assert called(monkeypatch, "models", *words, "--engine", "venv", "--quiet") == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_files_are_recognised_by_their_names(folder: Path):
    for name in ("a.keras", "b.h5", "c.weights.h5", "d.hdf5", ".hidden.h5"):
        (folder / "empty" / name).touch()
    (folder / "empty" / "e").mkdir()
    (folder / "empty" / "e" / "saved_model.pb").touch()
    (folder / "empty" / "f").mkdir()
    saved = find_saved(folder / "empty")
    assert {(each.path.name, each.format) for each in saved} == {
        ("a.keras", "keras"), ("b.h5", "h5"), ("c.weights.h5", "weights"), ("d.hdf5", "h5"), ("e", "savedmodel"),
    }  # fmt: skip
    assert find_saved(folder / "empty" / "e") == (SavedFile(folder / "empty" / "e", "savedmodel"),)


def test_both_sides_have_the_same_models_and_formats():
    assert tuple(builtin.MODELS) == MODELS
    assert tuple(formats.SUFFIXES) == FORMATS
