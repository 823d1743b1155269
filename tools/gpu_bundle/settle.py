"""Fit the environments of a bundle to the place where install.py has put them, with the Python of the bundle."""

import json
import os
import subprocess
import sys
from pathlib import Path
from shlex import quote

from orchestrator import catalog, files
from orchestrator.catalog.version import Flavour
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.donor import MARKER, describe_python
from orchestrator.engines.venv.engine import environment_path, environments_folder
from orchestrator.engines.venv.interpreters import Interpreter

TFCOMPARE = """#!/bin/sh
export TFCOMPARE_CACHE={cache} UV_PYTHON_DOWNLOADS=never
exec {python} -I -m orchestrator "$@"
"""
CHECK = """#!/bin/sh
exec {python} -I -m tools.gpu_check --engine venv --versions {versions} "$@"
"""


def settle(bundle: Path) -> None:
    """Give every environment its Python and the name that tfcompare looks for, and write the commands."""
    os.environ["TFCOMPARE_CACHE"] = str(bundle / "cache")
    flavours = {
        flavour.lock.name: flavour
        for version in catalog.all_versions()
        for device in ("cpu", "gpu")
        for flavour in version.on(device)
    }
    versions = []
    for marker in sorted(environments_folder().glob(f"*/{MARKER}")):
        stated = json.loads(marker.read_text())
        _adopt(bundle, marker.parent, flavours[stated["lock"]], stated)
        versions.append(stated["version"])
    python = bundle / "host" / "bin" / "python"
    words = {"cache": quote(str(bundle / "cache")), "python": quote(str(python)), "versions": ",".join(versions)}
    for path, text in ((python.with_name("tfcompare"), TFCOMPARE), (bundle / "check", CHECK)):
        path.write_text(text.format(**words))
        path.chmod(0o755)


def _adopt(bundle: Path, environment: Path, flavour: Flavour, stated: dict[str, object]) -> None:
    number = flavour.python.number
    python = bundle / "pythons" / number / "bin" / f"python{number}"
    subprocess.run([python, "-I", "-m", "venv", "--without-pip", environment], check=True)
    interpreter = interpreters.probe(environment / "bin" / "python")
    if not isinstance(interpreter, Interpreter):
        sys.exit(f"{python} does not run here: {interpreter.reason}")
    stated = {**stated, "build": interpreter.build, "python": describe_python(interpreter)}
    files.write_atomically(environment / MARKER, json.dumps(stated).encode())
    environment.rename(environment_path(flavour, interpreter))


if __name__ == "__main__":
    settle(Path(sys.argv[1]))
