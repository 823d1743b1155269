"""In which order a round visits the arms. Pure."""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from orchestrator.model import Case, Pair

Item = TypeVar("Item")


def group_linked(cases: Sequence[Case], pairs: Iterable[Pair]) -> tuple[tuple[Case, ...], ...]:
    """Group the cases that are compared with each other, directly or indirectly.

    Their arms run side by side in a round, like the versions of one case.
    """
    groups = {case.label: [case] for case in cases}
    for pair in pairs:
        group, other = (groups.get(label) for label, _ in pair.arms)
        if group is not None and other is not None and group is not other:
            group.extend(other)
            groups.update((case.label, group) for case in other)
    return tuple(tuple(group) for group in {id(group): group for group in groups.values()}.values())


def alternating(order: Sequence[Item], bursts: Callable[[Item], int]) -> list[Item]:
    """Spread each item's bursts evenly over the visit; items with equally many bursts go back and forth."""
    slots = [
        ((number + 0.5) / bursts(item), position if number % 2 == 0 else -position, item)
        for position, item in enumerate(order)
        for number in range(bursts(item))
    ]
    return [item for _, _, item in sorted(slots, key=lambda entry: entry[:2])]


def round_order(items: Sequence[Item], seed: int, case: str, round_number: int) -> list[Item]:
    """Return the order of a round: random, or in every second round the mirror of the round before.

    This way, each item is early as often as it is late.
    """
    draw = random.Random(f"{seed}/{case}/{(round_number + 1) // 2}")
    order = list(items)
    draw.shuffle(order)
    return order if round_number % 2 else order[::-1]
