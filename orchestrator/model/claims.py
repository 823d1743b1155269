"""Published statements, and the results that they expect of pairs."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.model.cases import ArmKey, Target
from orchestrator.model.pairs import Cases, Pair
from orchestrator.model.strict import STRICT

Effect = Literal["slower", "faster", "more", "less", "same"]


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """One statement of a claim: the result that it expects of a pair.

    `published` is the ratio that the source gives for this workload, as slower or faster. `read_as` is what words
    of the source such as "orders of magnitude" are read as. At most one of them is set. The pair's margin says how
    much of it must be observed.
    """

    __pydantic_config__ = STRICT

    pair: Pair
    effect: Effect
    published: float | None
    # Runs of earlier releases have it in `published`.
    read_as: float | None = None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published statement and what tests it: expectations, the headline first, and arms that check themselves."""

    __pydantic_config__ = STRICT

    name: str
    title: str
    source: str
    statement: str
    suite: str
    devices: tuple[str, ...]
    withdrawn: bool
    # The devices and systems that the source speaks of; runs of earlier releases do not have them.
    said_of: tuple[str, ...] = ()
    # Every case that it names; runs of earlier releases have only their labels.
    cases: Cases = ()
    expectations: tuple[Expectation, ...]
    holds: tuple[ArmKey, ...]

    @property
    def arms(self) -> tuple[ArmKey, ...]:
        """The names of everything that must be measured."""
        named = [arm for expectation in self.expectations for arm in expectation.pair.arms]
        return tuple(dict.fromkeys((*named, *self.holds)))

    @property
    def versions(self) -> tuple[Target, ...]:
        return tuple(dict.fromkeys(version for _, version in self.arms))
