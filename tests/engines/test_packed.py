"""Environments travel in one file to a machine without a network, and a file that was changed installs nothing."""

import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog.version import Version
from orchestrator.engines import Outlook
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.errors import EnvironmentFailed, NothingSelected, UsageError
from orchestrator.images import packed
from orchestrator.options import EngineOptions
from tests.engines.mirror import (
    NUMBER,
    UNSET,
    bare_machine,
    leave_network,
    local_python,
    make_mirror,
    measure_without_network,
)
from tests.support.heard import Heard
from tests.support.packages import locked, own_pip, wheel

Members = dict[str, bytes]


@dataclass
class Machines:
    """A version of one small package, a machine that packs it, and a bare one that gets the file."""

    version: Version
    wheelhouse: Path
    file: Path
    mirror: dict[str, str]
    bare: dict[str, str]
    monkeypatch: pytest.MonkeyPatch

    def pack(self, **options: bool) -> list[str]:
        said: list[str] = []
        for name, value in self.mirror.items():
            self.monkeypatch.setenv(name, value)
        packed.pack([self.version], EngineOptions(wheelhouse=self.wheelhouse, **options), self.file, Heard(said))  # type: ignore[arg-type]
        return said

    def unpack(self) -> tuple[list[str], list[str], list[str]]:
        """Return what is ready and the problems on the bare machine, whose mirror is gone, and what was said there."""
        for name in UNSET:
            self.monkeypatch.delenv(name, raising=False)
        # uv knows the hash of this Python from the list, and its server is out of reach.
        listed = {name: value for name, value in self.mirror.items() if name != "UV_PYTHON_INSTALL_MIRROR"}
        closed = {"UV_PYTHON_INSTALL_MIRROR": "http://127.0.0.1:9/mirror"}
        for name, value in (self.bare | listed | closed).items():
            self.monkeypatch.setenv(name, value)
        interpreters.forget_interpreters()
        said: list[str] = []
        ready, problems = packed.unpack(self.file, EngineOptions(), Heard(said))
        return ready, problems, said

    def list_environments(self) -> list[Path]:
        return list((Path(self.bare["TFCOMPARE_CACHE"]) / "tfcompare" / "environments").glob("*/tfcompare.json"))

    def members(self) -> Members:
        with tarfile.open(self.file) as tar:
            return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]

    def write(self, members: Members) -> None:
        write(members, self.file)


def write(members: Members, file: Path) -> None:
    with tarfile.open(file, "w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return make_mirror(tmp_path_factory.mktemp("mirror"))


@pytest.fixture
def machines(
    mirror: dict[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    local_python()
    wheelhouse = tmp_path / "wheels of mine"
    wheelhouse.mkdir()
    (tmp_path / "pip.txt").write_text(locked(own_pip(wheelhouse, NUMBER)))
    (tmp_path / "1.14.0-cpu-py3.7.txt").write_text(locked(wheel(wheelhouse, "little_one")))
    wheel(wheelhouse, "unrelated")
    [version] = catalog.resolve_versions(["1.14.0"], fewest=1)
    flavour = version.on("cpu")[0]
    locks = {"lock": tmp_path / "1.14.0-cpu-py3.7.txt", "pip_lock": tmp_path / "pip.txt"}
    version = replace(version, flavours=(replace(flavour, **locks),))
    monkeypatch.setattr(catalog, "LOCKS", tmp_path)
    monkeypatch.setattr(catalog, "all_versions", lambda: (version,))
    bare = bare_machine(tmp_path_factory.mktemp("bare"))
    yield Machines(version, wheelhouse, tmp_path / "environments.tar", mirror, bare, monkeypatch)
    interpreters.forget_interpreters()


def test_a_version_and_its_python_are_installed_from_the_file_alone(machines: Machines):
    assert machines.pack() == ["1.14.0: downloading its packages", f"downloading Python {NUMBER} (about 30 MB)"]
    names = list(machines.members())
    assert names[0] == packed.CONTENTS
    assert [name.partition("-")[0] for name in names[1:3]] == ["packages/little_one", "packages/pip"]
    assert len(names) == 4, "the file has what the locks name, and a Python"
    ready, problems, said = machines.unpack()
    assert (ready, problems) == (["1.14.0"], [])
    assert said[0] == "1.14.0: to be installed; Python 3.7 is in the file"
    [marker] = machines.list_environments()
    asked = "import sys, little_one; print(sys.base_prefix)"
    python = marker.parent / "bin" / "python"
    prefix = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()
    assert Path(prefix).is_relative_to(machines.bare["TFCOMPARE_CACHE"])
    again = machines.unpack()
    assert again[:2] == (["1.14.0"], [])
    assert again[2][0].startswith("1.14.0: ready (Python 3.7.")


def test_without_its_python_the_file_says_what_the_other_machine_needs(machines: Machines):
    said = machines.pack(python_downloads=False)
    assert said[-1] == (
        f"Python {NUMBER} is not in the file (--no-python-downloads forbids downloading it); "
        "the other machine needs one"
    )
    ready, [problem], _ = machines.unpack()
    assert ready == []
    assert problem.startswith("1.14.0: Python 3.7 could not be downloaded (Connection refused)")


def test_packages_and_pythons_of_other_content_are_not_installed(machines: Machines):
    machines.pack()
    right = machines.members()
    [package] = [name for name in right if name.startswith("packages/little_one")]
    [python] = [name for name in right if name.startswith("pythons/")]
    changed = io.BytesIO(right[package])
    with zipfile.ZipFile(changed, "a") as archive:
        archive.writestr("evil.pth", "import os; os.abort()\n")
    machines.write({**right, package: changed.getvalue()})
    ready, [problem], _ = machines.unpack()
    assert ready == []
    assert "1.14.0: its environment could not be installed" in problem
    assert "hash" in problem
    assert machines.list_environments() == []
    # Another build of the same Python is as complete as the right one, but its sum is another.
    other = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(right[python])) as old, tarfile.open(fileobj=other, mode="w:gz") as new:
        for member in old:
            new.addfile(member, old.extractfile(member) if member.isreg() else None)
        new.addfile(tarfile.TarInfo("python/lib/more"))
    machines.write({**right, python: other.getvalue()})
    shutil.rmtree(Path(machines.bare["TFCOMPARE_CACHE"], "tfcompare", "pythons"))
    ready, [problem], _ = machines.unpack()
    assert ready == []
    assert "1.14.0: Python 3.7 could not be downloaded (Hash mismatch" in problem
    assert machines.list_environments() == []


def _link(members: Members, file: Path) -> None:
    with tarfile.open(file, "a") as tar:
        member = tarfile.TarInfo("packages/link_one-1.0-py3-none-any.whl")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)


def _twice(members: Members, file: Path) -> None:
    name = next(name for name in members if name.startswith("packages/little"))
    with tarfile.open(file, "a") as tar:
        member = tarfile.TarInfo(name)
        tar.addfile(member, io.BytesIO())


def _huge(members: Members, file: Path) -> None:
    with tarfile.open(file, "a") as tar:
        member = tarfile.TarInfo("packages/huge_one-1.0-py3-none-any.whl")
        member.size = 2**50
        tar.fileobj.write(member.tobuf())  # type: ignore[union-attr]


def _cut(members: Members, file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def _rewrite(change: Callable[[Members], Members]) -> Callable[[Members, Path], None]:
    def act(members: Members, file: Path) -> None:
        write(change(members), file)

    return act


def _contents(**values: object) -> Callable[[Members, Path], None]:
    def change(members: Members) -> Members:
        return {**members, packed.CONTENTS: json.dumps({**json.loads(members[packed.CONTENTS]), **values}).encode()}

    return _rewrite(change)


def _add(name: str) -> Callable[[Members, Path], None]:
    return _rewrite(lambda members: {**members, name: b""})


FORGED: dict[str, tuple[Callable[[Members, Path], None], str]] = {
    "a link": (_link, "'packages/link_one-1.0-py3-none-any.whl' is no package and no Python"),
    "a member twice": (_twice, "is in it twice"),
    "a size that no disk has": (_huge, "its contents need more than the"),
    "a file that is cut short": (_cut, "not a complete file of environments"),
    "no archive": (lambda members, file: file.write_text("hello") and None, "not a complete file of environments"),
    "nothing": (lambda members, file: file.write_text("") and None, "not a complete file of environments"),
    "another folder": (_add("bin/little_one-1.0-py3-none-any.whl"), "is no package"),
    "a way out": (_add("packages/../../evil-1.0-py3-none-any.whl"), "is no package"),
    "an absolute name": (_add("/tmp/evil-1.0-py3-none-any.whl"), "is no package"),
    "another kind of file": (_add("packages/evil.pth"), "is no package"),
    "no contents": (
        _rewrite(lambda members: {name: text for name, text in members.items() if name != packed.CONTENTS}),
        "it does not begin with environments.json",
    ),
    "contents of another form": (_contents(versions=["1.14.0"]), "not a complete file of environments"),
    "contents that are too deep": (
        _rewrite(lambda members: {**members, packed.CONTENTS: b"[" * 100_000}), "not a complete file of environments",
    ),
    "no package": (
        _rewrite(lambda members: {packed.CONTENTS: members[packed.CONTENTS]}), "there is no package in it",
    ),
    "a name that moves the cursor": (
        _contents(versions={"\x1b[31m\n": [NUMBER, "0"]}), "a version in it has a name that no version has",
    ),
    "no version": (_contents(versions={}), "it names no device or no versions"),
    "another device": (_contents(device="tpu"), "it names no device or no versions"),
    "another architecture": (_contents(architecture="riscv64"), "it is for machines with riscv64, and this one has"),
}  # fmt: skip


@pytest.mark.parametrize("forge", FORGED)
def test_a_file_that_is_not_as_pack_writes_it_installs_nothing(machines: Machines, forge: str):
    machines.pack(python_downloads=False)
    act, reason = FORGED[forge]
    act(machines.members(), machines.file)
    with pytest.raises(UsageError) as refused:
        machines.unpack()
    assert reason in str(refused.value)
    assert machines.list_environments() == []


def test_a_version_with_another_lock_or_without_one_is_left_out(machines: Machines):
    machines.pack(python_downloads=False)
    right = machines.members()
    about = json.loads(right[packed.CONTENTS])
    about["versions"]["9.9.9"] = about["versions"]["1.14.0"]
    about["versions"]["1.14.0"] = [NUMBER, "0" * 64]
    machines.write({**right, packed.CONTENTS: json.dumps(about).encode()})
    ready, problems, _ = machines.unpack()
    assert ready == []
    assert problems == [
        f"{name}: not installed: this tfcompare has no such lock; pack it with the same tfcompare"
        for name in ("1.14.0", "9.9.9")
    ]


def test_what_only_this_machine_has_locked_is_not_packed(machines: Machines, tmp_path: Path):
    machines.monkeypatch.setattr(catalog, "LOCKS", tmp_path / "elsewhere")
    with pytest.raises(NothingSelected, match=r"1\.14\.0: only a release that every tfcompare knows can be packed"):
        machines.pack()
    assert not machines.file.exists()


def test_a_package_that_cannot_be_downloaded_leaves_no_file(machines: Machines):
    for path in machines.wheelhouse.glob("little_one*"):
        path.unlink()
    with pytest.raises(EnvironmentFailed, match=r"1\.14\.0: its environment could not be installed"):
        machines.pack()
    assert not machines.file.exists()


def test_an_environment_is_found_whichever_python_of_its_number_stands_first(machines: Machines):
    machines.pack()
    machines.unpack()
    [flavour] = machines.version.flavours
    python = interpreters.find_interpreter(NUMBER)
    assert python is not None
    engine = VenvEngine(EngineOptions())
    ready = Outlook("ready", f"ready (Python {python.version})")
    assert engine.outlook(machines.version) == ready
    # Another Python 3.7 is installed, and stands before the one that the environment was made with.
    other = replace(python, path=Path("/elsewhere/bin/python3.7"), version="3.7.99", prefix="/elsewhere")
    with machines.monkeypatch.context() as patch:
        patch.setattr(interpreters, "find_interpreter", lambda number: other)
        assert engine.outlook(machines.version) == ready
        # With another lock, it has no environment.
        flavour.lock.write_text(f"# Changed.\n{flavour.lock.read_text()}")
        assert engine.outlook(machines.version) == Outlook(
            "to build", "to be installed (Python 3.7.99, /elsewhere/bin/python3.7)"
        )


@pytest.mark.tensorflow
def test_in_a_namespace_without_interfaces_two_releases_are_installed_and_measured(tfcompare: str, tmp_path: Path):
    local_python()
    apart = leave_network()
    file = tmp_path / "environments.tar"
    subprocess.run(
        [tfcompare, "environments", "pack", "1.15", "2.0", "--no-python-downloads", "-o", file], check=True, timeout=600
    )
    machine = {**os.environ, "TFCOMPARE_CACHE": str(tmp_path / "cache"), "PIP_CACHE_DIR": str(tmp_path / "pip")}
    subprocess.run([*apart, tfcompare, "environments", "unpack", file], env=machine, check=True, timeout=600)
    flags = ("--versions", "1.15,2.0", "--suite", "smoke")
    assert measure_without_network(tfcompare, tmp_path / "run", machine, *flags) == {"measured"}
