"""Every call of uv forbids it to build, and source packages of the table are taken as the files that it knows."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import lockfile, locking, uv
from orchestrator.catalog.locking import Lock
from orchestrator.catalog.uv import Unresolved
from orchestrator.engines.layers import LocalUv, make_layer
from orchestrator.options import EngineOptions
from tests.support.builders import environment_facts
from tests.support.packages import source, wheel

ROOT = Path(__file__).parents[3]
# Modules that name uv: what calls it for packages, here or in a container, and what knows the Pythons that it installs.
STARTERS = {"catalog/uv.py", "catalog/locking.py", "engines/layers.py", "engines/docker/uv_container.py"}
STARTERS |= {"engines/venv/pythons.py", "engines/venv/interpreters.py"}


def lock(tmp_path: Path, *requirements: str) -> Lock:
    return Lock(tmp_path / "lock.txt", "a test", "3.7", requirements)


@pytest.fixture
def wheelhouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "empty").as_uri())
    return folder


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[str]]]:
    """Records the arguments of every call, and makes it."""
    real, program, record = uv.find_uv(), tmp_path / "uv", tmp_path / "record"
    program.write_text(f'#!/bin/sh\nprintf "%s\\t" "$@" >>{record}\necho >>{record}\nexec {real} "$@"\n')
    program.chmod(0o755)
    for module in ("catalog.locking", "engines.layers"):
        monkeypatch.setattr(f"orchestrator.{module}.find_uv", lambda: str(program))
    return lambda: [line.split("\t") for line in record.read_text().splitlines()]


def test_every_call_forbids_building_and_names_the_python_that_it_asks(
    calls: Callable[[], list[list[str]]], wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    wheel(wheelhouse, "plots")
    source(wheelhouse, "gast", "0.2.2", tmp_path / "marker")
    locking.resolve_lock(lock(tmp_path, "plots"))
    with pytest.raises(Unresolved):
        locking.resolve_lock(lock(tmp_path, "gast"))
    facts = environment_facts(version="2.0.0", kind="venv", identity="x", lock="y", python="3.7.16")
    options = EngineOptions(wheelhouse=wheelhouse)
    assert make_layer(("plots",), facts, options, LocalUv(options)).folder
    made = calls()
    assert [words[:2] for words in made] == [["pip", "compile"]] * 4 + [["pip", "install"]]
    for words in made:
        assert words[words.index("--only-binary") + 1] == ":all:"
        assert words[words.index("--python") + 1]
        assert {"--no-config", "--config-file"} & {*words}
    assert not (tmp_path / "marker").exists()


def test_no_other_module_starts_uv():
    host = ROOT / "orchestrator"
    named = re.compile(r"\bfind_uv\b|[\"']uv[\"']")
    found = {path.relative_to(host).as_posix() for path in host.rglob("*.py") if named.search(path.read_text())}
    assert found == STARTERS
    words = re.compile(r"[\"']pip[\"'], [\"'](compile|install)[\"']")
    packages = {path.relative_to(host).as_posix() for path in host.rglob("*.py") if words.search(path.read_text())}
    assert packages == {"catalog/uv.py", "engines/venv/engine.py"}


def test_a_source_package_is_refused_by_its_name_and_never_run(wheelhouse: Path, tmp_path: Path):
    source(wheelhouse, "evilpkg", "1.0", tmp_path / "marker")
    with pytest.raises(Unresolved, match="evilpkg"):
        locking.resolve_lock(lock(tmp_path, "evilpkg"))
    assert not (tmp_path / "marker").exists()


def test_a_source_package_of_the_table_whose_file_is_another_one_is_refused_and_never_run(
    wheelhouse: Path, tmp_path: Path
):
    source(wheelhouse, "gast", "0.2.2", tmp_path / "marker")
    with pytest.raises(Unresolved, match=r"gast 0\.2\.2 comes as source, and the index has another file"):
        locking.resolve_lock(lock(tmp_path, "gast"))
    assert not (tmp_path / "marker").exists()


def test_another_number_of_a_source_package_of_the_table_is_refused(wheelhouse: Path, tmp_path: Path):
    source(wheelhouse, "gast", "0.2.1", tmp_path / "marker")
    with pytest.raises(Unresolved, match="gast"):
        locking.resolve_lock(lock(tmp_path, "gast"))
    assert not (tmp_path / "marker").exists()


def test_pip_may_build_the_source_packages_of_the_table_and_no_other():
    known = catalog.builtin_catalogue().source
    built = set()
    for version in catalog.all_versions():
        for flavour in version.flavours:
            pins = {pin.name: pin for pin in lockfile.read_lock(flavour.lock)}
            wheels = catalog.forbid_builds(flavour.lock).partition("=")[2].split(",")
            for name in pins.keys() - {*wheels}:
                assert pins[name].number == known[name].version
                assert known[name].sha256 in pins[name].hashes
                built.add(name)
            assert all(f"{pins[name].number}" != known[name].version for name in known.keys() & {*wheels})
    assert built == {*known}


def test_a_pin_with_the_name_of_a_source_package_and_another_file_is_only_taken_as_a_wheel(tmp_path: Path):
    path = tmp_path / "lock.txt"
    path.write_text(f"gast==0.2.2 --hash=sha256:{'0' * 64}\nsix==1.16.0 --hash=sha256:{'1' * 64}\n")
    assert catalog.forbid_builds(path) == "--only-binary=gast,six"


def test_the_lock_of_a_patch_names_the_known_file_of_a_source_package(tmp_path: Path):
    known = catalog.builtin_catalogue().source["gast"]
    others = "".join(f" \\\n    --hash=sha256:{digit * 64}" for digit in "12")
    text = f"six==1.16.0 \\\n    --hash=sha256:{'3' * 64}\ngast==0.2.2{others} \\\n    --hash=sha256:{known.sha256}\n"
    kept = locking._keep_known_file(text, "gast", known)
    assert kept == f"six==1.16.0 \\\n    --hash=sha256:{'3' * 64}\ngast==0.2.2 \\\n    --hash=sha256:{known.sha256}\n"


def test_uv_runs_with_no_secret_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o755)
    monkeypatch.setenv("MY_SECRET", "hunter9")
    monkeypatch.setenv("UV_INDEX_URL", "http://index.invalid/simple")
    printed = uv.run_uv(str(program), (), tmp_path, EngineOptions(), 10)
    assert "hunter9" not in printed
    assert "UV_INDEX_URL=http://index.invalid/simple" in printed.splitlines()
    assert f"PWD={os.path.realpath(tmp_path)}" in printed.splitlines()


@pytest.mark.parametrize(
    ("code", "stderr", "reason"),
    [
        (1, "warning: x is missing an upload date\nerror: None found", "None found\nThe index does not state when"),
        (1, "warning: something\nerror: No solution found", "error: No solution found"),
        (0, "warning: The package `keras==3.8.0` does not have an extra named `x`", "does not have an extra named `x`"),
    ],
)  # fmt: skip
def test_why_nothing_was_resolved_is_the_reason_without_what_uv_warns_of(code: int, stderr: str, reason: str):
    with pytest.raises(uv.Unresolved) as refused:
        uv.read_output(code, "six==1.0", stderr)
    assert reason in str(refused.value)
    assert "warning" not in str(refused.value)


def test_other_warnings_change_nothing():
    assert uv.read_output(0, "six==1.0", "warning: something\nResolved 1 package") == "six==1.0"


@pytest.mark.parametrize("pin", ["six==1.17.0", "keras[extra]==3.8.0", "six==1.17.0 ; python_version < '4'"])
def test_a_pin_without_a_hash_is_no_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pin: str):
    good = f"numpy==2.1.3 \\\n    --hash=sha256:{64 * '0'}\n"
    monkeypatch.setattr(locking, "_compile", lambda *about: good)
    lock = locking.Lock(tmp_path / "lock.txt", "", "3.11", ("numpy",))
    assert good in locking.resolve_lock(lock)
    monkeypatch.setattr(locking, "_compile", lambda *about: f"{good}{pin}\n")
    with pytest.raises(uv.Unresolved, match=f"states no hash of the files of {pin[:3]}"):
        locking.resolve_lock(lock)
