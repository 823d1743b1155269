"""Published statements, and the results that they expect of pairs and arms."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.model.cases import ArmKey, Case, Target
from orchestrator.model.pairs import Cases, Pair, TargetPair
from orchestrator.model.strict import STRICT

# An effect that starts with "not" makes a pair a control, which must not show the effect.
Effect = Literal[
    "slower", "faster", "more", "less", "same", "not slower", "not faster", "not more", "not less",
]  # fmt: skip
Winning = Literal["slower", "faster"]
# Results that are equal within tolerance count as equal.
Returned = Literal["equal", "differs"]
# These figures of one arm are medians over its rounds. A name ends with the unit if there is one.
ArmMetric = Literal[
    "traces", "traces_per_call", "memory_mb", "import_s", "build_s", "first_s", "time_s", "first_over_time",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """A statement about a pair: the result that a claim expects of it.

    `published` is the ratio that the source gives for this workload, as slower or faster. `read_as` is the ratio that
    words of the source such as "orders of magnitude" are read as. At most one of them is set. The pair's margin says
    how much of the effect must be observed or, for a control, what it must stay below.
    """

    __pydantic_config__ = STRICT

    pair: Pair
    effect: Effect
    published: float | None
    read_as: float | None
    # If set, the source lacks this comparison. A claim is open, and not refuted, if only such controls fail.
    ours: bool

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return (self.pair,)

    @property
    def arms(self) -> tuple[ArmKey, ...]:
        return self.pair.arms

    @property
    def is_control(self) -> bool:
        return self.effect.startswith("not ")


@dataclass(frozen=True, kw_only=True)
class CaseSet:
    """A statement about several cases together, each of which is a pair of versions.

    It limits how far the geometric mean of their ratios is from 1, or says that more of them are slower than faster, or
    the reverse.
    """

    __pydantic_config__ = STRICT

    pairs: tuple[Pair, ...]
    mean_within: float | None
    more_often: Winning | None

    @property
    def arms(self) -> tuple[ArmKey, ...]:
        return tuple(dict.fromkeys(arm for pair in self.pairs for arm in pair.arms))


@dataclass(frozen=True, kw_only=True)
class Part:
    """A statement about two pairs with one baseline: the first has a minimum part of the second's effect, in logs."""

    __pydantic_config__ = STRICT

    step: Pair
    whole: Pair
    at_least: float

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return (self.step, self.whole)

    @property
    def arms(self) -> tuple[ArmKey, ...]:
        return tuple(dict.fromkeys((*self.step.arms, *self.whole.arms)))


@dataclass(frozen=True, kw_only=True)
class ArmStatement:
    """A statement about one arm, which is compared with nothing."""

    __pydantic_config__ = STRICT

    arm: ArmKey

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return ()

    @property
    def arms(self) -> tuple[ArmKey, ...]:
        return (self.arm,)


@dataclass(frozen=True, kw_only=True)
class Bound(ArmStatement):
    """A statement about a figure of one arm; exactly one of the limits is set."""

    metric: ArmMetric
    at_least: float | None
    at_most: float | None


@dataclass(frozen=True, kw_only=True)
class Share(ArmStatement):
    """A statement about a Python function: it takes a published share of an arm's time, as a profile shows it."""

    function: str
    published: float


@dataclass(frozen=True, kw_only=True)
class Holds(ArmStatement):
    """A statement that an arm checks itself: its workload raises an AssertionError if it is false."""


@dataclass(frozen=True, kw_only=True)
class Returns:
    """A statement about what two versions of a case return: the same, or something else."""

    __pydantic_config__ = STRICT

    case: Case
    baseline: Target
    candidate: Target
    expected: Returned

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return ()

    @property
    def compared(self) -> TargetPair:
        return TargetPair(case=self.case, baseline=self.baseline, candidate=self.candidate)

    @property
    def arms(self) -> tuple[ArmKey, ...]:
        return self.compared.arms


Statement = Expectation | CaseSet | Part | Bound | Share | Holds | Returns


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published statement and its tests, of which the headline comes first."""

    __pydantic_config__ = STRICT

    name: str
    title: str
    source: str
    statement: str
    suite: str
    devices: tuple[str, ...]
    withdrawn: bool
    # The quote repeats the source word for word.
    quote: str
    # The source mentions these devices and systems.
    said_of: tuple[str, ...]
    # The claim names all of these cases.
    cases: Cases
    expectations: tuple[Expectation, ...]
    holds: tuple[ArmKey, ...]
    sets: tuple[CaseSet, ...]
    parts: tuple[Part, ...]
    bounds: tuple[Bound, ...]
    shares: tuple[Share, ...]
    returns: tuple[Returns, ...]
    # These are the claim's versions with changes, as users write targets.
    definitions: tuple[str, ...]

    @property
    def linked(self) -> tuple[tuple[ArmKey, ...], ...]:
        """The arms that each pair, or each statement without a pair, needs together."""
        alone = (statement.arms for statement in self.statements if not statement.pairs)
        return (*(pair.arms for pair in self.pairs), *alone)

    @property
    def statements(self) -> tuple[Statement, ...]:
        held = tuple(Holds(arm=arm) for arm in self.holds)
        return (*self.sets, *self.parts, *self.expectations, *self.returns, *self.bounds, *self.shares, *held)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        return tuple(dict.fromkeys(pair for statement in self.statements for pair in statement.pairs))

    @property
    def arms(self) -> tuple[ArmKey, ...]:
        """The names of all arms that must be measured."""
        return tuple(dict.fromkeys(arm for statement in self.statements for arm in statement.arms))

    @property
    def targets(self) -> tuple[Target, ...]:
        return tuple(dict.fromkeys(target for _, target in self.arms))
