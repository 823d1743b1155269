"""How slowdowns are written. Reports need this without the statistics, whose import takes a quarter of a second."""

# Beyond a factor of two there is no slowdown that is worth a figure.
MOST_TOLD = 1.0


def format_slowdown(slowdown: float) -> str:
    return f"{slowdown:.1%}" if slowdown <= MOST_TOLD else f"over {MOST_TOLD:.0%}"


def format_margin(margin: float) -> str:
    """Return a margin in percent as a person would write it: `5%`, or `2.5%`."""
    return f"{margin * 100:g}%"
