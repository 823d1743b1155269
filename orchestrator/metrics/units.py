"""Amounts of a metric that is judged by differences: how they are printed, and how people write them."""

import re
from dataclasses import dataclass

AMOUNT = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,6})?) ?(?P<unit>[A-Za-z]*)")


@dataclass(frozen=True)
class Units:
    """The units of a metric, each with its size and the decimals that are printed, from the smallest to the largest.

    Where there is only one unit without a name, amounts are counts.
    """

    units: tuple[tuple[str, float, int], ...]
    # This follows an amount, such as ` per call`.
    per: str = ""
    # This shows how people write an amount.
    example: str = ""

    def show(self, amount: float) -> str:
        """Return a figure or a margin as in `40.2 KiB per call`."""
        return self._format(amount, amount) + self._end(amount)

    def show_difference(self, difference: float) -> str:
        """Return a difference as in `+8.0 KiB per call`."""
        return self._format(difference, difference, "+") + self._end(difference)

    def show_ends(self, difference: float, low: float, high: float) -> str:
        """Return the ends of a difference's interval, in the unit of the difference: `+7.9 to +8.1`.

        The end of an interval that excludes 0 is never shown as 0.
        """
        ends = self._format(low, difference, "+", apart=low > 0), self._format(high, difference, "+", apart=high < 0)
        return " to ".join(ends)

    def show_figures(self, difference: float, old: float, new: float) -> str:
        """Return two figures in the unit of their difference: `40.2 to 48.2`."""
        return f"{self._format(old, difference)} to {self._format(new, difference)}"

    def parse(self, text: str) -> float | None:
        """Return an amount such as `4KiB`, or None for other text; a number alone is in the smallest unit."""
        match = AMOUNT.fullmatch(text.strip())
        sizes = {name.lower(): size for name, size, _ in self.units} | {"": 1.0}
        size = match and sizes.get(match["unit"].lower())
        return float(match["number"]) * size if match and size else None

    def _find_unit(self, amount: float) -> tuple[str, float, int]:
        return next((unit for unit in reversed(self.units) if abs(amount) >= unit[1]), self.units[0])

    def _format(self, amount: float, like: float, sign: str = "-", *, apart: bool = False) -> str:
        _, size, decimals = self._find_unit(like)
        while apart and round(amount / size, decimals) == 0:
            decimals += 1
        # Adding 0.0 turns minus zero into zero.
        rounded = round(amount / size, decimals) + 0.0
        text = f"{rounded:{sign}.{decimals}f}"
        return text if self._find_unit(like)[0] else text.removesuffix(".0")

    def _end(self, amount: float) -> str:
        name = self._find_unit(amount)[0]
        return f"{f' {name}' if name else ''}{self.per}"


BYTES_PER_CALL = Units(
    (("B", 1.0, 0), ("KiB", 2.0**10, 1), ("MiB", 2.0**20, 1), ("GiB", 2.0**30, 1)), per=" per call", example="4KiB"
)
COUNT = Units((("", 1.0, 1),), example="2")
COUNT_PER_CALL = Units((("", 1.0, 2),), per=" per call", example="0.5")
