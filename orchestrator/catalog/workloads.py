"""Workloads and suites as written in their files.

No workload is imported here: its constants are read as literals.
"""

import ast
import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from orchestrator import contract, files
from orchestrator.bundled import WORKLOADS
from orchestrator.catalog import did_you_mean, pinned
from orchestrator.catalog.architectures import read_number_pair
from orchestrator.catalog.imports import imports_of
from orchestrator.catalog.version import Version
from orchestrator.errors import UsageError
from orchestrator.model import Workload

# Labels of cases are also selections of cases.
NAMEABLE = re.compile(r"(?!\s)[^,|=\[\]\n]*(?<!\s)")
BUILTIN = WORKLOADS / "suite"
DEFAULT = "quick"
# Files with such a name can be named in a selection of cases.
FILE_NAME = re.compile(r"[\w.-]+")
# Parameters have values of these types. `build` gets all of them as strings.
PLAIN = (str, int, float)
# This prefix marks files next to the workloads among a run's sources. It is also their folder in the run folder.
NEIGHBOURS = "workloads/"
# A run keeps the user's code at a commit in such a folder.
REVISION = re.compile(r"@[0-9a-f]{12}")
# Editors and Python leave such files next to others.
LEFTOVER = re.compile(r".*~|#.*#|.*\.pyc")


def all_workloads(own: Path | None = None) -> dict[str, Workload]:
    """Return the built-in workloads and those of a user's own folder, by name."""
    workloads = {path.stem: read_workload(path, builtin=True) for path in files_in(BUILTIN)}
    if own is None:
        return workloads
    if own.is_file():
        raise UsageError(f"--workload-folder {own}: it is a file: name its folder, or tfcompare run ... {own}")
    if not own.is_dir():
        raise UsageError(f"--workload-folder {own}: no such folder")
    mine = files_in(own)
    if not mine:
        raise UsageError(f"--workload-folder {own}: the folder holds no workload file (*.py)")
    helpers = find_helpers(own)
    for path in (path for path in mine if path not in helpers):
        if path.stem in workloads:
            raise UsageError(f"{path}: {path.stem!r} is a built-in workload's name; rename the file")
        workloads[path.stem] = read_workload(path, builtin=False)
    if len(helpers) == len(mine):
        raise UsageError(
            f"--workload-folder {own}: none of its files is a workload, which has a function build(tf, params) that "
            "returns its step; `tfcompare init` writes one"
        )
    return workloads


def find_helpers(own: Path) -> list[Path]:
    """Return the files of a user's folder that define no workload, and may be imported by one."""
    return [path for path in files_in(own) if not _find_builders(_parse(path, "remove it, or name another folder"))]


def files_of(own: Path | None) -> list[Path]:
    """Return the files of the built-in workloads and of a user's own folder, which may not exist."""
    return [*files_in(BUILTIN), *(files_in(own) if own else ())]


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder that can be workloads."""
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith(("_", ".")))


def is_workload(path: Path) -> bool:
    """Return whether a file is a workload, and no other program; raise UsageError if it is not Python."""
    builders = _find_builders(_parse(path, "remove it, or name another file"))
    return bool(builders) and _takes_two(builders[-1].args)


def read_workload(path: Path, *, builtin: bool) -> Workload:
    if not FILE_NAME.fullmatch(path.stem):
        raise UsageError(f"{path}: the name of a workload has letters, digits, '_', '-' and '.' only; rename the file")
    tree = _parse(path, "remove it, or name another folder")
    constants = {
        name: _literal(path, tree, name) for name in ("PARAMS", "COMPARISONS", "EXCLUDE", "REQUIREMENTS", "DATA")
    }
    builders = _find_builders(tree)
    if not builders:
        raise UsageError(f"{path}: a workload needs a function build(tf, params) that returns its step")
    if not _takes_two(builders[-1].args):
        raise UsageError(f"{path}: line {builders[-1].lineno}: build takes two arguments, build(tf, params)")
    for name in ("PARAMS", "COMPARISONS"):
        if not isinstance(constants[name] or {}, dict):
            raise UsageError(f"{path}: {name} must be a dict")
    exclude = constants["EXCLUDE"] or ()
    if not isinstance(exclude, (tuple, list)) or not all(isinstance(rule, dict) for rule in exclude):
        raise UsageError(f"{path}: EXCLUDE must be a tuple of dicts")
    params = {str(name): _values(path, name, values) for name, values in (constants["PARAMS"] or {}).items()}
    workload = Workload(
        name=path.stem,
        summary=(ast.get_docstring(tree) or "").partition("\n")[0],
        path=path,
        params=params,
        comparisons={str(name): str(value) for name, value in (constants["COMPARISONS"] or {}).items()},
        exclude=tuple({str(name): str(value) for name, value in rule.items()} for rule in exclude),
        builtin=builtin,
        requirements=_requirements(path, constants["REQUIREMENTS"] or ()),
        data=_data(path, constants["DATA"] or {}),
    )
    for combination in (workload.comparisons, *workload.exclude):
        for name, value in combination.items():
            if value not in params.get(name, ()):
                raise UsageError(f"{path}: {name}={value} is in COMPARISONS or EXCLUDE, but not in PARAMS")
    return workload


def _parse(path: Path, advice: str) -> ast.Module:
    try:
        return ast.parse(files.read_text(path), filename=str(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; {advice}") from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path}: cannot be read as Python: {str(error) or 'it is nested too deep'}") from error


def _find_builders(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "build"]


def _requirements(path: Path, given: Any) -> tuple[str, ...]:
    if not isinstance(given, (tuple, list)) or not all(isinstance(text, str) for text in given):
        raise UsageError(f"{path}: REQUIREMENTS must be a tuple of strings, such as ('pandas', 'pillow>=9')")
    return check_requirements(f"{path}: REQUIREMENTS", tuple(given))


def check_requirements(where: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the requirements; raise UsageError, which begins with their place, for an invalid one."""
    for text in given:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise UsageError(f"{where}: {text!r} is no requirement: {error}") from error
        if requirement.url:
            raise UsageError(f"{where}: {text!r}: name a package of the index, not an address")
    return given


def _data(path: Path, given: Any) -> dict[str, Path]:
    """Return where data are, by name and without links; relative places are next to the workload."""
    if not isinstance(given, dict) or not all(isinstance(text, str) for item in given.items() for text in item):
        raise UsageError(f"{path}: DATA must be a dict of names and folders, such as {{'images': '/data/images'}}")
    for name, place in given.items():
        if not FILE_NAME.fullmatch(name) or files.is_hidden(name):
            raise UsageError(
                f"{path}: DATA: the name {name!r} has letters, digits, '_', '-' and '.' only, and no '.' at its start"
            )
        if not place.isprintable():
            raise UsageError(f"{path}: DATA[{name!r}]: {place!a} has characters that cannot be printed")
    here = path.absolute().parent
    return {name: Path(os.path.realpath(here / os.path.expanduser(place))) for name, place in given.items()}


def check_data(workload: Workload, folder: Path, outside: Mapping[str, Path]) -> Workload:
    """Return a workload with its data where the user allows them.

    Raises UsageError for data that are not there, and for those outside of the workload's folder that the user has not
    allowed.
    """
    data = {}
    for name, written in workload.data.items():
        allowed = outside.get(find_place(workload.name, name))
        place = allowed or written
        if not place.exists():
            raise UsageError(f"{workload.path}: DATA[{name!r}]: {place} does not exist")
        if not (allowed or is_inside(place, folder)):
            raise UsageError(
                f"{workload.path}: DATA[{name!r}] is {str(place)!r}, which is outside of the folder or hidden; "
                f"{pinned.advise_to_allow(name, place, folder)}"
            )
        data[name] = place
    return replace(workload, data=data)


def find_place(workload: str, name: str) -> str:
    """Return the place of a workload's data in the copy of its folder."""
    return f"{contract.DATA}/{workload}/{name}"


def is_inside(place: Path, folder: Path) -> bool:
    """Return whether a place without links is below a folder, and not hidden in it."""
    whole = folder.resolve()
    names = place.relative_to(whole).parts if place.is_relative_to(whole) else ()
    return bool(names) and not any(map(files.is_hidden, names))


def _literal(path: Path, tree: ast.Module, name: str) -> Any:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value:
            targets, value = [node.target], node.value
        else:
            continue
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            try:
                return ast.literal_eval(value)
            except (ValueError, TypeError) as error:
                raise UsageError(f"{path}: {name} must be a literal (it is read without running the file)") from error
    return None


def _takes_two(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    alone = any(default is None for default in arguments.kw_defaults)
    return required <= 2 and (positional >= 2 or arguments.vararg is not None) and not alone


def check_syntaxes(workload: Workload, versions: Iterable[Version]) -> None:
    """Refuse a user's workload whose syntax is too new for every Python that one of the versions may run on."""
    # A program that cannot be read reports the reason itself.
    if workload.builtin or workload.path.is_dir():
        return
    path = workload.path
    for version in versions:
        pythons = [flavour.python.number for flavour in version.flavours]
        # The Python of a user's own image is only known once the image is present.
        if not pythons:
            continue
        newest = max(pythons, key=read_number_pair)
        try:
            ast.parse(files.read_text(path), filename=str(path), feature_version=read_number_pair(newest))
        except SyntaxError as error:
            raise UsageError(f"{path}, line {error.lineno}: Python {newest} cannot read this: {error.msg}") from error


def _values(path: Path, name: str, values: Any) -> tuple[str, ...]:
    if not isinstance(values, (tuple, list)) or not values or not all(isinstance(value, PLAIN) for value in values):
        raise UsageError(f"{path}: PARAMS[{name!r}] must be a tuple of strings or numbers, with at least one")
    values = tuple(map(str, values))
    if twice := [text for text in dict.fromkeys(values) if values.count(text) > 1]:
        raise UsageError(
            f"{path}: PARAMS[{name!r}] has more than one value that is written {twice[0]!r}; leave out all but one"
        )
    for text in (name, *values):
        if not NAMEABLE.fullmatch(text):
            raise UsageError(
                f"{path}: PARAMS[{name!r}]: {text!r} cannot be selected as name[param=value]; leave out , | = [ ] and "
                "blanks at its ends"
            )
    return tuple(values)


# The starts of a version's workers may take this long, in addition to the time of its arms.
VERSION_BUDGET_S = 12.0
# On a GPU, replicates and workers take about twice as long, because CUDA starts in each.
GPU_FACTOR = 2


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A named list of cases, and how long a run of each arm may take unless the user says otherwise."""

    name: str
    summary: str
    cases: tuple[str, ...]
    arm_budget_s: float | None
    # A run of few arms ends earlier once it is decided, and in a noisy hour less time leads to no verdict.
    least_budget_s: float = 0.0
    # These are the cases on a GPU, if they are different.
    gpu_cases: tuple[str, ...] = ()

    def on(self, device: str) -> "Suite":
        """Return the suite with the cases that it has on this device."""
        return replace(self, cases=self.gpu_cases) if device == "gpu" and self.gpu_cases else self

    def budget_s(self, cases: int, versions: int, device: str = "cpu") -> float | None:
        if self.arm_budget_s is None:
            return None
        usual_s = self.arm_budget_s * cases * versions + VERSION_BUDGET_S * versions
        return max(usual_s, self.least_budget_s) * (GPU_FACTOR if device == "gpu" else 1)


def suite(name: str) -> Suite:
    suites = all_suites()
    if name not in suites:
        raise UsageError(f"unknown suite {name!r}{did_you_mean(name, suites)}; there are {', '.join(suites)}")
    return suites[name]


def all_suites() -> dict[str, Suite]:
    table = tomllib.loads((WORKLOADS / "suites.toml").read_text())
    everything = [path.stem for path in files_in(BUILTIN)]
    return {
        name: Suite(
            name=name,
            summary=entry["summary"],
            cases=tuple(everything if entry["cases"] == ["*"] else entry["cases"]),
            arm_budget_s=entry.get("arm_budget_s"),
            least_budget_s=entry.get("least_budget_s", 0.0),
            gpu_cases=tuple(entry.get("gpu_cases", ())),
        )
        for name, entry in table.items()
    }


def source_hashes(workloads: Sequence[Workload]) -> dict[str, str]:
    """Return a digest of each measured source.

    These are the shared worker, each workload's file with those it imports, and the files next to a user's workloads.
    """
    shared = hashlib.sha256()
    for path in sorted(WORKLOADS.glob("*.py")):
        shared.update(path.read_bytes())
    own = {workload.name: _source_hash(workload.path) for workload in workloads}
    mine = [workload.path for workload in workloads if not workload.builtin]
    folders = {path if path.is_dir() else path.parent for path in mine}
    neighbours = {
        name: digest for folder in folders if folder not in mine for name, digest in _hash_neighbours(folder).items()
    }
    # A run keeps revisions of the user's code next to it.
    revisions = {
        path.name: _source_hash(path)
        for folder in folders
        for path in sorted(folder.glob("@*"))
        if REVISION.fullmatch(path.name) and path.is_dir()
    }
    return {"worker": shared.hexdigest(), **own, **neighbours, **revisions}


def _hash_neighbours(folder: Path) -> dict[str, str]:
    """Return the digests of the files in a folder that no import finds: any of its workloads may read them.

    Large files are not hashed: a run records their size and time.
    """
    try:
        return {
            f"{NEIGHBOURS}{name}": _digest(file)
            for name, file in _list_own(folder)
            # An empty file in the copy of a folder may only mark the place of a file that is not copied.
            if not name.endswith(".py") and not LEFTOVER.fullmatch(file.name) and file.stat().st_size
        }
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be read: {error.strerror}") from error


def _list_own(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder that are not large and of no revision."""
    small, _ = pinned.divide_files(folder)
    return ((name, file) for name, file in small if not REVISION.fullmatch(name.partition("/")[0]))


def _source_hash(path: Path) -> str:
    """Return the digest of a workload file and of the files that it imports.

    If it imports none, this is the digest of its bytes.
    """
    if path.is_dir():
        # The path of a program is its folder, and so is that of a revision.
        small = _list_own(path)
        # An empty file in the copy of a folder may only mark the place of a file that is not copied.
        filled = {name: _digest(file) for name, file in small if file.stat().st_size}
        return hashlib.sha256("".join(f"{name} {digest}\n" for name, digest in filled.items()).encode()).hexdigest()
    own = _digest(path)
    others = imports_of(path)
    if not others:
        return own
    lines = [own, *(f"{name} {_digest(file)}" for name, file in others.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _digest(path: Path) -> str:
    # The file is read in pieces, because a file that a workload imports may be large.
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
