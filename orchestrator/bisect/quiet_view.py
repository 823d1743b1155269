"""Reports what the runs of a search have in common once instead of in every step."""

from collections.abc import Sequence

from orchestrator.model import Case, Target
from orchestrator.terminal.progress import Quiet, View


class Once(Quiet):
    """A view that shows a line only the first time: the engine, a version that is ready, or an unchanged plan."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._view.say(text)

    def preparing(self, version: str, text: str) -> None:
        self._view.preparing(version, text)

    def measuring(self, version: Target, case: Case, number: int) -> None:
        self._view.measuring(version, case, number)

    def round_done(self, number: int, most: int, cases: int, took_s: float, left_s: float) -> None:
        self._view.round_done(number, most, cases, took_s, left_s)

    def look_done(self, number: int, new: Sequence[str], decided: int, comparisons: int) -> None:
        self._view.look_done(number, new, decided, comparisons)
