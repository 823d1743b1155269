"""The wheel, installed into an empty environment far from the checkout, does the whole job: images and workloads
travel with it."""

import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_command
from tests.support.end_to_end import compare

BUNDLED = ("images", "workloads")
DIST_INFO = f"tfcompare-{version('tfcompare')}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
    )
    [path] = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and nothing of the checkout; what it requires is what these tests have."""
    home = tmp_path_factory.mktemp("home") / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    [packages] = home.glob("lib/python*/site-packages")
    # A path in such a file is only a path: the link to the checkout that is there is not followed.
    (packages / "required.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    installing = [sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "--no-deps", wheel]
    subprocess.run(installing, check=True, capture_output=True)
    return home


def test_wheel_holds_two_packages_and_every_tracked_file(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"orchestrator", "tfcompare", DIST_INFO}
    tracked = run_command("git", "-C", ROOT, "ls-files", "orchestrator", "tfcompare", *BUNDLED).stdout.split()
    expected = [f"orchestrator/_bundled/{name}" if name.startswith(BUNDLED) else name for name in tracked]
    assert sorted(name for name in names if ".dist-info/" not in name) == sorted(expected)
    assert {"orchestrator/py.typed", "tfcompare/py.typed"} <= set(names)


def test_installed_wheel_compares_versions(home: Path, tmp_path: Path) -> None:
    # Packages of the user's own, with the names of the folders that the wheel brings, where Python looks first.
    for name in BUNDLED:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('a package of the user was imported')\n")
    theirs = {"PYTHONPATH": str(tmp_path)}
    program = "import orchestrator; print(orchestrator.__file__)"
    assert Path(run_command(home / "bin" / "python", "-c", program, cwd=tmp_path).stdout).is_relative_to(home)
    code, answer, stderr = compare(
        str(home / "bin" / "tfcompare"), "--versions", "1.14,2.0", "--engine", "venv", "--case",
        "power[style=function]", "--rounds", "2", "--quiet", "--output", tmp_path / "run", cwd=tmp_path, env=theirs,
    )  # fmt: skip
    assert code == 0, stderr
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    page = run_command(
        home / "bin" / "python", "-m", "tfcompare", "report", "run", "--format", "html", cwd=tmp_path, env=theirs
    )
    assert (page.returncode, page.stdout) == (0, "")
    assert (tmp_path / "run" / "report.html").stat().st_size > 500_000, "with the runtime of its plots"
    program = "from tfcompare import Run, load_run; run = load_run('run'); print(isinstance(run, Run), len(run.arms))"
    loaded = run_command(home / "bin" / "python", "-c", program, cwd=tmp_path, env=theirs)
    assert (loaded.stdout, loaded.stderr) == (f"True {len(answer['arms'])}\n", "")
