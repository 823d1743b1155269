"""Counts of what a call does: unlike its time, they are the same on a busy machine."""
import gc
import sys


class PythonCalls:
    """The functions of Python that this thread calls while the counter is entered; None if the call took it away."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        # What a collection of garbage ends would be counted in one call and not in the next.
        self._collects = gc.isenabled()
        gc.disable()
        self._before = sys.getprofile()
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_):
        if sys.getprofile() != self._see:
            self.count = None
        sys.setprofile(self._before)
        if self._collects:
            gc.enable()

    def _see(self, frame, event, _):
        if event == "call" and frame.f_globals is not OWN:
            self.count += 1


# The counter sees itself leave.
OWN = globals()


def count_twice(call):
    """Return how many functions of Python a call runs, and how many the next one does, with what it returned."""
    counts, result = [], None
    for _ in range(2):
        # What ends with the last result is no part of this call.
        del result
        with PythonCalls() as seen:
            result = call()
        counts.append(seen.count)
    return counts, result
