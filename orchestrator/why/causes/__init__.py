"""The kinds of causes: each has a file here, and a line in KINDS."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from orchestrator.catalog.version import FlavourName
from orchestrator.why.cause import Cause, End
from orchestrator.why.causes import code, defaults, keras, packages, python, variables


@dataclass(frozen=True)
class CauseKind:
    """A kind of causes: how they are found, and what several of them are called."""

    find: Callable[[End, End, FlavourName], Iterable[Cause]]
    plural: str


# The order is that of a ladder, from the old target to the new one. TensorFlow itself comes before them.
KINDS = {
    "default": CauseKind(defaults.find_changed_defaults, "defaults"),
    "variable": CauseKind(variables.find_changed_variables, "variables"),
    "package": CauseKind(packages.find_changed_packages, "packages"),
    "Python": CauseKind(python.find_changed_python, "Pythons"),
    "code": CauseKind(code.find_changed_code, "revisions"),
    "Keras": CauseKind(keras.find_changed_keras, "releases of Keras"),
}


def find_causes(old: End, new: End, device: FlavourName) -> dict[str, tuple[Cause, ...]]:
    """Return what two targets differ in apart from TensorFlow, by kind and in the order of a ladder."""
    found = {name: tuple(kind.find(old, new, device)) for name, kind in KINDS.items()}
    return {name: causes for name, causes in found.items() if causes}
