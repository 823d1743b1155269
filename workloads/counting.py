"""Counts of what a call does: unlike its time, they are the same on a busy machine."""

import gc
import sys


class SteadyCounter:
    """A count without garbage collection, whose finalizers would be counted in one call and not in the next."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        self._collects = gc.isenabled()
        gc.disable()
        return self

    def __exit__(self, *_):
        if self._collects:
            gc.enable()


class PythonCalls(SteadyCounter):
    """The calls of Python functions that this thread makes inside the counter; None if the call removed the counter."""

    def __enter__(self):
        super().__enter__()
        self._before = sys.getprofile()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *raised):
        if sys.getprofile() != self._see:
            self.count = None
        sys.setprofile(self._before)
        super().__exit__(*raised)

    def _see(self, frame, event, _):
        if event == "call" and frame.f_globals is not OWN:
            self.count += 1


# The counter also sees its own exit, which does not count.
OWN = globals()


def count_twice(call, counter):
    """Return the counts of two calls, each by a new counter, and the result of the second call."""
    counts, result = [], None
    for _ in range(2):
        # Freeing the last result must not count as part of this call.
        del result
        with counter() as seen:
            result = call()
        counts.append(seen.count)
    return counts, result
