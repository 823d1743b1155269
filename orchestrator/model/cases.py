"""Workloads, their cases, and the arms: a case in a version."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

Params = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The declarations of a workload file, read without running it."""

    name: str
    summary: str
    path: Path
    params: dict[str, tuple[str, ...]]
    contrasts: dict[str, str]
    exclude: tuple[dict[str, str], ...]
    builtin: bool


@dataclass(frozen=True, order=True)
class Case:
    """A workload with its parameters fixed."""

    workload: str
    params: Params

    @cached_property
    def label(self) -> str:
        return f"{self.workload}{params_label(self.params)}"

    @property
    def params_text(self) -> str:
        return params_text(self.params)


class ArmKey(NamedTuple):
    """The name of an arm in files and mappings: the label of its case, and its version."""

    case: str
    version: str


class Arm(NamedTuple):
    """A case in a version, which is what a run measures."""

    case: Case
    version: str

    @property
    def key(self) -> ArmKey:
        return ArmKey(self.case.label, self.version)


# The control arm is the baseline once more, in a separate worker: what it differs by is this machine's noise. It is a
# version like any other, so its name is a version's with a suffix, in memory as in files.
_CONTROL = "+control"


def control_of(number: str) -> str:
    """Return the name of the control arm of a version."""
    return number + _CONTROL


def is_control(version: str) -> bool:
    return version.endswith(_CONTROL)


def number_of(version: str) -> str:
    """Return the number of the TensorFlow that runs in a version, which may be the control arm."""
    return version.removesuffix(_CONTROL)


def params_label(params: Params) -> str:
    return "[" + ",".join(f"{name}={value}" for name, value in params) + "]" if params else ""


def params_text(params: Params) -> str:
    """Return parameters with spaces between them, so that they can be wrapped there."""
    return " ".join(f"{name}={value}" for name, value in params)
