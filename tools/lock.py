"""Writes images/locks/ from images/versions.toml: every package of every version, pinned with all its hashes.

`--check` needs no network: each lock carries a digest of the inputs that it was made from.
The resolver is uv: it resolves for Pythons that it does not run on, 3.6 included, and reads no pip.conf.
"""

import argparse
import hashlib
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

IMAGES = Path(__file__).resolve().parent.parent / "images"
LOCKS = IMAGES / "locks"
FLAVOURS = ("cpu", "gpu")
# Packages that come as source are built with these, without isolation.
# The tensorboards of the versions here import pkg_resources, which setuptools 82 no longer has.
BUILD_TOOLS = ("setuptools<82", "wheel")
INPUTS_PREFIX = "# inputs: sha256:"


class Lock(NamedTuple):
    path: Path
    command: str
    python: str
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()

    @property
    def inputs(self) -> str:
        text = "\n".join((self.python, *self.requirements, "", *self.constraints))
        return hashlib.sha256(text.encode()).hexdigest()

    def is_current(self) -> bool:
        return self.path.is_file() and INPUTS_PREFIX + self.inputs in self.path.read_text().splitlines()


def plan(catalogue: dict, versions: list[str], flavours: tuple[str, ...]) -> tuple[list[Lock], list[Lock]]:
    """The locks of pip for every Python in use, and the locks of the versions."""
    tools, locks = {}, []
    for version in versions:
        for flavour in flavours:
            table = catalogue["version"][version].get(flavour, {"pythons": [], "requirements": []})
            for python in table["pythons"]:
                pip = f"pip=={catalogue['python'][python]['pip']}"
                requirements = (pip, *BUILD_TOOLS)
                tools[python] = Lock(LOCKS / f"pip-py{python}.txt", "tools/lock.py", python, requirements)
                locks.append(
                    Lock(
                        path=LOCKS / f"{version}-{flavour}-py{python}.txt",
                        command=f"tools/lock.py {version} --flavour {flavour}",
                        python=python,
                        requirements=tuple(table["requirements"]),
                        constraints=requirements,
                    )
                )
    return list(tools.values()), locks


def resolve(lock: Lock, constraints: Path) -> str:
    command = ["uv", "pip", "compile", "-", "--no-config", "--no-header", "--no-annotate", "--quiet"]
    command += ["--generate-hashes", "--constraints", str(constraints)]
    command += ["--python-version", lock.python, "--python-platform", "x86_64-manylinux_2_28"]
    result = subprocess.run(command, input="\n".join(lock.requirements), capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{lock.path.name}: cannot be resolved\n{result.stderr}")
    return result.stdout


def write(lock: Lock, constraints: Path) -> None:
    header = f"# Written by: python {lock.command}\n# from images/versions.toml, for Python {lock.python}\n"
    lock.path.write_text(f"{header}{INPUTS_PREFIX}{lock.inputs}\n{resolve(lock, constraints)}")
    print(lock.path.relative_to(IMAGES.parent))


def versions_named(catalogue: dict, names: list[str]) -> list[str]:
    tables = catalogue["version"]
    full = {alias: version for version, table in tables.items() for alias in (version, *table["aliases"])}
    unknown = [name for name in names if name not in full]
    if unknown:
        raise SystemExit(f"unknown version {', '.join(unknown)}; images/versions.toml has {', '.join(tables)}")
    return [full[name] for name in names] or list(tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", nargs="*", help="all if none is named")
    parser.add_argument("--flavour", choices=FLAVOURS, help="both if not given")
    parser.add_argument(
        "--check", action="store_true", help="only say which locks are stale or missing; exit 1 if any is"
    )
    options = parser.parse_args()

    catalogue = tomllib.loads((IMAGES / "versions.toml").read_text())
    flavours = (options.flavour,) if options.flavour else FLAVOURS
    tools, locks = plan(catalogue, versions_named(catalogue, options.version), flavours)

    if options.check:
        stale = [lock for lock in tools + locks if not lock.is_current()]
        for lock in stale:
            print(f"{lock.path.relative_to(IMAGES.parent)} is stale or missing: run python {lock.command}")
        raise SystemExit(1 if stale else 0)

    if shutil.which("uv") is None:
        raise SystemExit("uv is not on PATH: pip install uv")
    LOCKS.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile() as nothing:
        # Left alone while current: the locks of other versions were made to agree with it.
        for lock in tools:
            if not lock.is_current():
                write(lock, Path(nothing.name))
    for lock in locks:
        # The same pip, setuptools and wheel, whoever else depends on them.
        write(lock, LOCKS / f"pip-py{lock.python}.txt")


if __name__ == "__main__":
    main()
