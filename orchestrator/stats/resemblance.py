"""The correlation of comparisons that share their rounds."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Any two comparisons with only two rounds deviate either together or in opposite directions.
FEWEST_ROUNDS = 3
# A sample is enough if there are more rows, because each row is compared with each.
MOST_ROWS = 400


def find_common_share(comparisons: Sequence[Sequence[float]]) -> float:
    """Return the mean square of the correlations of these comparisons, as far as chance does not explain it."""
    telling = [row for row in comparisons if len(row) >= FEWEST_ROUNDS and max(row) > min(row)]
    rows = [np.array(row) for row in telling[:: math.ceil(len(telling) / MOST_ROWS) or 1]]
    if len(rows) < 2:
        return 0.0
    lengths = np.array([len(row) for row in rows], dtype=float)
    strays = np.zeros((len(rows), max(map(len, rows))))
    for place, row in enumerate(rows):
        strays[place, : len(row)] = (row - row.mean()) / row.std()
    common = np.minimum.outer(lengths, lengths)
    squares, by_chance = (strays @ strays.T / common) ** 2, 1 / (common - 1)
    others = ~np.eye(len(rows), dtype=bool)
    share = float((squares - by_chance)[others].sum() / (1 - by_chance)[others].sum())
    return max(0.0, share)
