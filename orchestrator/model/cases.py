"""Workloads, their cases, the targets that cases run in, and arms, each of which is a case in a target."""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

Params = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The declarations of a workload file, read without running it."""

    name: str
    summary: str
    path: Path
    params: dict[str, tuple[str, ...]]
    comparisons: dict[str, str]
    exclude: tuple[dict[str, str], ...]
    builtin: bool
    # `requirements` are packages beyond those of TensorFlow. `data` are folders or files by the workload's names for
    # them.
    requirements: tuple[str, ...] = ()
    data: dict[str, Path] = field(default_factory=dict)


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


# The name of a control arm is that of the baseline with this suffix.
_CONTROL = "+control"


@dataclass(frozen=True, order=True)
class Target:
    """The environment of a case, by name: the number of a version, or a name for a version with changes.

    The control arm is the baseline again, in a separate worker, so that any difference is noise of this machine. Files,
    streams, tables and exports contain `str(target)`, and only this class knows its format.
    """

    name: str
    control: bool = False

    def __post_init__(self) -> None:
        if not self.name or self.name.endswith(_CONTROL):
            raise ValueError(f"{self.name!r} is not a valid name of a target")

    # Programs that use `load_run` write `arm.version == "2.0"`, look versions up by name and print them. No target is
    # compared with a string inside tfcompare.
    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return str(self) == other
        return isinstance(other, Target) and (self.name, self.control) == (other.name, other.control)

    def __hash__(self) -> int:
        # It must be that of the string which it equals.
        return hash(str(self) if self.control else self.name)

    def __repr__(self) -> str:
        return repr(str(self))

    def __str__(self) -> str:
        return f"{self.name}{_CONTROL}" if self.control else self.name

    # A journal names the same few targets tens of thousands of times.
    @classmethod
    @lru_cache(1000)
    def parse(cls, name: str) -> "Target":
        """Return the target with this name; raise ValueError if it is not the name of a target."""
        return cls(name.removesuffix(_CONTROL), name.endswith(_CONTROL))

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        """Let pydantic read and write targets by name; it calls this when it reads the first file."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(
            Target.parse, core_schema.str_schema(), serialization=core_schema.to_string_ser_schema()
        )


class ArmKey(NamedTuple):
    """The name of an arm in files and mappings: the label of its case, and its version."""

    case: str
    target: Target


class Arm(NamedTuple):
    """A case in a version, which is what a run measures."""

    case: Case
    target: Target

    @property
    def key(self) -> ArmKey:
        return ArmKey(self.case.label, self.target)


def params_label(params: Params) -> str:
    return "[" + ",".join(f"{name}={value}" for name, value in params) + "]" if params else ""


def params_text(params: Params) -> str:
    """Return parameters with spaces between them, so that they can be wrapped there."""
    return " ".join(f"{name}={value}" for name, value in params)
