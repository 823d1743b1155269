"""Counts of what a call does: unlike its time, they are the same on a busy machine."""
import gc
import sys


class Steady:
    """A count during which no garbage is collected: what that ends would be counted in one call and not in the next."""

    def __init__(self):
        self.count = 0

    def __enter__(self):
        self._collects = gc.isenabled()
        gc.disable()
        return self

    def __exit__(self, *_):
        if self._collects:
            gc.enable()


class PythonCalls(Steady):
    """The functions of Python that this thread calls while the counter is entered; None if the call took it away."""

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


# The counter sees itself leave.
OWN = globals()


def count_twice(call, counter):
    """Return what a new counter counts in a call, and another one in the next call, with what the call returned."""
    counts, result = [], None
    for _ in range(2):
        # What ends with the last result is no part of this call.
        del result
        with counter() as seen:
            result = call()
        counts.append(seen.count)
    return counts, result
