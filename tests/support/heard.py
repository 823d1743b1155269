"""Views for tests: two record their lines and rounds, and one calls functions with them."""

from collections.abc import Callable

from orchestrator.terminal.view import RoundDone, View


class Heard(View):
    def __init__(self, lines: list[str] | None = None) -> None:
        self.lines: list[str] = [] if lines is None else lines

    def say(self, text: str) -> None:
        self.lines.append(text)


class Told(Heard):
    """Keeps its lines and its rounds."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds: list[tuple[int, int]] = []
        self.left_s: list[float] = []

    def round_done(self, done: RoundDone) -> None:
        self.rounds.append((done.number, done.cases))
        self.left_s.append(done.left_s)


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
