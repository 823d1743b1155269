"""Environment variables that one of the two targets sets, or sets to another value."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from orchestrator.catalog.targets import Changed
from orchestrator.catalog.version import FlavourName
from orchestrator.why.cause import Cause, End


def find_changed_variables(old: End, new: End, device: FlavourName) -> Iterator[Cause]:
    before, after = dict(old.changed.variables), dict(new.changed.variables)
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            shown = " -> ".join(values.get(name, "none") for values in (before, after))
            yield Cause(title=f"{name} {shown}", undo=set_variable(name, before.get(name)))


def set_variable(name: str, value: str | None) -> Callable[[Changed], Changed]:
    """Return the change to a target that sets a variable, or that removes it if the value is None."""

    def change(changed: Changed) -> Changed:
        others = tuple((other, text) for other, text in changed.variables if other != name)
        return replace(changed, variables=(*others, *([] if value is None else [(name, value)])))

    return change
