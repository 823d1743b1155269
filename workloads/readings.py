"""What a replicate holds and traces: after its first calls, as many in every arm, and by how much each later call adds."""
import contextlib
import itertools
import os
import resource

# Calls after which every arm's memory and traces are read: a replicate makes at least as many. A fast arm makes more
# calls than a slow one in the same time, so that what all of them did could not be compared.
EARLY_CALLS = 5


def peak_kb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident_kb():
    """What is in memory of this process now, and what of that are pages of files, which the kernel reads again at need."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status if line.startswith(("VmRSS:", "RssFile:")))
        return tuple(int(fields.get(name, "0").split()[0]) for name in ("VmRSS", "RssFile"))
    # Another system than Linux.
    return 0, 0


class Readings:
    """What was read of a growing figure after some calls, from which follows by how much a call lets it grow."""

    def __init__(self):
        self.points = []

    def add(self, count, figure):
        self.points.append((count, figure))

    def slope(self):
        """The median slope between any two readings, so that a jump at the start is no growth; None without any."""
        slopes = sorted(
            (later[1] - earlier[1]) / (later[0] - earlier[0])
            for earlier, later in itertools.combinations(self.points, 2)
            if later[0] > earlier[0]
        )
        return (slopes[(len(slopes) - 1) // 2] + slopes[len(slopes) // 2]) / 2 if slopes else None

    def calls(self):
        """The calls between the first and the last reading."""
        return self.points[-1][0] - self.points[0][0]


class Memory:
    """What this process holds: at its most after the first calls, and by how much it grows with each call.

    The pages of files that it maps are left out of the first. TensorFlow's libraries are files, and how much of them is
    mapped around what a process touches depends on how the kernel happens to hold them: a process of 2.13 had 48 MiB of
    them, or 111 MiB if they had just been installed.
    """

    def __init__(self):
        self.peak_kb = None
        self.readings = Readings()
        self._most_kb = 0
        self._highest_kb = 0
        self._files_kb = 0

    def called(self, count):
        """Takes note of a call that has ended, the `count`-th; the build is number 0."""
        if self.peak_kb is not None:
            return
        peak, (resident, of_files) = peak_kb(), resident_kb()
        # The kernel knows the peak of all pages. Those of files grew up to now, unless it has taken some back since.
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
            # Another system than Linux.
            pass

    def growth(self):
        """The bytes that a call adds, and the calls between the readings that say so."""
        slope = self.readings.slope()
        return (None, None) if slope is None else (int(round(slope)), self.readings.calls())


class Tracing:
    """The Python functions that were traced: by the first calls, as many in every arm, and by each later one."""

    def __init__(self, traces):
        self.traces = traces
        self.early = None
        self.readings = Readings()

    def called(self, count):
        """Takes note of a call that has ended, the `count`-th."""
        if self.early is None and count >= EARLY_CALLS:
            self.early = self.traces.count
            self.read(count)

    def read(self, count):
        if self.early is not None:
            self.readings.add(count, self.traces.count)

    def later(self):
        """The functions that a thousand later calls trace."""
        slope = self.readings.slope()
        return None if slope is None else int(round(1000 * slope))
