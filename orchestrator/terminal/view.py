"""What a user is shown while something is in progress; what draws it is in `progress.py`, which is slow to import."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from orchestrator.model import Case, Evaluation, Target


@dataclass(frozen=True, kw_only=True)
class RoundDone:
    """A round that has ended, and what follows it."""

    number: int
    most: int
    cases: int
    took_s: float
    # This is an upper limit: cases leave the rounds as their verdicts come in.
    left_s: float
    # The next round after which the run is judged, how long it takes until then, and the smallest difference that it
    # typically shows. Each is None if it is unknown, or if there is no further look.
    next_look: int | None = None
    next_s: float | None = None
    shows: float | None = None


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

    # Whether `show_table` draws what was measured so far: judging it takes time between two rounds.
    draws_tables = False

    def round_done(self, done: RoundDone) -> None:
        pass

    def show_table(self, evaluation: "Evaluation") -> None:
        """Show what the rounds until now say."""

    def look_done(self, number: int, new: Sequence[str], decided: int, comparisons: int) -> None:
        """Show which comparisons a look has decided, and how many of all are decided by now."""
