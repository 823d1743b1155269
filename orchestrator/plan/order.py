"""The order in which a round visits the arms, and the seeds of rounds, as pure functions."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from orchestrator.model import Arm, ArmKey, Pair

Item = TypeVar("Item")
# numpy, TensorFlow and Python's hashes accept seeds below this.
SEEDS = 2**31


def seed_of_round(seed: int, number: int) -> int:
    """Return the seed of a round, derived from that of the run; the pilot has that of the first round.

    Seeds change so that a result that depends on them also differs between rounds, and not only between versions, whose
    generators draw different numbers from one seed. The same holds for the hash seed of a worker.
    """
    return (seed + max(number - 1, 0)) % SEEDS


def divide_sittings(
    order: Sequence[Arm], pairs: Iterable[Pair], fits: Callable[[Iterable[ArmKey]], bool]
) -> list[list[Arm]]:
    """Divide the arms of a visit into sittings, in which all arms are open at once, if not all of them fit into one.

    The arms of a pair are together in at least one sitting, so an arm that many are compared with, such as the common
    baseline, is in several. Which arms share a sitting does not depend on the order, but the sittings and
    the arms in them follow it.
    """
    places = {arm.key: place for place, arm in enumerate(order)}
    if fits(places):
        return [list(order)]
    # A case in all versions stays together with the arms that it is compared with, if they fit.
    blocks: dict[str, list[tuple[ArmKey, ArmKey]]] = defaultdict(list)
    for pair in pairs:
        baseline, candidate = pair.arms
        if baseline in places and candidate in places:
            blocks[candidate.case].append((baseline, candidate))
    sittings: list[set[ArmKey]] = [set()]
    for block in blocks.values():
        together = {arm for pair in block for arm in pair}
        for arms in [together] if fits(together) else map(set, block):
            _seat(sittings, arms, fits)
    for arm in sorted(places.keys() - set().union(*sittings), key=lambda arm: (arm.case, str(arm.target))):
        _seat(sittings, {arm}, fits)
    seated = [sorted(sitting, key=places.__getitem__) for sitting in sittings]
    seated.sort(key=lambda sitting: sum(map(places.__getitem__, sitting)) / len(sitting))
    return [[order[places[key]] for key in sitting] for sitting in seated]


def _seat(sittings: list[set[ArmKey]], arms: set[ArmKey], fits: Callable[[Iterable[ArmKey]], bool]) -> None:
    """Add arms to the last sitting if they fit, or begin another."""
    if sittings[-1] and not fits(sittings[-1] | arms):
        sittings.append(set())
    sittings[-1] |= arms


def interleave(order: Sequence[Item], bursts: Callable[[Item], int]) -> list[Item]:
    """Spread each item's bursts evenly over the visit; items with equally many bursts take turns in the same order.

    Before each of its bursts, an item then waits for one burst of every other item. If the order were reversed after
    each turn, the last item would make two bursts in a row, and would seem faster because its data is still in the
    caches.
    """
    slots = [
        ((number + 0.5) / bursts(item), position, item)
        for position, item in enumerate(order)
        for number in range(bursts(item))
    ]
    return [item for _, _, item in sorted(slots, key=lambda entry: entry[:2])]


def visit_order(items: Sequence[Item], seed: int, case: str, visit: int) -> list[Item]:
    """Return the order of a visit; the visits of a case are counted from 0 over all rounds.

    Every second order is the mirror of the one before it. In as many visits as there are items, or twice as many if
    their number is odd, each item has each place equally often, and follows each other item equally often: a design
    of Williams. Chance decides which item has which role in it.
    """
    count = len(items)
    if count < 2:
        return list(items)
    design, number = divmod(visit, count if count % 2 == 0 else 2 * count)
    drawn = random.Random(f"{seed}/{case}/{design}").sample(items, count)
    shift, is_mirrored = divmod(number, 2)
    # The roles of the first order are 0, 1, -1, 2, -2 and so on.
    order = [drawn[((place + 1) // 2 * (1 if place % 2 else -1) + shift) % count] for place in range(count)]
    return order[::-1] if is_mirrored else order
