"""Finds the series that changed: which to measure again tonight, and which steps to report.

The value of a series on one night compares the version with the mean of the two measurements of the reference, where
the control arm was measured. Its variance has two parts: that of its rounds, which more rounds reduce, and that of the
night, which they do not. Steps are searched for in the order in which the nights came in, the split with the largest t
first, so that later nights cannot hide what was found on an earlier one. The limits are calibrated by `make bench
ARGS=alarms`.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from orchestrator.history.alarms.noise_model import Nights, measure_wander, nights_of
from orchestrator.history.model import Change, Key, Segment
from orchestrator.model import Target
from orchestrator.stats.comparisons import of_many
from orchestrator.stats.paired import quantile, two_sided_p

# Each confirmation of a night measures this many times the rounds of the screen, until the series is settled.
CONFIRM_TIMES = (1, 1, 2, 2, 3, 3)
# At most 1 / MOST_AGAIN of all cells are measured again, or FEWEST_AGAIN if that is more: if everything seems to move,
# TensorFlow is not the cause.
MOST_AGAIN, FEWEST_AGAIN = 3, 4
# A series with fewer nights before tonight is not judged.
MIN_NIGHTS = 5
# A step that does not show in this many nights will not show in more of them either.
LONGEST = 60
# A further step needs only this many nights after the last one, because more is known by then.
MIN_AGAIN = 2
# A smaller step is not worth a user's time.
MIN_SIZE = math.log(1.02)
# A step is reported if the probability of one as large by chance, at one split of one night, is at most this.
LIMIT = 2.5e-6
ALPHA = 0.05
# A step is news for this many nights, so that it is not lost if a nightly run ended before judging it.
FRESH = 2
# At most this share of the suspects that are found by tonight's value alone may be due to chance.
FALSE_SUSPECTS = 0.05
# A series is also a suspect if a step of at least the size SOUGHT adds HINT to the log likelihood of its nights.
# Unlike a t, this hint falls at once if a confirmation shows no step, and stays if it shows one.
SOUGHT = math.log(1.03)
HINT = 2.5
# A series that was confirmed tonight or the night before needs only this hint to be confirmed again.
AGAIN = 1.5
# A series that was confirmed on MOST_CONFIRMED of the last REMEMBERED nights, and not reported, is only screened.
MOST_CONFIRMED, REMEMBERED = 7, 28

Floats = NDArray[np.float64]
# The keys are host and metric.
Wander = Mapping[tuple[str, str], float]


def suspects(cells: Mapping[Key, Segment]) -> tuple[Key, ...]:
    """Return the series to measure again tonight, most suspicious first.

    Tonight is the last night of each segment.
    """
    wander = find_wander(cells)
    doubts = {
        key: doubt
        for key, cell in cells.items()
        if not key.is_control and (doubt := _assess_suspicion(cell, wander[key.alike]))
    }
    chances = of_many([doubt.p for doubt in doubts.values()])
    hints = {
        key: doubt.hint
        for (key, doubt), chance in zip(doubts.items(), chances, strict=True)
        if chance <= FALSE_SUSPECTS or doubt.hint >= (AGAIN if doubt.again else HINT)
    }
    return _worst_first(hints)


def limit_suspects(suspects: Sequence[Key], cells: int) -> Sequence[Key]:
    """Return as many suspects as a nightly run of this many cells (a case and a version) can measure again."""
    chosen = list_cells(suspects)[: max(FEWEST_AGAIN, cells // MOST_AGAIN)]
    return [key for key in suspects if (key.case, key.target) in chosen]


def list_cells(keys: Iterable[Key]) -> tuple[tuple[str, Target], ...]:
    """Return each pair of case and version once, although it may have a series for each metric."""
    return tuple(dict.fromkeys((key.case, key.target) for key in keys))


def find_unsettled(cells: Mapping[Key, Segment], wander: Wander) -> tuple[Key, ...]:
    """Return the series that tonight's confirmations neither reported nor cleared, most suspicious first.

    They are worth another confirmation.
    """
    doubts = {
        key: doubt
        for key, cell in cells.items()
        if not find_new_step(cell, wander[key.alike]) and (doubt := _assess_suspicion(cell, wander[key.alike]))
    }
    return _worst_first({key: doubt.hint for key, doubt in doubts.items() if doubt.hint >= AGAIN})


def _worst_first(hints: Mapping[Key, float]) -> tuple[Key, ...]:
    return tuple(sorted(hints, key=lambda key: (-hints[key], key)))


def changes(segment: Segment, wander: float = 0.0) -> tuple[Change, ...]:
    """Return the steps in a segment, oldest first; `wander` is the variance by which levels wander."""
    nights = nights_of(segment, wander)
    if len(nights.effects) <= MIN_NIGHTS:
        return ()
    return _build_changes(nights, _starts(nights, len(nights.effects)))


def find_new_step(segment: Segment, wander: float = 0.0) -> tuple[Change, ...]:
    """Return the step that the last nights revealed, if any.

    Only this step is worth an alarm. Older ones have already been reported, and a step that becomes a little likelier
    with today's knowledge of the noise was no step when it was new. One that was found when it still seemed too small
    is revealed by the night that shows its size.
    """
    nights = nights_of(segment, wander)
    count = len(nights.effects)
    if count <= MIN_NIGHTS:
        return ()
    starts, before = _starts(nights, count), _starts(nights, count - FRESH)
    found = _build_changes(nights, starts)
    is_new = starts != before or len(found) > len(_keep_confirmed(nights.until(count - FRESH), before[1:]))
    return found[-1:] if is_new else ()


def _build_changes(nights: Nights, starts: list[int]) -> tuple[Change, ...]:
    return tuple(_change(nights, *part) for part in _parts(nights, _keep_confirmed(nights, starts[1:])))


@dataclass(frozen=True)
class _Suspicion:
    # The p-value is that of tonight's value alone; the hint is the log likelihood ratio of a step.
    p: float
    hint: float
    # This is true if the night before was also confirmed.
    again: bool


def _assess_suspicion(segment: Segment, wander: float) -> _Suspicion | None:
    nights = nights_of(segment, wander)
    count = len(nights.effects)
    if count <= MIN_NIGHTS:
        return None
    # Only steps that were known before tonight count, so that a step that tonight proves is also confirmed.
    start = _starts(nights, count - 1)[-1]
    if count - start <= MIN_AGAIN:
        return None
    least = MIN_AGAIN if start else MIN_NIGHTS
    t, size = map(np.abs, _last_splits(nights, start, count, least))
    precision = np.divide(t, size, out=np.zeros_like(t), where=size > 0) ** 2
    sought = np.maximum(size, SOUGHT)
    likelier = precision * sought * (size - sought / 2)
    # If a step is too small for an alarm, more rounds would only show how small it is.
    likelier[size + np.divide(size, t, out=np.zeros_like(t), where=t > 0) < MIN_SIZE] = 0.0
    if nights.sure[-1 - REMEMBERED : -1].sum() >= MOST_CONFIRMED:
        likelier[:] = 0.0
    return _Suspicion(two_sided_p(float(t[-1]), nights.freedom), float(likelier.max()), bool(nights.sure[-2]))


def find_wander(cells: Mapping[Key, Segment]) -> Wander:
    """Return the variance by which levels wander from night to night, over all series of a machine and metric.

    One series has too few nights to show this, and in most series the rounds vary more.
    """
    together: dict[tuple[str, str], list[Segment]] = defaultdict(list)
    for key, cell in cells.items():
        if not key.is_control:
            together[key.alike].append(cell)
    return {alike: measure_wander(segments) for alike, segments in together.items()}


def _starts(nights: Nights, end: int) -> list[int]:
    """Return the start of the series, and the start of each step that was found as the nights came in."""
    limit = quantile(1 - LIMIT / 2, nights.freedom)
    starts, least = [0], MIN_NIGHTS
    while end - starts[-1] > least:
        t, size = _splits(nights, starts[-1], end, least)
        scores = np.where(np.abs(size) >= MIN_SIZE, np.abs(t), 0.0)
        # A step that fits best on the last night alone counts only if that night was confirmed.
        best = scores.argmax(axis=1)
        alone = best == LONGEST - 1
        scores[alone & ~nights.sure[starts[-1] + least : end]] = 0.0
        rows = np.flatnonzero((scores > limit).any(axis=1))
        if not len(rows):
            break
        row = int(rows[0])
        starts.append(starts[-1] + least + row + int(best[row]) - (LONGEST - 1))
        least = MIN_AGAIN
    return starts


def _splits(nights: Nights, start: int, end: int, least: int) -> tuple[Floats, Floats]:
    """Return the t and the size of each possible step.

    There is one row for each night as the last one. The last column is for a step on that night, the one before it for
    a step one night earlier. A step with fewer than `least` nights before it has a t of zero.
    """
    weights = np.cumsum(nights.weights[start:end])
    sums = np.cumsum((nights.weights * nights.effects)[start:end])
    means = sums / weights
    early = np.zeros(LONGEST + least - 2)
    before, sums_before, means_before = (
        sliding_window_view(np.concatenate((early, column[least - 1 : -1])), LONGEST)[least - 1 :]
        for column in (weights, sums, means)
    )
    last = weights[least:, None]
    after = last - before
    size = (sums[least:, None] - sums_before) / after - means_before
    count_after = np.arange(LONGEST, 0.0, -1)
    count_before = np.maximum(np.arange(least + 1.0, end - start + 1)[:, None] - count_after, 1.0)
    return _scale(nights, size, (before, after), (count_before, count_after)), size


def _last_splits(nights: Nights, start: int, end: int, least: int) -> tuple[Floats, Floats]:
    """Return the t and the size of each possible step as seen from the last night, however long ago the step was."""
    weights = np.cumsum(nights.weights[start:end])
    sums = np.cumsum((nights.weights * nights.effects)[start:end])
    before, last = weights[least - 1 : -1], weights[-1]
    size = (sums[-1] - sums[least - 1 : -1]) / (last - before) - sums[least - 1 : -1] / before
    count = np.arange(float(least), end - start)
    return _scale(nights, size, (before, last - before), (count, end - start - count)), size


def _scale(nights: Nights, size: Floats, weights: tuple[Floats, Floats], counts: tuple[Floats, Floats]) -> Floats:
    """Return the t of steps of these sizes between two parts of the nights, which have these weights and lengths."""
    (before, after), (wider_before, wider_after) = weights, map(nights.widening, counts)
    return size * np.sqrt(after * before / (wider_before * after + wider_after * before))


def _keep_confirmed(nights: Nights, starts: list[int]) -> list[int]:
    """Return the steps that all nights on both sides confirm, each where it fits them best."""
    limit = quantile(1 - LIMIT / 2, nights.freedom)
    while starts:
        edges = [0, *starts, len(nights.effects)]
        for index in range(1, len(edges) - 1):
            first, last = edges[index - 1], edges[index + 1]
            t, _ = _last_splits(nights, first, last, 1)
            edges[index] = first + 1 + int(np.abs(t).argmax())
        starts = edges[1:-1]
        steps = [_step(nights, *part) for part in _parts(nights, starts)]
        weakest = min(range(len(steps)), key=lambda index: abs(steps[index].t))
        small = [index for index, step in enumerate(steps) if abs(step.size) < MIN_SIZE]
        if starts[-1] == len(nights.effects) - 1 and not nights.sure[-1]:
            del starts[-1]
        elif abs(steps[weakest].t) <= limit:
            del starts[weakest]
        elif small:
            del starts[small[0]]
        else:
            break
    return starts


def _parts(nights: Nights, starts: list[int]) -> list[tuple[int, int, int]]:
    edges = [0, *starts, len(nights.effects)]
    return [
        (before, first, last)
        for (before, first), (_, last) in zip(pairwise(edges), list(pairwise(edges))[1:], strict=False)
    ]


@dataclass(frozen=True)
class _Step:
    before: float
    after: float
    error: float

    @property
    def size(self) -> float:
        return self.after - self.before

    @property
    def t(self) -> float:
        return self.size / self.error


def _step(nights: Nights, begin: int, first: int, end: int) -> _Step:
    earlier, later = nights.weights[begin:first], nights.weights[first:end]
    wider = nights.widening(np.array([float(first - begin), float(end - first)]))
    return _Step(
        before=float(np.average(nights.effects[begin:first], weights=earlier)),
        after=float(np.average(nights.effects[first:end], weights=later)),
        error=math.sqrt(float(wider[0] / earlier.sum() + wider[1] / later.sum())),
    )


def _change(nights: Nights, begin: int, first: int, end: int) -> Change:
    step = _step(nights, begin, first, end)
    width = quantile(1 - ALPHA / 2, nights.freedom) * step.error
    return Change(
        first=nights.dates[first],
        last=nights.dates[first - 1],
        before=math.exp(step.before),
        after=math.exp(step.after),
        ratio=math.exp(step.size),
        ci_low=math.exp(step.size - width),
        ci_high=math.exp(step.size + width),
        # The p-value is multiplied by the number of nights on which the step could have begun.
        p=min(1.0, (end - begin - 1) * two_sided_p(step.t, nights.freedom)),
    )
