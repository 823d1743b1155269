"""What pyproject.toml, the locks and the pages say about installing agrees."""

import re
import subprocess
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from orchestrator.catalog import lockfile
from orchestrator.catalog.lockfile import normalize
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
REQUIRED = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
EXTRAS = PROJECT["project"]["optional-dependencies"]
TRACKED = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def locked(name: str) -> dict[str, Version]:
    return {pin: Version(number) for pin, number in lockfile.list_packages(ROOT / "requirements" / name).items()}


def installed_with(names: set[str]) -> set[str]:
    """What pip installs for these, by the metadata of what is installed here, markers of systems aside."""
    known, left = set(), {normalize(name) for name in names}
    while left:
        name = left.pop()
        known.add(name)
        try:
            wanted = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            continue
        requirements = [Requirement(text) for text in wanted]
        left |= {normalize(one.name) for one in requirements if "extra" not in str(one.marker)} - known
    return known


def test_make_run_installs_what_a_user_of_the_wheel_has():
    assert {*locked("run.txt")} <= installed_with({one.name for one in REQUIRED})
    assert {normalize(one.name) for one in REQUIRED} <= {*locked("run.txt")}


def test_what_builds_it_is_locked_and_apart():
    needed = {normalize(Requirement(text).name) for text in PROJECT["build-system"]["requires"]}
    assert needed == {normalize(name) for name in PROJECT["dependency-groups"]["build"]}
    assert needed <= {*locked("build.txt")}
    assert not needed & {*locked("run.txt")}


def test_the_oldest_dependencies_are_the_lower_bounds():
    oldest = locked("lowest.txt")
    for requirement in REQUIRED + [Requirement(text) for extra in EXTRAS.values() for text in extra]:
        [bound] = requirement.specifier
        assert bound.operator == ">=", f"{requirement} has no lower bound"
        if requirement.name != "ray":
            assert oldest[canonicalize_name(requirement.name)] == Version(bound.version), requirement


def test_the_locks_agree_on_versions():
    tested = (ROOT / "requirements" / "dev.txt").read_text()
    for name in ("run.txt", "build.txt", "nightly.txt", "gpu.txt"):
        pins = re.findall(r"^[\w.-]+==[^ ;\\]+", (ROOT / "requirements" / name).read_text(), re.MULTILINE)
        assert pins
        assert [pin for pin in pins if pin not in tested] == []


def test_the_address_of_the_repository_is_in_one_place():
    address = PROJECT["project"]["urls"]["Repository"]
    naming = []
    for name in TRACKED:
        if name not in ("pyproject.toml", "tests/unit/test_packaging.py", "tests/unit/tools/test_release.py"):
            with (ROOT / name).open(errors="ignore") as file:
                naming += [name] if address.removeprefix("https://") in file.read() else []
    assert naming == []


def test_every_extra_is_explained_and_every_hint_names_one():
    page = (ROOT / "README.md").read_text()
    [sentence] = re.findall(r"Extras, as in[^.]*\.", page)
    assert re.findall(r"`(\w+)`", sentence) == sorted(EXTRAS)
    hinted = set()
    for name in TRACKED:
        if name.endswith((".py", ".md")) and not name.startswith("tests/"):
            for found in re.findall(r"tfcompare\[([\w,]+)\]", (ROOT / name).read_text()):
                hinted |= {*found.split(",")}
    assert hinted == {*EXTRAS} - {"pandas"}


def test_the_commands_of_the_readme_are_those_of_an_installed_tfcompare():
    page = (ROOT / "README.md").read_text()
    assert [line for line in page.splitlines() if ".venv/bin/tfcompare" in line] == [
        "In a clone, the command is `.venv/bin/tfcompare`, and make sets it up with the exact versions that are tested:"
    ]
    assert len(re.findall(r"^    tfcompare \w", page, re.MULTILINE)) >= 4


def test_the_first_version_is_told_in_sixty_lines():
    section = (ROOT / "CHANGELOG.md").read_text().partition("\n## 0.1.0")[2].partition("\n## ")[0]
    assert 10 < len(section.splitlines()) <= 60


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_every_supported_python_is_tested(python: str):
    assert f"Programming Language :: Python :: {python}" in PROJECT["project"]["classifiers"]
    assert f'"{python}"' in (ROOT / "tests" / "install" / "test_installers.py").read_text()


def test_no_lock_of_another_tool_is_tracked():
    assert [name for name in TRACKED if name.endswith(("uv.lock", "package-lock.json", "poetry.lock"))] == []
