"""The backends of Keras that take TensorFlow's place in a target, such as `keras==3.15.1 backend=jax`.

Only builds for CPUs are locked. Those of PyTorch have a number that ends with `+cpu`, and most indexes lack them.
"""

import ast
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.catalog import lockfile
from orchestrator.catalog.package_index import list_final_releases
from orchestrator.catalog.targets import Changed, name_pinned
from orchestrator.catalog.version import FlavourName
from orchestrator.child_environment import pass_variables
from orchestrator.errors import UsageError
from orchestrator.machine.supported import OLDEST_GLIBC, find_architecture
from orchestrator.redact import mask_login

TORCH = "torch"
CPU_BUILD = "+cpu"
# This setting of pip names folders and pages of packages beyond the index.
LINKS = re.compile(r"^[^=]*\.find-links=(?P<links>.*)$", re.MULTILINE)
# A build of PyTorch takes about 200 MB.
FETCH_TIMEOUT_S = 1800


def pin_backend(changed: Changed, python: str, device: FlavourName) -> Changed:
    """Return a target whose backend is pinned: to the user's release, or else to the newest one of the index."""
    backend = changed.backend
    if device == "gpu":
        raise UsageError(
            f"target '{changed}': tfcompare locks the CPU build of {backend}, which cannot use a GPU: run it without "
            "--gpu and --gpus"
        )
    if backend in map(name_pinned, changed.pins):
        return changed
    releases = list_final_releases(backend, python)
    if backend == TORCH:
        releases = [number for number in releases if number.endswith(CPU_BUILD)]
    if not releases:
        what = "release of jax" if backend != TORCH else "build of torch for CPUs, whose number ends with +cpu,"
        raise UsageError(
            f"target '{changed}': the index has no {what} for Python {python}; name a folder or page that has "
            "one in pip's find-links setting, or another Python with py="
        )
    return replace(changed, pins=(*changed.pins, f"{backend}=={releases[-1]}"))


def find_links() -> tuple[str, ...]:
    """Return the folders and pages of packages that pip's settings name, which uv does not read."""
    command = [sys.executable, "-P", "-m", "pip", "config", "list"]
    try:
        done = subprocess.run(command, env=pass_variables(), capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return ()
    # pip quotes a value as Python does, and a file of settings may have a link in each line.
    links = [link for match in LINKS.finditer(done.stdout) for link in ast.literal_eval(match["links"]).split()]
    # uv runs in another folder.
    return tuple(dict.fromkeys(link if "://" in link else os.path.abspath(os.path.expanduser(link)) for link in links))


def fetch_linked(lock: Path, python: str, folder: Path) -> str:
    """Put a lock's wheels of local builds, which are seldom on an index, into a folder for a build elsewhere.

    They come from the places in pip's settings, and each must match a digest of the lock. Returns why one is missing,
    or ''.
    """
    local = [pin for pin in lockfile.read_lock(lock) if "+" in pin.number]
    if not local:
        return ""
    machine, (major, minor) = find_architecture().name, OLDEST_GLIBC
    platforms = [f"manylinux_{major}_{older}_{machine}" for older in range(5, minor + 1)]
    platforms += [f"{name}_{machine}" for name in ("manylinux1", "manylinux2010", "manylinux2014", "linux")]
    with TemporaryDirectory(prefix="tfcompare-links-") as made:
        pins = Path(made) / "pins.txt"
        pins.write_text("".join(f"{lockfile.write_pin(pin)}\n" for pin in local))
        command = [
            sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-index", "--no-deps", "--require-hashes",
            "--only-binary", ":all:", "--python-version", python, "--dest", str(folder), "--requirement", str(pins),
            *(word for platform in platforms for word in ("--platform", platform)),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, env=pass_variables(), capture_output=True, text=True, timeout=FETCH_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            return f"pip got no wheel of {', '.join(pin.name for pin in local)} in {FETCH_TIMEOUT_S / 60:.0f} minutes"
    return mask_login(done.stderr.strip()) if done.returncode else ""
