"""What all environments have in common: the variables of a worker."""

import os
from collections.abc import Mapping

from orchestrator.catalog.variables import LOGS


def worker_variables(seed: int = 0, own: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of a worker; `own` are those of its target.

    Nothing else in the caller's environment may make two runs differ, and what TensorFlow logs makes none differ. The
    seed is that of Python's hashes: the same for all targets of a round, so that none is lucky, and another in the next
    one.
    """
    return {
        **{name: value for name, value in sorted(os.environ.items()) if LOGS.fullmatch(name)},
        "LANG": "C.UTF-8",
        "KERAS_BACKEND": "tensorflow",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": str(seed),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore",
        **(own or {}),
    }
