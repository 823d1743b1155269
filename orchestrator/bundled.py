"""The files that tfcompare includes, for building images and for running inside a version, and its own number."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent
# Only a wheel has this folder (pyproject.toml); in a checkout both are next to this package.
_IN_WHEEL = _HERE / "_bundled"
_ROOT = _IN_WHEEL if _IN_WHEEL.is_dir() else _HERE.parent

IMAGES = _ROOT / "images"
WORKLOADS = _ROOT / "workloads"


def find_own_number() -> str:
    """Return the number of the installed tfcompare; a checkout on the path of modules has none."""
    # This module takes long to import.
    from importlib import metadata

    try:
        return metadata.version("tfcompare")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"
