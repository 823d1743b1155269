"""The files that a workload imports are found by reading them, and are part of its digest."""

import hashlib
from pathlib import Path

import pytest

from orchestrator.catalog import workloads
from orchestrator.catalog.imports import imports_keras_alone, imports_of

BUILD = "def build(tf, params):\n    return lambda: 1.0\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    write(folder / "one.py", BUILD)
    return folder


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def digest(folder: Path, name: str = "one") -> str:
    return workloads.source_hashes([workloads.all_workloads(folder)[name]])[name]


IMPORTS = {
    "beside it": ("import _helper", "_helper.py"),
    "from a folder on the path": ("from code import thing", "third/code.py"),
    "a module of a package": ("import pack.inner", "pack/inner.py"),
    "the package around it": ("import pack.inner", "pack/__init__.py"),
    "one name of a package": ("from pack import inner", "pack/inner.py"),
    "through another": ("import _first", "_second.py"),
    "inside a function": ("def load():\n    import _helper", "_helper.py"),
    "by name": ("import importlib", "anything/at_all.py"),
    "by running it": ("exec(open('x').read())", "anything/at_all.py"),
}


def test_a_workload_that_imports_nothing_keeps_the_digest_of_earlier_runs(mine: Path):
    write(mine / "_other.py", "x = 1\n")
    assert digest(mine) == hashlib.sha256(BUILD.encode()).hexdigest()


@pytest.mark.parametrize(("statement", "other"), IMPORTS.values(), ids=IMPORTS)
def test_what_a_workload_imports_is_part_of_its_digest(mine: Path, statement: str, other: str):
    write(mine / "one.py", f"{statement}\n{BUILD}")
    write(mine / "_first.py", "from . import _second\n")
    write(mine / other, "x = 1\n")
    before = digest(mine)
    write(mine / "data.csv", "no code")
    write(mine / "_unrelated.py", "x = 1\n")
    if "anything" not in other:
        assert digest(mine) == before
    before = digest(mine)
    write(mine / other, "x = 2\n")
    assert digest(mine) != before


def test_a_circle_of_imports_and_code_of_another_python_end_the_search(mine: Path):
    write(mine / "one.py", f"import _a\n{BUILD}")
    write(mine / "_a.py", "import _b\n")
    write(mine / "_b.py", "import _a, one\n")
    assert list(imports_of(mine / "one.py")) == ["_a.py", "_b.py"]
    write(mine / "_b.py", "print 'hello'\n")
    write(mine / "_c.py", "")
    assert list(imports_of(mine / "one.py")) == ["_a.py", "_b.py", "_c.py"], "anything might be imported"


def test_a_file_may_be_named_from_a_folder_around_its_own(mine: Path):
    write(mine / "one.py", f"from {mine.parent.name}.{mine.name} import _a\n{BUILD}")
    write(mine / "_a.py", "x = 1\n")
    assert list(imports_of(mine / "one.py")) == ["_a.py"]


KERAS = {
    "import keras": True,
    "from keras.models import Sequential": True,
    "import keras.layers as layers": True,
    "def build():\n    import keras": True,
    "import _helper": True,
    "from tensorflow import keras": False,
    "import tensorflow.keras": False,
    "import tf_keras as keras": False,
    "try:\n    import tf_keras as keras\nexcept ImportError:\n    import keras": False,
    "import keras_tuner": False,
}


@pytest.mark.parametrize(("source", "alone"), KERAS.items(), ids=KERAS)
def test_the_package_keras_is_not_the_keras_of_tensorflow(mine: Path, source: str, alone: bool):
    write(mine / "one.py", f"{source}\n{BUILD}")
    if "_helper" in source:
        write(mine / "_helper.py", "import keras\n")
    assert imports_keras_alone(mine / "one.py") is alone
    assert imports_keras_alone(mine) is alone
