"""The picture of docs/verdicts.md: intervals next to the margin, judged by the rule itself."""

import math
from dataclasses import dataclass

from orchestrator.catalog.selectors import MARGIN
from orchestrator.stats.verdict import Judgement, Levels, judge_estimate

WIDTH, LEFT, TOP, ROW = 760, 300, 64, 34
# These ratios are at the edges of the axis.
LOW, HIGH = 0.90, 1.22
TICKS = (0.90, 0.95, 1.00, 1.05, 1.10, 1.15, 1.20)
COLOURS = {"slower": "#b3261e", "faster": "#1a7f37", "same": "#57606a", "inconclusive": "#9a6700"}
LEVELS = Levels(same=0.05, differ=0.025)


@dataclass(frozen=True)
class Example:
    """An interval and what is remarkable about it."""

    low: float
    high: float
    words: str

    @property
    def theta(self) -> float:
        return math.log(self.low * self.high) / 2

    def half_width(self, level: float) -> float:
        return math.log(self.high / self.low) / 2

    def reach(self, level: float) -> float:
        return self.half_width(level)


EXAMPLES = (
    Example(0.985, 1.02, "all of it is inside the margin"),
    Example(1.012, 1.04, "1 is excluded, but all of it is inside"),
    Example(1.015, 1.075, "1 is excluded, and not all of it is inside"),
    Example(1.08, 1.16, "all of it is outside the margin"),
    Example(0.915, 0.975, "the same to the other side"),
    Example(0.97, 1.07, "too wide: neither"),
    Example(0.99, 1.15, "probably slower, but 1 is possible"),
)


def name_verdict(judgement: Judgement) -> str:
    if judgement.size == "slight":
        return "slightly slower"
    beyond = " (beyond the margin)" if judgement.size == "beyond" else ""
    return f"{judgement.verdict}{beyond}"


def verdicts_picture() -> str:
    height = TOP + ROW * len(EXAMPLES) + 16
    edges = [_x(1 / (1 + MARGIN)), _x(1 + MARGIN)]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<rect x="{edges[0]:.1f}" y="{TOP - 18}" width="{edges[1] - edges[0]:.1f}" '
        f'height="{height - TOP + 10}" fill="#eef1f4"/>',
        f'<text x="{sum(edges) / 2:.1f}" y="16" text-anchor="middle" fill="#57606a">margin of {MARGIN:.0%}</text>',
        f'<line x1="{_x(1):.1f}" y1="{TOP - 18}" x2="{_x(1):.1f}" y2="{height - 8}" stroke="#24292f"/>',
    ]
    for tick in TICKS:
        lines.append(f'<text x="{_x(tick):.1f}" y="{TOP - 26}" text-anchor="middle" fill="#24292f">{tick:.2f}x</text>')
    for index, example in enumerate(EXAMPLES):
        lines += _row(example, TOP + ROW * index + ROW / 2 - 8)
    return "\n".join([*lines, "</svg>", ""])


def _row(example: Example, y: float) -> list[str]:
    judgement = judge_estimate(example, MARGIN, LEVELS)
    colour = COLOURS["same" if judgement.verdict == "same" else judgement.verdict]
    low, middle, high = (_x(value) for value in (example.low, math.exp(example.theta), example.high))
    return [
        f'<text x="12" y="{y:.1f}" font-weight="bold" fill="{colour}">{name_verdict(judgement)}</text>',
        f'<text x="12" y="{y + 14:.1f}" font-size="10" fill="#57606a">{example.words}</text>',
        f'<line x1="{low:.1f}" y1="{y:.1f}" x2="{high:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-width="3"/>',
        f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>',
    ]


def _x(ratio: float) -> float:
    return LEFT + (WIDTH - LEFT - 24) * math.log(ratio / LOW) / math.log(HIGH / LOW)
