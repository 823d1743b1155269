"""The memory and the traces of a replicate after its first calls, and by how much they grow with each later call."""

import contextlib
import itertools
import os
import resource

# Memory and traces are read after this many calls, because a replicate makes at least as many. A fast arm makes more
# calls than a slow one in the same time, so readings after all calls could not be compared.
EARLY_CALLS = 5


def peak_kb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident_kb():
    """Return how much of this process is in memory, and how much of that belongs to mapped files."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status if line.startswith(("VmRSS:", "RssFile:")))
        return tuple(int(fields.get(name, "0").split()[0]) for name in ("VmRSS", "RssFile"))
    # This system is not Linux.
    return 0, 0


class Readings:
    """The readings of a figure after some calls, which show how much it grows with each call."""

    def __init__(self):
        self.points = []

    def add(self, count, figure):
        self.points.append((count, figure))

    def slope(self):
        """Return the median slope between any two readings, or None; a jump at the start thus counts as no growth."""
        slopes = sorted(
            (later[1] - earlier[1]) / (later[0] - earlier[0])
            for earlier, later in itertools.combinations(self.points, 2)
            if later[0] > earlier[0]
        )
        return (slopes[(len(slopes) - 1) // 2] + slopes[len(slopes) // 2]) / 2 if slopes else None

    def calls(self):
        """Return the number of calls between the first and the last reading."""
        return self.points[-1][0] - self.points[0][0]


class Memory:
    """The memory of this process: its peak up to the end of the first calls, and how much it grows with each call.

    The peak leaves out the pages of mapped files. TensorFlow's libraries are such files, and how many of their pages
    are mapped depends on how the kernel happens to hold them: a process of 2.13 had 48 MiB, or 111 MiB if they had just
    been installed.
    """

    def __init__(self):
        self.peak_kb = None
        self.readings = Readings()
        self._most_kb = 0
        self._highest_kb = 0
        self._files_kb = 0

    def called(self, count):
        """Record that call number `count` has ended; the build is number 0."""
        if self.peak_kb is not None:
            return
        peak, (resident, of_files) = peak_kb(), resident_kb()
        # The kernel knows only the peak of all pages. It includes as many pages of files as now or, if the kernel took
        # some of them back since, as many as before.
        if peak > self._highest_kb:
            self._most_kb = max(self._most_kb, peak - max(of_files, self._files_kb))
        self._most_kb = max(self._most_kb, resident - of_files)
        self._highest_kb, self._files_kb = peak, of_files
        if count >= EARLY_CALLS:
            self.peak_kb = self._most_kb

    def read(self, count):
        try:
            with open("/proc/self/statm") as statm:
                self.readings.add(count, int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        except (OSError, IndexError, ValueError):
            # This system is not Linux.
            pass

    def growth(self):
        """Return the bytes that a call adds, and the number of calls between the readings that show it."""
        slope = self.readings.slope()
        return (None, None) if slope is None else (int(round(slope)), self.readings.calls())


class Tracing:
    """The number of Python functions that the first calls trace, and that later calls trace, if they are counted."""

    def __init__(self, traces):
        self.traces = traces
        self.early = None
        self.readings = Readings()

    def called(self, count):
        """Record that call number `count` has ended."""
        if self.traces and self.early is None and count >= EARLY_CALLS:
            self.early = self.traces.count
            self.read(count)

    def read(self, count):
        if self.early is not None:
            self.readings.add(count, self.traces.count)

    def later(self):
        """Return the number of functions that a thousand later calls trace."""
        slope = self.readings.slope()
        return None if slope is None else int(round(1000 * slope))
