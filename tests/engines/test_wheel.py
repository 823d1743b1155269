"""The wheel, installed into an empty environment far from the checkout, does the whole job: images and workloads
travel with it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_command
from tests.support.end_to_end import compare


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


def test_wheel_carries_images_and_workloads_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("images/versions.toml", "images/Dockerfile", "workloads/suites.toml", "workloads/worker.py"):
        assert needed in names
    tracked = run_command("git", "-C", ROOT, "ls-files", "images", "workloads", "orchestrator").stdout.split()
    assert sorted(name for name in names if ".dist-info/" not in name) == sorted(tracked)


def test_installed_wheel_compares_versions(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements" / "run.txt"], check=True, capture_output=True)
    subprocess.run([*pip, "--no-deps", wheel], check=True, capture_output=True)
    code, answer, stderr = compare(
        str(home / "bin" / "tfcompare"), "--versions", "1.14,2.0", "--engine", "venv", "--suite", "smoke",
        "--rounds", "2", "--quiet", "--out", tmp_path / "run", cwd=tmp_path,
    )  # fmt: skip
    assert code == 0, stderr
    assert {arm["outcome"] for arm in answer["arms"]} == {"measured"}
    page = run_command(home / "bin" / "tfcompare", "report", tmp_path / "run", "--format", "html", cwd=tmp_path)
    assert (page.returncode, page.stdout) == (0, "")
    assert (tmp_path / "run" / "report.html").stat().st_size > 500_000, "with the runtime of its plots"
