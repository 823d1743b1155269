"""Find Python interpreters: on PATH, under pyenv, managed by uv, and installed by tfcompare."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orchestrator.catalog import user_data

# Debian without python3-venv has `venv`, which does nothing useful there because ensurepip is missing.
PROBE = (
    "import glob, os, sys, venv, ensurepip; print('%d.%d.%d' % sys.version_info[:3]); "
    "print(sys.base_prefix); print(' '.join(sys.version.split())); "
    "print(max(glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), '_bundled', 'pip-*.whl')), default=''))"
)


@dataclass(frozen=True)
class Interpreter:
    path: Path
    version: str
    prefix: str
    # This is the full version, with the date and the compiler of the build.
    build: str = ""
    # This is the wheel of the pip that comes with it; Debian keeps that elsewhere.
    pip: Path | None = None


@dataclass(frozen=True)
class Unusable:
    path: Path
    reason: str


@cache
def find_interpreter(number: str) -> Interpreter | None:
    """Return a working interpreter of Python `number` (like 3.7), or None."""
    return next((interpreter for interpreter in _probe(number) if isinstance(interpreter, Interpreter)), None)


def missing(numbers: tuple[str, ...], ban: str = "") -> str:
    """Explain why none of these Pythons can be used, and how to get one; `ban` is what forbids a download."""
    forbidden = f"; {ban} forbids downloading it" if ban else ""
    allow = ", allow downloads" if ban else ""
    return (
        f"it needs Python {' or '.join(numbers)}, but none was found on PATH or among those of pyenv, uv and tfcompare"
        f"{describe_broken(numbers)}{forbidden}. "
        f"Get one with `pyenv install {numbers[0]}`{allow}, or use --engine docker"
    )


def describe_broken(numbers: tuple[str, ...]) -> str:
    """Return which of these Pythons exist but do not work, and why, or ''."""
    broken = [python for number in numbers for python in _probe(number) if isinstance(python, Unusable)]
    return "".join(f"; {python.path} cannot be used: {python.reason}" for python in broken[:2])


def forget_interpreters() -> None:
    """Forget what was found, because a Python was installed."""
    find_interpreter.cache_clear()
    probe.cache_clear()


def _probe(number: str) -> Iterator[Interpreter | Unusable]:
    seen: set[Path] = set()
    for path in _candidates(number):
        if path in seen:
            continue
        seen.add(path)
        python = probe(path)
        if isinstance(python, Unusable) or python.version.startswith(number + "."):
            yield python


def _candidates(number: str) -> Iterator[Path]:
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    names = (f"python{number}", "python3", "python")
    pyenv = Path(os.environ.get("PYENV_ROOT") or _home() / ".pyenv")
    data = Path(os.environ.get("XDG_DATA_HOME") or _home() / ".local" / "share")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    yield from (folder / name for name in names[:1] for folder in folders if (folder / name).is_file())
    yield from _interpreters_of_tools(pyenv / "versions", f"{number}.*", number)
    yield from _interpreters_of_tools(uv, f"cpython-{number}.*", number)
    yield from _interpreters_of_tools(own_pythons(), f"cpython-{number}.*", number)
    yield from (folder / name for name in names[1:] for folder in folders if (folder / name).is_file())


def _interpreters_of_tools(root: Path, pattern: str, number: str) -> Iterator[Path]:
    """Yield the interpreters of Python `number` in a folder, newest patch release first."""
    installs = [path for path in root.glob(pattern) if (path / "bin" / f"python{number}").exists()]

    def patch(path: Path) -> tuple[int, ...]:
        numeral = path.name.removeprefix("cpython-").split("-")[0]
        return tuple(int(part) for part in numeral.split(".") if part.isdigit())

    yield from (path / "bin" / f"python{number}" for path in sorted(installs, key=patch, reverse=True))


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        # A user without a home has nothing there, and the working directory must not be searched instead.
        return Path(os.devnull)


def own_pythons() -> Path:
    """Return the folder of the Pythons that tfcompare has downloaded."""
    return user_data.cache() / "pythons"


@cache
def probe(path: Path) -> Interpreter | Unusable:
    """Examine an interpreter by running it.

    pyenv's shims are on PATH even for versions that are not active, and then only print an error.
    """
    try:
        done = subprocess.run([path, "-I", "-c", PROBE], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unusable(path, str(error))
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it fails without a word"]
        # Python prints its error last, and pyenv's shims explain the problem first.
        return Unusable(path, next((line for line in reversed(lines) if "Error" in line), lines[0]).strip())
    version, prefix, build, pip = done.stdout.split("\n")[:4]
    return Interpreter(path, version, prefix, build, Path(pip) if pip else None)
