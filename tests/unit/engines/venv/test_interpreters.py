"""A Python is one that runs: what only stands on PATH is passed over, and what is missing says how to get it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.interpreters import forget_interpreters

NUMBER = f"{sys.version_info.major}.{sys.version_info.minor}"
FULL = f"{NUMBER}.{sys.version_info.micro}"
# The real one: a copy or a link inside a virtual environment would lead back to this environment.
PYTHON = Path(sys.executable).resolve()


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without any Python, and nothing remembered of the real one."""
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    forget_interpreters()
    yield
    forget_interpreters()


def link(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(PYTHON)
    return folder / name


def shim(folder: Path, name: str, complaint: str) -> Path:
    """What pyenv puts on PATH for versions that are not active."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{complaint}' >&2\nexit 127\n")
    path.chmod(0o755)
    return path


def on_path(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    monkeypatch.setenv("PATH", ":".join(map(str, folders)))


def found(number: str = NUMBER) -> interpreters.Interpreter:
    interpreter = interpreters.find_interpreter(number)
    assert interpreter is not None
    return interpreter


def test_it_is_found_on_path_and_says_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = link(tmp_path / "bin", f"python{NUMBER}")
    on_path(monkeypatch, path.parent)
    assert (found().path, found().version) == (path, FULL)


def test_a_shim_that_fails_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broken = shim(tmp_path / "shims", f"python{NUMBER}", "pyenv: command not found")
    works = link(tmp_path / "bin", f"python{NUMBER}")
    on_path(monkeypatch, broken.parent, works.parent)
    assert found().path == works


def test_a_plain_python3_counts_if_it_is_the_one_that_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = link(tmp_path / "bin", "python3")
    on_path(monkeypatch, path.parent)
    assert found().path == path
    assert interpreters.find_interpreter("2.7") is None


@pytest.mark.parametrize("has_home", [True, False])
def test_an_empty_variable_does_not_search_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_home: bool
):
    """A Python in a repository that somebody has just cloned must not be run."""
    for root in ("versions", ".pyenv/versions", "~/.pyenv/versions"):
        link(tmp_path / root / FULL / "bin", f"python{NUMBER}")
    link(tmp_path / "uv" / "python" / f"cpython-{FULL}-linux" / "bin", f"python{NUMBER}")
    monkeypatch.chdir(tmp_path)
    for variable in ("PYENV_ROOT", "UV_PYTHON_INSTALL_DIR", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if not has_home:
        monkeypatch.setattr(Path, "home", no_home)
    assert interpreters.find_interpreter(NUMBER) is None


def no_home() -> Path:
    raise RuntimeError("Could not determine home folder.")


def test_a_name_that_promises_another_version_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    on_path(monkeypatch, link(tmp_path / "bin", "python2.7").parent)
    assert interpreters.find_interpreter("2.7") is None


def test_pyenvs_and_uvs_are_found_without_path(tmp_path: Path):
    path = link(tmp_path / "uv" / f"cpython-{FULL}-linux-x86_64-gnu" / "bin", f"python{NUMBER}")
    assert found().path == path
    forget_interpreters()
    path = link(tmp_path / "pyenv" / "versions" / FULL / "bin", f"python{NUMBER}")
    assert found().path == path


def test_those_that_tfcompare_downloaded_are_found_after_the_users_own(tmp_path: Path):
    folder = tmp_path / "cache" / "tfcompare" / "pythons"
    path = link(folder / f"cpython-{FULL}-linux-x86_64-gnu" / "bin", f"python{NUMBER}")
    assert found().path == path
    forget_interpreters()
    path = link(tmp_path / "uv" / f"cpython-{FULL}-linux-x86_64-gnu" / "bin", f"python{NUMBER}")
    assert found().path == path


def test_the_newest_patch_release_is_taken_first(tmp_path: Path):
    """As numbers: 10 is newer than 9."""
    for patch in (2, 10, 9):
        link(tmp_path / "pyenv" / "versions" / f"{NUMBER}.{patch}" / "bin", f"python{NUMBER}")
    assert found().path.parts[-3] == f"{NUMBER}.10"


def test_path_goes_before_pyenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    link(tmp_path / "pyenv" / "versions" / FULL / "bin", f"python{NUMBER}")
    path = link(tmp_path / "bin", f"python{NUMBER}")
    on_path(monkeypatch, path.parent)
    assert found().path == path


def test_what_is_missing_says_how_to_get_it():
    assert interpreters.find_interpreter("3.6") is None
    told = interpreters.missing(("3.7", "3.6"))
    assert told.startswith(
        "it needs Python 3.7 or 3.6, but none was found on PATH or among those of pyenv, uv and tfcompare. "
    )
    for remedy in ("pyenv install 3.7", "--engine docker"):
        assert remedy in told
    told = interpreters.missing(("3.7",), "--no-python-downloads")
    assert "; --no-python-downloads forbids downloading it. " in told
    assert "allow downloads" in told


def test_what_stands_there_and_cannot_be_used_is_named_with_its_own_words(tmp_path: Path, monkeypatch):
    broken = shim(tmp_path / "shims", "python3.6", "pyenv: python3.6: command not found")
    on_path(monkeypatch, broken.parent)
    assert interpreters.find_interpreter("3.6") is None
    assert f"{broken} cannot be used: pyenv: python3.6: command not found" in interpreters.missing(("3.6",))


def test_a_file_that_is_no_program_is_passed_over_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3.6").write_text("not a program")
    on_path(monkeypatch, folder)
    assert interpreters.find_interpreter("3.6") is None
    assert "cannot be used" in interpreters.missing(("3.6",))
