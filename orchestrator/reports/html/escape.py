"""Text and figures made safe and short for a page."""

import math
from typing import Any

from markupsafe import Markup

from orchestrator.terminal import strict_json
from orchestrator.terminal.text import escape_unprintable

# This many digits are enough for a plot, and a page with hundreds of cases holds a million figures.
DIGITS = 4
# These end a script block, open a comment in it, or count as line ends of JavaScript in older browsers.
ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def escape_value(value: Any) -> Any:
    """Escape characters that cannot be printed or that change the reading direction, in all texts of a value.

    Markup stays as it is, because only this package creates it.
    """
    if isinstance(value, list | tuple):
        return [escape_value(part) for part in value]
    if isinstance(value, dict):
        return {name: escape_value(part) for name, part in value.items()}
    if value is None or isinstance(value, int | float | Markup):
        return value
    return escape_unprintable(str(value))


def round_figure(value: float | None, digits: int = DIGITS) -> float | None:
    """Round a figure; return None if JSON could not hold it."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def script_data(value: Any) -> str:
    """Return JSON that is safe inside a script block."""
    return strict_json.dump(value, separators=(",", ":")).translate(ESCAPES)
