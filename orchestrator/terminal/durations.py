"""The forms in which durations are printed, one function each."""

import math
from datetime import timedelta

# A budget is rounded up to a multiple of the step: of ten seconds up to a minute, of a minute up to ten, and so on.
STEPS_S = ((60, 10), (600, 60), (3600, 300), (math.inf, 1800))


def format_time(milliseconds: float) -> str:
    """Format a measured time with three figures and the unit that fits: `1.20 ms`."""
    units = (("h", 3.6e6), ("min", 6e4), ("s", 1e3), ("ms", 1.0), ("µs", 1e-3))
    name, factor = next((unit for unit in units if milliseconds >= unit[1]), units[-1])
    value = milliseconds / factor
    return f"{value:.0f} {name}" if value >= 99.95 else f"{value:#.3g} {name}"


def format_minutes_seconds(seconds: float) -> str:
    """Format the time that is left: `12 s`, or `3 min 12 s`."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def format_hours_minutes(length: timedelta) -> str:
    """Format the time until a nightly run, or how long it has run: `12 min`, or `3 h 12 min`."""
    minutes = max(0, round(length.total_seconds() / 60))
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def format_minutes(seconds: float) -> str:
    """Format an estimate in minutes, without the unit, because it may be one end of a range: `0.5`, or `12`."""
    return f"{max(seconds / 60, 0.1):.{0 if seconds >= 600 else 1}f}"


def format_budget(seconds: float) -> str:
    """Round a time up to a figure that a person would write after --budget: `40s`, or `12m`."""
    step = next(step for most, step in STEPS_S if seconds <= most)
    rounded = max(math.ceil(seconds / step) * step, STEPS_S[0][1])
    return f"{rounded}s" if rounded % 60 else f"{rounded // 60}m"
