"""The difference of two arms and the verdict on it, which comparisons, changes and findings have in common."""

import math
from dataclasses import dataclass
from typing import Literal

VerdictName = Literal["faster", "slower", "same", "inconclusive"]
# A certain difference is `slight` inside the margin, `beyond` if its whole interval is outside, and `clear` otherwise.
Size = Literal["slight", "clear", "beyond"]
# Reports show these verdicts.
ShownVerdict = Literal["faster", "slower", "slightly faster", "slightly slower", "same", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class Magnitude:
    """A judged difference with its interval: a ratio or, for a metric of differences, a difference in its unit."""

    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    verdict: VerdictName = "inconclusive"
    reason: str = ""
    # Only a certain difference has a size. A slight one has the verdict `same`.
    size: Size | None = None

    @property
    def estimate(self) -> float | None:
        """The estimate on the scale of its metric, where 0 is no difference: the log of a ratio, or a difference."""
        return (math.log(self.ratio) if self.ratio else None) if self.difference is None else self.difference

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the interval on the scale of the estimate, or None if there are too few rounds."""
        if self.difference_low is not None and self.difference_high is not None:
            return self.difference_low, self.difference_high
        return (math.log(self.ci_low), math.log(self.ci_high)) if self.ci_low and self.ci_high else None

    @property
    def distance(self) -> float:
        """How far the estimate is from no difference."""
        return abs(self.estimate or 0.0)

    @property
    def shown_verdict(self) -> ShownVerdict:
        """The verdict in words: a slight difference is named, although its verdict is `same`."""
        if self.size != "slight" or self.estimate is None:
            return self.verdict
        return "slightly slower" if self.estimate > 0 else "slightly faster"


@dataclass(frozen=True, kw_only=True)
class ReportRow(Magnitude):
    """A judged difference that is one of many in a report.

    `p` is the probability, over all looks, of a difference at least this large if there were none; it is None if there
    are no rounds. With `row_only`, the difference is certain for its row, but chance may explain it among all
    comparisons of the report.
    """

    p: float | None = None
    row_only: bool = False

    @property
    def has_interval(self) -> bool:
        """Whether there are enough rounds to judge it."""
        return self.ends is not None

    @property
    def report_verdict(self) -> VerdictName:
        """The verdict for sentences about the whole report."""
        return "inconclusive" if self.row_only and self.verdict != "same" else self.verdict
