"""Runs work on several versions at once, without making Ctrl-C wait for it."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_parallel(function: Callable[[Item], Result], items: Sequence[Item], at_once: int | None = None) -> list[Result]:
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

    def work(index: int | None) -> None:
        while index is not None:
            try:
                results[index] = function(items[index])
            except BaseException as error:
                errors[index] = error
                over.set()
            with taking:
                index = None if over.is_set() else next(waiting, None)

    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(width)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        over.set()
    for index in sorted(errors):
        raise errors[index]
    return [results[index] for index in range(len(items))]
