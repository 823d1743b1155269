"""Calls of uv, which resolves requirements for Pythons that it does not run on, and installs wheels for them.

It never builds a source package: that would run the package's code as the user, before any container exists.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.child_environment import pass_variables
from orchestrator.machine.supported import OLDEST_GLIBC, find_architecture
from orchestrator.options import EngineOptions

RESOLVE_TIMEOUT_S, INSTALL_TIMEOUT_S = 300, 1800
NO_ANSWER = "the index gave no answer within {seconds} s"
# This option of pip means that no package may come as source.
ONLY_WHEELS = ("--only-binary", ":all:")
COMPILE = ("pip", "compile", "--no-progress", "--no-header", "--no-annotate", "--generate-hashes", *ONLY_WHEELS)
INSTALL = ("pip", "install", "--quiet", "--no-deps", "--require-hashes", *ONLY_WHEELS)


# uv only warns of these.
NO_EXTRA = re.compile(r"The package .* does not have an extra named .*")
NO_DATE = "is missing an upload date"
# uv draws these characters around its reasons.
DRAWN = str.maketrans("", "", "×╰─▶│├")


class Unresolved(Exception):
    """The message of uv, or about it, if requirements cannot be met."""


def flatten(message: str) -> str:
    """Return a message of uv in one line, without what it draws around its reasons."""
    text = " ".join(message.translate(DRAWN).split()).removeprefix("error: ").rstrip(".")
    return re.sub(r":? cause: ", ": ", text)


def find_uv() -> str | None:
    """Return the uv of tfcompare's environment, or else the one on PATH."""
    return shutil.which("uv", path=f"{Path(sys.executable).parent}") or shutil.which("uv")


def target_arguments(python: str) -> tuple[str, ...]:
    """Return the arguments that make uv resolve or install for a Python on the platform of all targets."""
    platform = f"{find_architecture().name}-manylinux_{'_'.join(map(str, OLDEST_GLIBC))}"
    return "--python-version", python, "--python-platform", platform


def name_index(options: EngineOptions, wheelhouse: str = "", certificates: str = "") -> dict[str, str]:
    """Return the variables by which uv knows the user's index.

    They are no arguments, because an address may hold a login and every user can read a process's arguments.
    `wheelhouse` and `certificates` are the paths of these two where uv runs.
    """
    named: dict[str, str] = {}
    if options.index_url:
        named["UV_DEFAULT_INDEX"] = options.index_url
    if options.wheelhouse:
        named["UV_FIND_LINKS"] = wheelhouse or str(options.wheelhouse.absolute())
    if options.ca_bundle:
        named["SSL_CERT_FILE"] = certificates or str(options.ca_bundle.absolute())
    return named


def choose_index(options: EngineOptions) -> tuple[str, ...]:
    """Return the argument that keeps uv from asking an index if the user named only a wheelhouse."""
    return ("--no-index",) if options.wheelhouse and not options.index_url else ()


def run_uv(
    uv: str,
    arguments: Sequence[str],
    folder: Path,
    options: EngineOptions,
    timeout_s: float,
    links: Sequence[str] = (),
) -> str:
    """Run uv in a folder of tfcompare's own and return what it prints; raise Unresolved if it fails.

    `links` are folders and pages of packages beyond the index. uv asks the Python that it is given. Otherwise it would
    start that of any `.venv` near the working directory.
    """
    further = {"UV_FIND_LINKS": ",".join(links)} if links else {}
    try:
        done = subprocess.run(
            [uv, *arguments, *choose_index(options), "--python", sys.executable],
            cwd=folder,
            env=pass_variables(os.environ) | name_index(options) | further,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as error:
        raise Unresolved(NO_ANSWER.format(seconds=timeout_s)) from error
    return read_output(done.returncode, done.stdout, done.stderr)


def read_output(code: int, stdout: str, stderr: str) -> str:
    """Return what uv printed to stdout; raise Unresolved if it failed, or left out something that was asked for."""
    if code != 0:
        lines = [line for line in stderr.strip().splitlines() if not line.startswith("warning: ")]
        undated = "\nThe index does not state when its files came, which as-of= needs" if NO_DATE in stderr else ""
        raise Unresolved("\n".join(lines) + undated)
    if match := NO_EXTRA.search(stderr):
        raise Unresolved(match[0])
    return stdout
