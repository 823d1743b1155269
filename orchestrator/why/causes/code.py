"""The revision of the user's own code."""

from collections.abc import Iterator
from dataclasses import replace

from orchestrator.catalog.version import FlavourName
from orchestrator.why.cause import Cause, End

AS_IT_IS = "as it is"


def find_changed_code(old: End, new: End, device: FlavourName) -> Iterator[Cause]:
    before, after = old.changed, new.changed
    if before.commit != after.commit:
        title = f"your code {before.revision or AS_IT_IS} -> {after.revision or AS_IT_IS}"
        yield Cause(
            title=title,
            undo=lambda changed: replace(changed, revision=before.revision, commit=before.commit),
        )
