"""Several at once: so many and no more, in their order, and nothing new is begun once something went wrong."""

import threading
import time

import pytest

from orchestrator.parallel import run_parallel


def test_results_come_in_the_order_of_the_items():
    assert run_parallel(lambda item: (time.sleep(0.02 * (3 - item)), item)[1], [0, 1, 2]) == [0, 1, 2]
    assert run_parallel(str, []) == []


def test_all_of_them_begin_at_once_unless_told_otherwise():
    together = threading.Barrier(5, timeout=10)
    assert sorted(run_parallel(lambda item: together.wait(), range(5))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_no_more_at_a_time_than_asked_for(at_once: int):
    going, most, lock = 0, 0, threading.Lock()

    def work(item: int) -> int:
        nonlocal going, most
        with lock:
            going += 1
            most = max(most, going)
        time.sleep(0.02)
        with lock:
            going -= 1
        return item * item

    assert run_parallel(work, range(8), at_once) == [item * item for item in range(8)]
    assert most == at_once


def test_the_first_error_is_raised_when_what_was_begun_has_ended_and_nothing_is_begun_after_it():
    ended: list[int] = []

    def work(item: int) -> None:
        if item == 1:
            raise ValueError(item)
        time.sleep(0.1)
        ended.append(item)

    with pytest.raises(ValueError, match="1"):
        run_parallel(work, range(6), 2)
    assert ended == [0]
