"""Time that a test makes pass, for runs that have a budget."""

from collections.abc import Callable

from tests.support.actors import Part, Stage
from tests.support.builders import NEW


def noisy(number: int) -> float:
    """Too noisy for any verdict: a factor of two and a half up and down."""
    return 10.0 * (2.5 if max(number, 1) % 2 else 0.4)


class Clock:
    """Time that passes only when a replicate is opened."""

    def __init__(self) -> None:
        self.now = 0.0

    def stage(
        self,
        seconds: dict[str, float | Callable[[int], float]],
        version: str = NEW,
        times: Callable[[int], float] = noisy,
    ) -> Stage:
        """What a visit of each case takes, or what it takes in each round.

        Unless others are given, its times scatter too much for a verdict.
        """
        stage = Stage()

        def part(each: float | Callable[[int], float]) -> Part:
            def ms(number: int) -> float:
                if stage.log[-1].kind == "open":
                    self.now += each(number) if callable(each) else each
                return times(number)

            return Part(ms)

        stage.parts.update({(name, version): part(each) for name, each in seconds.items()})
        return stage
