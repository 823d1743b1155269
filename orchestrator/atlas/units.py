"""What an atlas measures together: a release, the one before it and the reference, in the same rounds. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from orchestrator.model import STRICT


@dataclass(frozen=True, kw_only=True)
class AtlasUnit:
    """Targets that are measured in the same rounds, each compared with the one before it.

    `has_step` says that the second against the first is a step from release to release, and `has_level` that the last,
    which is the reference, shows the level of the one before it.
    """

    __pydantic_config__ = STRICT

    # This is the name of the folder of its run.
    name: Annotated[str, Field(pattern=r"^\d{2,4}$")]
    targets: tuple[str, ...]
    has_step: bool
    has_level: bool


def make_units(releases: Sequence[str], against: str = "") -> tuple[AtlasUnit, ...]:
    """Return the units of these releases, the oldest first; levels are against the newest if no other is named."""
    reference = against or releases[-1]
    steps = [(older, newer) if newer == reference else (older, newer, reference) for older, newer in pairwise(releases)]
    # The first release has no predecessor, so its level takes a unit. A step to the reference has no third target; with
    # two releases alone, it shows the level of the first.
    is_alone = len(steps) == 1 and reference == releases[-1]
    targets = steps if is_alone else [(releases[0], reference), *steps]
    return tuple(
        AtlasUnit(
            name=f"{number:02}",
            targets=each,
            has_step=number > 0 or is_alone,
            has_level=number == 0 or len(each) > 2,
        )
        for number, each in enumerate(targets)
    )


def order_units(units: Sequence[AtlasUnit], rounds: dict[str, int], done: set[str]) -> tuple[AtlasUnit, ...]:
    """Return the units that are open: those without a round first, then those with the fewest."""
    still = [unit for unit in units if unit.name not in done]
    return tuple(sorted(still, key=lambda unit: rounds.get(unit.name, 0)))
