"""A program of the user's that is measured as it is: its command, its folder, and the packages that it needs."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path

from orchestrator import files
from orchestrator.catalog import workloads as suites
from orchestrator.errors import UsageError
from orchestrator.model import Workload

# A command is the name of its case in tables, files and exports.
MOST_LETTERS = 1000
PYTHON = re.compile(r"python[\d.]*")
SHELLS = {"sh", "bash"}


def find_measurable(
    program: Sequence[str], requirements: Sequence[str], folder: Path | None, data: Mapping[str, Path] | None = None
) -> dict[str, Workload]:
    """Return what a run can measure: its program or, without one, workloads."""
    if not program:
        return suites.all_workloads(folder)
    name = shlex.join(program)
    if folder is None:
        # This happens if the copy in a run folder was removed.
        return {}
    workload = Workload(
        name=name,
        summary="",
        path=folder,
        params={},
        comparisons={},
        exclude=(),
        builtin=False,
        requirements=tuple(requirements),
        data=dict(data or {}),
    )
    return {name: workload}


def check_program(program: Sequence[str], folder: Path) -> None:
    """Raise UsageError for a command that could not run in any version."""
    if program[0].startswith("-"):
        raise UsageError(
            f"{program[0]} is after --, where the command of a program begins: put options of tfcompare before --"
        )
    text = shlex.join(program)
    if not text.isprintable() or len(text) > MOST_LETTERS:
        raise UsageError(
            f"a program's command has at most {MOST_LETTERS} letters, all in one line: put it into a file, such as "
            "run.sh, and name that after --"
        )
    if not folder.is_dir():
        raise UsageError(f"--workload-folder {folder}: no such folder")
    script = find_script(program)
    if script is None:
        return
    if Path(script).is_absolute() or ".." in Path(script).parts:
        raise UsageError(
            f"{script}: a version sees {folder.resolve()} and no other folder: name the file as it is seen from there, "
            "or its own folder with --workload-folder"
        )
    if not (folder / script).is_file():
        raise UsageError(f"there is no {script} in {folder.resolve()}; --workload-folder names another folder")
    if script == program[0] and not script.endswith(".py") and not os.access(folder / script, os.X_OK):
        raise UsageError(f"{script} in {folder.resolve()} cannot be executed: `chmod +x {script}` allows it")


def find_script(program: Sequence[str]) -> str | None:
    """Return the file of the project that the command runs; None for a module, for code, and for other commands."""
    if program[0].endswith(".py") or ("/" in program[0] and not program[0].startswith("/")):
        return program[0]
    ending = ".py" if PYTHON.fullmatch(program[0]) else ".sh" if program[0] in SHELLS else None
    first = next((word for word in program[1:] if not re.fullmatch(r"-[bBdEeiIOqsSuvx]+", word)), "")
    return first if ending and first.endswith(ending) else None


def find_data(places: Sequence[Path], folder: Path) -> dict[str, Path]:
    """Return files and folders of data by where a program sees them: `home/PLACE` below its home, else `folder/NAME`.

    Raises UsageError for a place that does not exist, and for two with the same name.
    """
    found: dict[str, Path] = {}
    for given in places:
        place = Path(os.path.abspath(os.path.expanduser(given)))
        if not place.exists():
            raise UsageError(f"--data {given}: there is no such file or folder")
        if below := _below_home(place):
            found[f"home/{below}"] = place
            continue
        name = f"folder/{place.name}"
        if not place.name or found.get(name, place) != place or (folder / place.name).exists():
            raise UsageError(
                f"--data {given}: its place is {place.name or '/'} in the program's folder, and there is one already"
            )
        found[name] = place
    for outer, inner in permutations(found.values(), 2):
        if inner.is_relative_to(outer):
            raise UsageError(f"--data {inner}: it is in {outer}, which is named as well")
    return {name: place.resolve() for name, place in found.items()}


def _below_home(place: Path) -> str:
    """Return the path relative to this user's home, or '' if it is not inside."""
    try:
        below = place.relative_to(Path.home())
    except (RuntimeError, ValueError):
        return ""
    return below.as_posix() if below.parts else ""


def read_requirements(path: Path) -> tuple[str, ...]:
    """Return the packages that a file names, one per line; raise UsageError for anything else in it."""
    try:
        lines = files.read_text(path).splitlines()
    except OSError as error:
        raise UsageError(f"--requirements {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--requirements {path}: not a text: {error}") from error
    named = [re.sub(r"(^|\s)#.*", "", line).strip() for line in lines]
    return suites.check_requirements(f"--requirements {path}", tuple(filter(None, named)))
