"""The releases of a package that the user's index has, as pip sees them."""

import re
import subprocess
import sys

from packaging.version import Version as Number

from orchestrator.catalog.uv import RESOLVE_TIMEOUT_S
from orchestrator.child_environment import pass_variables
from orchestrator.errors import UsageError


def list_final_releases(package: str, python: str) -> list[str]:
    """Return the releases of a package without pre-releases, oldest first."""
    return sorted((number for number in list_releases(package, python) if not Number(number).is_prerelease), key=Number)


def list_releases(package: str, python: str) -> list[str]:
    """Return every release of a package that the index has wheels of for a Python, pre-releases included."""
    # Only pip knows the user's settings of pip.
    command = [sys.executable, "-P", "-m", "pip", "index", "versions", package, "--pre", "--only-binary=:all:"]
    try:
        done = subprocess.run(
            [*command, "--python-version", python],
            env=pass_variables(),
            capture_output=True,
            text=True,
            timeout=RESOLVE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"the index does not answer for {package} within {RESOLVE_TIMEOUT_S} s") from error
    if done.returncode != 0:
        # pip also prints this for an index that does not answer, after enough retries.
        broken = re.search(r"Retrying \(.*after connection broken by '(.*)'", done.stderr)
        if "No matching distribution" in done.stderr and not broken:
            return []
        if broken:
            raise UsageError(f"the index does not answer for {package} ({_cause(broken[1])})")
        raise UsageError(f"the index was not asked for {package}: {(done.stderr.strip().splitlines() or [''])[-1]}")
    listed = re.search(r"Available versions: (.*)", done.stdout)
    return listed[1].replace(" ", "").split(",") if listed else []


def _cause(message: str) -> str:
    """Return the innermost message of the nested errors that pip shows."""
    quoted = [single or double for single, double in re.findall(r"'([^']*)'|\"([^\"]*)\"", message)]
    return re.sub(r"\[Errno -?\d+\] ", "", quoted[-1].rpartition(": ")[2]) if quoted else message
