"""Views for tests: one that keeps its lines, and one that hands them to functions."""

from collections.abc import Callable

from orchestrator.terminal.view import View


class Heard(View):
    def __init__(self, lines: list[str] | None = None) -> None:
        self.lines: list[str] = [] if lines is None else lines

    def say(self, text: str) -> None:
        self.lines.append(text)


class Listener(View):
    """Hands the lines that stay to `say`, and what is being done for a version to `watch`."""

    def __init__(
        self, say: Callable[[str], object] = lambda text: None, watch: Callable[[str], object] = lambda text: None
    ) -> None:
        self._say = say
        self._watch = watch

    def say(self, text: str) -> None:
        self._say(text)

    def preparing(self, version: str, text: str) -> None:
        self._watch(text)
