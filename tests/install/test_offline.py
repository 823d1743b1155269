"""Both packages, installed without a network far from the checkout, do what a new user does first."""

import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT, run_command
from tests.support import installed
from tests.support.installed import KINDS, Stubs, number_of
from tools import release

BUNDLED = ("images", "workloads")

pytestmark = pytest.mark.slow


def test_the_wheel_holds_two_packages_and_every_tracked_file(packages: dict[str, Path]):
    wheel = packages["wheel"]
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "orchestrator", "tfcompare", f"tfcompare-{number_of(wheel)}.dist-info",
    }  # fmt: skip
    tracked = run_command("git", "-C", ROOT, "ls-files", "orchestrator", "tfcompare", *BUNDLED).stdout.split()
    expected = [f"orchestrator/_bundled/{name}" if name.startswith(BUNDLED) else name for name in tracked]
    assert sorted(name for name in names if ".dist-info/" not in name) == sorted(expected)
    assert {"orchestrator/py.typed", "tfcompare/py.typed"} <= set(names)


def test_the_packages_of_this_checkout_are_fit_for_a_release(packages: dict[str, Path], tmp_path: Path, capsys):
    for package in packages.values():
        (tmp_path / package.name).symlink_to(package)
    assert release.main([str(tmp_path)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_it_runs_and_reports_in_an_empty_folder(
    packages: dict[str, Path], kind: str, stubs: Stubs, tmp_path: Path
) -> None:
    programs = installed.install_offline(packages[kind], tmp_path / "home")
    (tmp_path / "empty").mkdir()
    program = "import orchestrator; print(orchestrator.__file__)"
    assert Path(installed.run(programs / "python", "-c", program, cwd=tmp_path / "empty")).is_relative_to(tmp_path)
    installed.use(programs / "tfcompare", number_of(packages[kind]), tmp_path / "empty", stubs)
