"""The Python of the two targets."""

from collections.abc import Iterator
from dataclasses import replace

from orchestrator.catalog.version import FlavourName
from orchestrator.why.cause import Cause, End


def find_changed_python(old: End, new: End, device: FlavourName) -> Iterator[Cause]:
    before = ".".join(old.python.split(".")[:2])
    after = ".".join(new.python.split(".")[:2])
    if before and after and before != after and not new.is_image:
        yield Cause(title=f"Python {before} -> {after}", undo=lambda changed: replace(changed, python=before))
