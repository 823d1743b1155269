"""A plot made of characters: ratios with their intervals on one log scale, one per line."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.model import ShownVerdict
from orchestrator.reports.columns import MARKS, ratio

# A scale shows at least this much on each side of its middle; otherwise noise would fill the line.
LEAST = math.log(1.1)
FEWEST_CELLS, MOST_CELLS = 12, 40
ONE, WHISKER, POINT, CUT_LOW, CUT_HIGH = "│", "─", "●", "◂", "▸"

# A span consists of a ratio and the bounds of its interval.
Span = tuple[float | None, float | None, float | None]


@dataclass(frozen=True)
class RatioScale:
    """A scale from `low` to `high`, both logarithms, over this many cells."""

    low: float
    high: float
    cells: int

    @classmethod
    def over(cls, spans: Iterable[Span], cells: int) -> "RatioScale":
        """Return a scale with room for every ratio, and for 1.

        Intervals that are far wider than the range of the ratios are cut off.
        """
        listed = [span for span in spans if span[0]]
        ratios = [0.0, *(math.log(value) for value, _, _ in listed if value)]
        low, high = min(ratios), max(ratios)
        reach = max(high - low, LEAST)
        bounds = [math.log(bound) for _, *both in listed for bound in both if bound]
        low = max(min([low, *bounds]), low - reach / 2)
        high = min(max([high, *bounds]), high + reach / 2)
        middle, half = (low + high) / 2, max((high - low) / 2, LEAST)
        return cls(middle - half, middle + half, cells)

    def cell_of(self, value: float) -> int:
        share = (math.log(value) - self.low) / (self.high - self.low)
        return min(max(round(share * (self.cells - 1)), 0), self.cells - 1)

    def header(self) -> str:
        """Return a line that marks 1 and both ends, as far as these labels do not overlap."""
        low, parity, high = ratio(math.exp(self.low)), "1x", ratio(math.exp(self.high))
        line = [" "] * self.cells
        parity_start = min(max(self.cell_of(1.0) - 1, 0), self.cells - len(parity))
        for start, text in ((parity_start, parity), (0, low), (self.cells - len(high), high)):
            if start >= 0 and not "".join(line[max(start - 1, 0) : start + len(text) + 1]).strip():
                line[start : start + len(text)] = text
        return "".join(line)

    def line(
        self, value: float | None, low: float | None, high: float | None, verdict: ShownVerdict | None = None
    ) -> str:
        cells = [" "] * self.cells
        cells[self.cell_of(1.0)] = ONE
        if value is None:
            return "".join(cells)
        if low is not None and high is not None:
            first, last = self.cell_of(low), self.cell_of(high)
            cells[first : last + 1] = WHISKER * (last + 1 - first)
            cells[first] = CUT_LOW if math.log(low) < self.low - 1e-9 else cells[first]
            cells[last] = CUT_HIGH if math.log(high) > self.high + 1e-9 else cells[last]
        cells[self.cell_of(value)] = MARKS[verdict] if verdict else POINT
        return "".join(cells)


def cells_for(width: int, others: Sequence[int]) -> int:
    """Return the number of cells left for the plot next to columns of these widths."""
    return min(max(width - 1 - sum(other + 2 for other in others), FEWEST_CELLS), MOST_CELLS)
