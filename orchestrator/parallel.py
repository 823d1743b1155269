"""Runs work on several versions at once, without making Ctrl-C wait for it."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(function: Callable[[Item], Result], items: Sequence[Item], at_once: int | None = None) -> list[Result]:
    """Apply `function` to every item side by side, and return the results in the order of the items.

    The first exception is raised once all work that had begun has ended. With `at_once`, at most that many items are
    processed at a time, and none is begun after an exception.

    The threads are daemon threads, unlike those of the standard library's executors: even an interrupt waits for those.
    """
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    width = min(at_once or len(items), len(items))
    waiting = iter(range(width, len(items)))
    taking = threading.Lock()
    over = threading.Event()

    def work(place: int | None) -> None:
        while place is not None:
            try:
                results[place] = function(items[place])
            except BaseException as error:
                errors[place] = error
                over.set()
            with taking:
                place = None if over.is_set() else next(waiting, None)

    threads = [threading.Thread(target=work, args=(place,), daemon=True) for place in range(width)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        over.set()
    for place in sorted(errors):
        raise errors[place]
    return [results[place] for place in range(len(items))]
