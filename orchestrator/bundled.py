"""The folders that tfcompare brings with it: what images are built from, and what runs inside a version."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent
# Only a wheel has this folder (pyproject.toml); in a checkout both are next to this package.
_IN_WHEEL = _HERE / "_bundled"
_ROOT = _IN_WHEEL if _IN_WHEEL.is_dir() else _HERE.parent

IMAGES = _ROOT / "images"
WORKLOADS = _ROOT / "workloads"
