"""Virtual environments for real: cached by content, built once, never used half-built. One tiny package stands in for
TensorFlow where only the building is in question."""

import multiprocessing
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog.version import Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.engine import MARKER, VenvEngine
from orchestrator.errors import EnvironmentFailed
from orchestrator.options import EngineOptions

SIX = "six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274\n"


def tiny(folder: Path, lock: str = SIX) -> Version:
    """A version that is one small package, on Python 3.11."""
    (folder / "lock.txt").write_text(lock)
    [version] = catalog.resolve_versions(["2.13.0"], fewest=1)
    flavours = [flavour for flavour in version.on("cpu") if flavour.python.number == "3.11"]
    return replace(version, flavours=tuple(replace(flavour, lock=folder / "lock.txt") for flavour in flavours))


def prepare(version: Version, log: Path) -> str:
    return str(VenvEngine(EngineOptions()).prepare(version, BuildLog(log)).path)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_environment_is_installed_once_and_again_for_another_lock_or_if_it_is_not_whole(tmp_path: Path) -> None:
    version = tiny(tmp_path)
    first = prepare(version, tmp_path / "first.log")
    assert "pip install" in (tmp_path / "first.log").read_text()
    assert prepare(version, tmp_path / "second.log") == first
    assert not (tmp_path / "second.log").exists()
    (Path(first) / MARKER).unlink()
    shutil.rmtree(Path(first) / "lib")
    assert prepare(version, tmp_path / "log") == first
    assert (Path(first) / MARKER).exists()
    assert list(Path(first).glob("lib/python*/site-packages/six.py"))
    assert prepare(tiny(tmp_path, SIX + "# changed\n"), tmp_path / "log") != first


def test_two_runs_at_once_build_it_once(tmp_path: Path) -> None:
    version = tiny(tmp_path)
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        paths = pool.starmap(prepare, [(version, log) for log in logs])
    assert paths[0] == paths[1]
    installs = [log for log in logs if log.exists() and "-m pip install" in log.read_text()]
    assert len(installs) == 1


def test_hash_that_does_not_match_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a Python like Debian's, which keeps its pip where we do not look."""
    found = interpreters.find_interpreter("3.11")
    assert found
    assert found.pip
    monkeypatch.setattr(interpreters, "find_interpreter", lambda number: replace(found, pip=None))
    wrong = SIX.replace("4721f391", "00000000")
    with pytest.raises(EnvironmentFailed, match="a different file from the one in the lock"):
        prepare(tiny(tmp_path, wrong), tmp_path / "log")
    assert not list((tmp_path / "cache").glob(f"**/{MARKER}"))
    assert list((tmp_path / "cache").glob("**/site-packages/pip")), "it was there to refuse the file"


def test_missing_python_that_may_not_be_downloaded_says_which_and_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    interpreters.forget_interpreters()
    try:
        with pytest.raises(EnvironmentFailed, match=r"2\.13\.0: it needs Python 3\.11.*pyenv install 3\.11") as failed:
            prepare(tiny(tmp_path), tmp_path / "log")
        assert failed.value.lacks_python
        engine = VenvEngine(EngineOptions())
        outlook = engine.outlook(tiny(tmp_path))
        assert outlook.state == "impossible"
        assert outlook.text.startswith("it needs Python 3.11")
    finally:
        interpreters.forget_interpreters()
