"""The pages show the steps that alarms know: levels that wander from night to night are none, and a real one stays."""

import math
import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.history.alarms.steps import changes
from orchestrator.history.model import Point
from orchestrator.history.schema import to_table
from orchestrator.history.series import last_segments
from orchestrator.history.site.data import Sources, runs_at
from tests.support.nights import history, labels

NIGHTS, CASES = 60, 30


def wandering(step: float = 0.0) -> list[Point]:
    """Points whose levels resemble those of the night before; the first case becomes slower on the 40th night."""
    points = history(NIGHTS, CASES, ("2.0.0",), noise=0.01)
    draw = random.Random(4)
    levels: dict[tuple[str, str], float] = defaultdict(float)
    found = []
    nights = sorted({point.night for point in points})
    for point in points:
        assert point.effect is not None
        key = (point.case, point.target)
        if point.target == "2.0.0":
            levels[key] = 0.7 * levels[key] + draw.gauss(0, 0.01)
        late = point.case == labels(CASES)[0] and point.target == "2.0.0" and point.night >= nights[40]
        found.append(replace(point, effect=point.effect + levels[key] + (math.log1p(step) if late else 0.0)))
    return found


def sources(points: list[Point], folder: Path) -> Sources:
    return Sources(to_table(points), (), runs_at(folder, folder, None))


@pytest.mark.parametrize("step", [0.0, 0.3])
def test_a_page_shows_a_step_and_nothing_that_only_wanders(tmp_path: Path, step: float):
    made = sources(wandering(step), tmp_path)
    keys = [key for key in made.series if not key.is_control]
    shown = {key.case for key in keys if made.draw_case([key])[0].changes}
    assert (labels(CASES)[0] in shown) == bool(step)
    assert len(shown - {labels(CASES)[0]}) <= 1
    # Without it, some series of this history would have steps that are none.
    assert sum(bool(changes(segment)) for segment in last_segments(made.series).values()) > 2
