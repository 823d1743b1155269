"""Work on several versions at once, that a Ctrl-C does not have to wait for."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """`function` of every item, in their order; the first exception is raised once all have ended.

    Daemon threads, which the executors of the standard library are not: those are waited for even by an interrupt.
    """
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}

    def one(place: int) -> None:
        try:
            results[place] = function(items[place])
        except BaseException as error:
            errors[place] = error

    threads = [threading.Thread(target=one, args=(place,), daemon=True) for place in range(len(items))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place in sorted(errors):
        raise errors[place]
    return [results[place] for place in range(len(items))]
