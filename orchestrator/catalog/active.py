"""The TensorFlow of the environment in which the user works, read from its files without running any of it."""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion
from packaging.version import Version as Number

INSTALLED = re.compile(
    r"(?P<name>(intel_)?tensorflow(_cpu|_gpu)?|tf_nightly(_cpu)?)-(?P<number>[^-]+)(-py[\d.]+)?\.(dist|egg)-info",
    re.IGNORECASE,
)
# An activated environment sets one of these to its path.
VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX")


@dataclass(frozen=True)
class ActiveTensorFlow:
    number: str
    prefix: Path


def find_active(variables: Mapping[str, str] = os.environ) -> ActiveTensorFlow | None:
    """Return the TensorFlow of the active environment, or None if it has none, or several."""
    for prefix in filter(Path.is_dir, dict.fromkeys(_prefixes(variables))):
        numbers = set(_find_numbers(prefix))
        if len(numbers) == 1:
            return ActiveTensorFlow(numbers.pop(), prefix)
        if numbers:
            return None
    return None


def _prefixes(variables: Mapping[str, str]) -> Iterator[Path]:
    """Yield the environments that may be the active one, the most certain first."""
    for name in VARIABLES:
        if variables.get(name):
            yield Path(variables[name])
    for program in ("python", "python3"):
        if found := shutil.which(program, path=variables.get("PATH", "")):
            # The path is not resolved, because the Python of an environment is a link to the one that it was made with.
            yield Path(found).absolute().parent.parent
    # tfcompare may be installed next to TensorFlow.
    yield Path(sys.prefix)


def _find_numbers(prefix: Path) -> Iterator[str]:
    """Yield the number of each TensorFlow in an environment."""
    folders = [prefix / "lib", prefix / "lib64"]
    if not (prefix / "pyvenv.cfg").is_file():
        # A system's Python also sees what its user installed.
        folders += [prefix / "local" / "lib", Path(os.path.expanduser("~/.local/lib"))]
    for place in (place for folder in folders for place in folder.glob("python3*/*-packages/")):
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for match in filter(None, map(INSTALLED.fullmatch, names)):
            try:
                # A builder may have added a local part to the number, which no index knows.
                yield Number(match["number"]).public
            except InvalidVersion:
                continue
