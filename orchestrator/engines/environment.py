"""Parts that all environments have in common: the variables of a worker, and the log of a build."""

import os
import re
from pathlib import Path

from orchestrator.catalog.user_data import home

# Variables that a user sets for TensorFlow on purpose; they reach every version alike.
PASSED_ON = re.compile("(TF|OMP|KMP|XLA|MKL)_.*")
# Terraform's variables begin with TF_ as well, and hold passwords and tokens.
NOT_PASSED_ON = re.compile("TF_(VAR|TOKEN|CLI|HTTP)_.*|TF_ENCRYPTION|.*_(PASSWORD|TOKEN|SECRET|KEY)", re.IGNORECASE)


def cache() -> Path:
    """Return the directory for everything that can be created again."""
    base = os.environ.get("TFCOMPARE_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(base or home("TFCOMPARE_CACHE") / ".cache") / "tfcompare"


def is_passed_on(name: str) -> bool:
    """Return whether workers and scheduled nightly runs receive a variable of the caller, as one of TensorFlow's."""
    return bool(PASSED_ON.fullmatch(name)) and not NOT_PASSED_ON.fullmatch(name)


def find_passed_on_variables() -> dict[str, str]:
    """Return the variables of the caller that reach every worker."""
    return {name: value for name, value in sorted(os.environ.items()) if is_passed_on(name)}


def worker_variables(seed: int = 0) -> dict[str, str]:
    """Return the variables of a worker.

    This is an allow-list: nothing else in the caller's environment may make two runs differ. The seed is that of
    Python's hashes: the same for all versions of a run, so that none is lucky, and another in the next run.
    """
    return {
        **find_passed_on_variables(),
        "LANG": "C.UTF-8",
        "KERAS_BACKEND": "tensorflow",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": str(seed),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore",
    }
