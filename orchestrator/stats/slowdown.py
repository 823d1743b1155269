"""The format of slowdowns. Reports use it without the statistics, whose import takes a quarter of a second."""

# A slowdown beyond a factor of two is not printed as a figure.
LARGEST_SHOWN = 1.0


def format_slowdown(slowdown: float) -> str:
    return f"{slowdown:.1%}" if slowdown <= LARGEST_SHOWN else f"over {LARGEST_SHOWN:.0%}"


def format_margin(margin: float) -> str:
    """Return a margin in percent as a person would write it: `5%`, or `2.5%`."""
    return f"{margin * 100:g}%"
