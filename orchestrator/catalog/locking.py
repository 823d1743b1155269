"""Locks: requirements of any kind, pinned with the hashes of all their files, for the Python of a target.

The resolver is uv, because it resolves for Pythons that it does not run on, including 3.6. It takes only wheels,
because building a source package would run its code on this machine.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator import catalog
from orchestrator.catalog.table import SourceTable
from orchestrator.catalog.uv import COMPILE, RESOLVE_TIMEOUT_S, Unresolved, find_uv, run_uv, target_arguments
from orchestrator.errors import UsageError
from orchestrator.machine.supported import find_architecture
from orchestrator.options import EngineOptions

# Packages that come as source are built with these, without isolation.
# The tensorboards of the versions here import pkg_resources, which setuptools 82 no longer has.
BUILD_TOOLS = ("setuptools<82", "wheel")
# This is a pin in a resolver's answer that no hash follows.
UNHASHED = re.compile(r"^(?P<name>[\w.-]+)(\[[^\]]*\])?==\S+[^\S\n]*(;[^\n\\]*)?$", re.MULTILINE)
INPUTS_PREFIX = "# inputs: sha256:"
WRITTEN_BY = "# Written by: "

# Such a function runs uv with arguments in a folder, for a number of seconds at most, and returns what it prints.
RunUv = Callable[[Sequence[str], Path, float], str]


def pin_requirements(
    run: RunUv,
    folder: Path,
    python: str,
    requirements: Iterable[str],
    known: Iterable[str],
    options: Sequence[str],
    preferred: str = "",
    overrides: Iterable[str] = (),
) -> str:
    """Return requirements pinned for a Python, which agree with `known` pins; raise Unresolved if there are none.

    The pins of a `preferred` lock stay as they are wherever that is possible. `overrides` count instead of what other
    packages require. All that uv reads and writes is in the folder.
    """
    (folder / "requirements.txt").write_text("".join(f"{text}\n" for text in requirements))
    (folder / "known.txt").write_text("".join(f"{text}\n" for text in known))
    arguments = (*COMPILE, *target_arguments(python), "requirements.txt", "--constraints", "known.txt", *options)
    if overrides:
        (folder / "overrides.txt").write_text("".join(f"{text}\n" for text in overrides))
        arguments += ("--override", "overrides.txt")
    if not preferred:
        return run(arguments, folder, RESOLVE_TIMEOUT_S)
    # uv prefers the pins of the file that it writes.
    (folder / "pinned.txt").write_text(preferred)
    run((*arguments, "--output-file", "pinned.txt"), folder, RESOLVE_TIMEOUT_S)
    return (folder / "pinned.txt").read_text()


@dataclass(frozen=True)
class Lock:
    path: Path
    command: str
    python: str
    requirements: tuple[str, ...]
    # If these change, the lock is made again.
    constraints: tuple[str, ...] = ()
    # The pins of this lock stay as they are wherever that is possible.
    preferred: str = field(default="", repr=False)
    # These count instead of what other packages require.
    overrides: tuple[str, ...] = ()
    # This returns folders and pages of packages beyond the index.
    links: Callable[[], Sequence[str]] = field(default=tuple, repr=False, compare=False)

    @property
    def inputs(self) -> str:
        here = find_architecture()
        text = "\n".join(
            (self.python, *self.requirements, "", *self.constraints, *([] if here.is_usual else [here.name]))
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def is_current(self) -> bool:
        return self.path.is_file() and INPUTS_PREFIX + self.inputs in self.path.read_text().splitlines()


def pip_lock(python: str) -> Lock:
    pip = f"pip=={catalog.builtin_catalogue().python[python].pip}"
    return Lock(catalog.LOCKS / f"pip-py{python}.txt", "python tools/lock.py", python, (pip, *BUILD_TOOLS))


def resolve_lock(lock: Lock, constraints: Path | None = None, options: Sequence[str] = ()) -> str:
    """Resolve requirements and return the text of the lock; raise Unresolved if that fails.

    Source packages are refused, except for those of the table, whose metadata the table has, so nothing is built here.
    """
    known = catalog.builtin_catalogue().source
    sources: dict[str, SourceTable] = {}
    first: Unresolved | None = None
    while True:
        try:
            resolved = _compile(lock, constraints, options, sources)
            break
        except Unresolved as error:
            first = first or error
            # uv names the packages without wheels only in its message.
            named = {name: source for name, source in known.items() if re.search(rf"\b{name}\b", str(error))}
            if named.keys() <= sources.keys():
                raise first from None
            sources |= named
    for name, source in sources.items():
        resolved = _keep_known_file(resolved, name, source)
    if bare := UNHASHED.search(resolved):
        raise Unresolved(f"the index states no hash of the files of {bare['name']}, so any file would do")
    header = f"{WRITTEN_BY}{lock.command}\n# from its table of versions, for Python {lock.python}\n"
    return f"{header}{INPUTS_PREFIX}{lock.inputs}\n{resolved}"


def _compile(lock: Lock, constraints: Path | None, options: Sequence[str], sources: Mapping[str, SourceTable]) -> str:
    binary = find_uv()
    if binary is None:
        raise UsageError("uv, which makes locks, is not on PATH: pip install uv")
    with TemporaryDirectory(prefix="tfcompare-lock-") as made:
        folder = Path(made)
        metadata = (
            f"[[dependency-metadata]]\nname = {json.dumps(name)}\nversion = {json.dumps(each.version)}\n"
            f"requires-dist = {json.dumps(each.requires)}\n"
            for name, each in sources.items()
        )
        (folder / "uv.toml").write_text("".join(metadata))
        more = ["--config-file", "uv.toml", *(["--constraints", str(constraints)] if constraints else []), *options]
        more += [f"--no-binary={name}" for name in sources]
        known = [f"{name}=={each.version}" for name, each in sources.items()]

        def run(arguments: Sequence[str], folder: Path, timeout_s: float) -> str:
            return run_uv(binary, arguments, folder, EngineOptions(), timeout_s, lock.links())

        return pin_requirements(
            run, folder, lock.python, lock.requirements, known, more, lock.preferred, lock.overrides
        )


def _keep_known_file(resolved: str, name: str, source: SourceTable) -> str:
    """Remove all files of a source package but the one that the table knows, since no other may ever be built."""
    pin = re.search(rf"^{name}=={re.escape(source.version)}(?P<hashes>( \\\n +--hash=\S+)*)$", resolved, re.MULTILINE)
    if pin is None:
        return resolved
    if f"--hash=sha256:{source.sha256}" not in pin["hashes"].split():
        raise Unresolved(
            f"{name} {source.version} comes as source, and the index has another file of it than the one that "
            "tfcompare knows"
        )
    return resolved.replace(pin[0], f"{name}=={source.version} \\\n    --hash=sha256:{source.sha256}")
