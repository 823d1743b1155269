"""Both packages, installed from an index into empty environments by what users install with, on every Python."""

from pathlib import Path

import pytest

from tests.conftest import require_python
from tests.support import installed
from tests.support.installed import INSTALLERS, Stubs, number_of

# What pyproject.toml names as supported.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("index")]


@pytest.mark.parametrize("number", PYTHONS)
def test_it_runs_and_reports_on_every_python(
    packages: dict[str, Path], number: str, stubs: Stubs, tmp_path: Path
) -> None:
    # Other tests install the source package, and what is built of it is the same on every Python.
    (tmp_path / "empty").mkdir()
    tfcompare = installed.by_uv(require_python(number).path, packages["wheel"], tmp_path / "home")
    installed.use(tfcompare, number_of(packages["wheel"]), tmp_path / "empty", stubs)


@pytest.mark.parametrize(
    ("name", "kind"), [pytest.param("pip", "source", marks=pytest.mark.long), *((name, "wheel") for name in INSTALLERS)]
)
def test_it_runs_and_reports_by_every_installer(
    packages: dict[str, Path], name: str, kind: str, stubs: Stubs, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    python = next(found for number in PYTHONS if (found := installed.find_python(number)))
    tfcompare = INSTALLERS[name](python, packages[kind], tmp_path / "home")
    installed.use(tfcompare, number_of(packages[kind]), tmp_path / "empty", stubs)
