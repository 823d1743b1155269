"""The wheel, installed far from the checkout, compares real TensorFlows: images and workloads travel with it.

tests/install tries both packages with a stub, on every Python and by every installer.
"""

from pathlib import Path

import pytest

from tests.conftest import run_command
from tests.support import installed
from tests.support.end_to_end import compare

BUNDLED = ("images", "workloads")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel; what it requires is what these tests have."""
    wheel = installed.build(tmp_path_factory.mktemp("packages"))["wheel"]
    return installed.install_offline(wheel, tmp_path_factory.mktemp("home") / "empty")


def test_installed_wheel_compares_versions(programs: Path, tmp_path: Path) -> None:
    # Packages of the user's own, with the names of the folders that the wheel brings, where Python looks first.
    for name in BUNDLED:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('a package of the user was imported')\n")
    theirs = {"PYTHONPATH": str(tmp_path)}
    program = "import orchestrator; print(orchestrator.__file__)"
    found = run_command(programs / "python", "-c", program, cwd=tmp_path).stdout
    assert Path(found).is_relative_to(programs.parent)
    code, answer, stderr = compare(
        str(programs / "tfcompare"), "--versions", "1.14,2.0", "--engine", "venv", "--case",
        "power[style=function]", "--rounds", "2", "--quiet", "--output", tmp_path / "run", cwd=tmp_path, env=theirs,
    )  # fmt: skip
    assert code == 0, stderr
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    page = run_command(
        programs / "python", "-m", "tfcompare", "report", "run", "--format", "html", cwd=tmp_path, env=theirs
    )
    assert (page.returncode, page.stdout) == (0, "")
    assert 'class="drawing"' in (tmp_path / "run" / "report.html").read_text()
    program = "from tfcompare import Run, load_run; run = load_run('run'); print(isinstance(run, Run), len(run.arms))"
    loaded = run_command(programs / "python", "-c", program, cwd=tmp_path, env=theirs)
    assert (loaded.stdout, loaded.stderr) == (f"True {len(answer['arms'])}\n", "")
