"""The packages that a release publishes, environments that have one of them and nothing of the checkout, and their use.

TFCOMPARE_PACKAGES names a folder with packages that were built before; they are then the ones that are tested.
"""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from orchestrator.catalog.uv import find_uv
from orchestrator.engines.venv import interpreters
from tests.conftest import ROOT, run_command
from tests.support import stub_environments

KINDS = {"wheel": "*.whl", "source": "*.tar.gz"}
WORKLOAD = '''"""Count to a thousand."""


def build(tf, params):
    return lambda: sum(range(1000))
'''


def build(folder: Path) -> dict[str, Path]:
    """Build the source package, and the wheel from it, as `make release-check` does."""
    if not os.environ.get("TFCOMPARE_PACKAGES"):
        building = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
        done = subprocess.run(building, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    place = Path(os.environ.get("TFCOMPARE_PACKAGES") or folder)
    packages = {}
    for kind, pattern in KINDS.items():
        [packages[kind]] = place.glob(pattern)
    return packages


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the source package."""
    return build(tmp_path_factory.mktemp("packages"))


def number_of(package: Path) -> str:
    """The version in the name of a package."""
    return package.name.removesuffix(".tar.gz").split("-")[1]


def install_offline(package: Path, home: Path) -> Path:
    """An environment with this package; what it requires is what the tests have. Return its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    [site] = home.glob("lib/python*/site-packages")
    # A path in such a file is only a path: the link to the checkout that is there is not followed.
    (site / "required.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    flags = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
    run(sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", *flags, package)
    return home / "bin"


def run(*words: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """Standard output of a command that has to succeed."""
    done = run_command(*words, env=env, cwd=cwd)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@cache
def find_python(number: str) -> Path | None:
    found = interpreters.find_interpreter(number)
    return found and found.path


@dataclass(frozen=True)
class Stubs:
    """Environments with a stub of TensorFlow that are made of what the tests have, and the targets that take them."""

    env: dict[str, str]
    targets: tuple[str, ...]


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Stubs:
    env, targets = stub_environments.build_here(tmp_path_factory.mktemp("stubs") / "cache")
    if not targets:
        pytest.skip("no TensorFlow for the Python of the tests: the stubs are made of its packages")
    return Stubs(env, targets)


def use(tfcompare: Path, number: str, folder: Path, stubs: Stubs) -> None:
    """Do with an installed tfcompare, in an empty folder, what a new user does first."""
    env = {**stubs.env, "PYTHONPATH": "", "HOME": str(folder), "TFCOMPARE_DATA": str(folder / "data")}

    def call(*words: str | Path) -> str:
        return run(tfcompare, *words, env=env, cwd=folder)

    assert call("--version").startswith(f"tfcompare {number} (contract ")
    (folder / "mine").mkdir()
    (folder / "mine" / "counts.py").write_text(WORKLOAD)
    flags = ("--engine", "venv", "--workload-folder", "mine", "--rounds", "2", "--quiet", "--output", "run")
    answer = json.loads(call("run", *stubs.targets, *flags, "--format", "json"))
    assert [arm["outcome"] for arm in answer["arms"]] == ["measured"] * len(stubs.targets)
    assert "counts" in call("report", "run")
    assert call("report", "run", "--format", "html") == ""
    page = (folder / "run" / "report.html").read_text()
    assert 'class="drawing"' in page
    assert "counts" in page


def _uv() -> str:
    found = find_uv()
    assert found, "uv is one of tfcompare's dependencies"
    return found


def by_uv(python: Path, package: Path, home: Path) -> Path:
    run(_uv(), "venv", "--quiet", "--python", python, home)
    run(_uv(), "pip", "install", "--quiet", "--python", home / "bin" / "python", package)
    return home / "bin" / "tfcompare"


def by_pip(python: Path, package: Path, home: Path) -> Path:
    run(python, "-m", "venv", home)
    run(home / "bin" / "python", "-m", "pip", "install", "--quiet", package)
    return home / "bin" / "tfcompare"


def by_uv_tool(python: Path, package: Path, home: Path) -> Path:
    env = {"UV_TOOL_DIR": str(home / "tools"), "UV_TOOL_BIN_DIR": str(home / "bin")}
    run(_uv(), "tool", "install", "--quiet", "--python", python, package, env=env)
    return home / "bin" / "tfcompare"


def by_uvx(python: Path, package: Path, home: Path) -> Path:
    home.mkdir()
    program = home / "tfcompare"
    program.write_text(
        f'#!/bin/sh\nexec "{_uv()}" tool run --quiet --python "{python}" --from "{package}" tfcompare "$@"\n'
    )
    program.chmod(0o755)
    return program


def by_pipx(python: Path, package: Path, home: Path) -> Path:
    env = {"PIPX_HOME": str(home / "pipx"), "PIPX_BIN_DIR": str(home / "bin"), "PIPX_MAN_DIR": str(home / "man")}
    run(sys.executable, "-m", "pipx", "install", "--quiet", "--python", python, package, env=env)
    return home / "bin" / "tfcompare"


Install = Callable[[Path, Path, Path], Path]
INSTALLERS: dict[str, Install] = {"pip": by_pip, "pipx": by_pipx, "uv-tool": by_uv_tool, "uvx": by_uvx}


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An index that answers; what tfcompare requires comes from it."""
    target = tmp_path_factory.mktemp("asked")
    asked = run_command(_uv(), "pip", "install", "--dry-run", "--refresh", "--target", target, "packaging")
    if asked.returncode:
        pytest.skip(f"no package index: {asked.stderr.strip()[-200:]}")
