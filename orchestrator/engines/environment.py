"""The variables of a worker and the words of a build, which are the same for all kinds of environments."""

import os
from collections.abc import Mapping

from orchestrator.catalog.variables import LOGS

# pip builds with the tools of the environment, and asks no index.
WHEEL = (
    "pip", "wheel", "--disable-pip-version-check", "--no-input", "--no-deps", "--no-build-isolation", "--no-index",
)  # fmt: skip


def worker_variables(seed: int = 0, own: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of a worker; `own` are those of its target.

    Only variables that control TensorFlow's logs are taken from the caller, because others could make two runs differ.
    `seed` seeds Python's hashes: it is the same for all targets of a round, so that none is lucky, and changes with
    every round.
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
