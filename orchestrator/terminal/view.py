"""What a user is shown while something is in progress; what draws it is in `progress.py`, which is slow to import."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from orchestrator.model import Case, Target


class View:
    """A view that shows nothing; all others are made of it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def say(self, text: str) -> None:
        """Print a line that stays."""

    def preparing(self, version: str, text: str) -> None:
        """Show what is being done for a version; in a terminal, each text overwrites the one before."""

    def measuring(self, version: "Target", case: "Case", number: int) -> None:
        pass

    def round_done(self, number: int, most: int, cases: int, took_s: float, left_s: float) -> None:
        pass

    def look_done(self, number: int, new: Sequence[str], decided: int, comparisons: int) -> None:
        """Show which comparisons a look has decided, and how many of all are decided by now."""
