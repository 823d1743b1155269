"""Histories that were never measured: points as nights leave them, with steps where a test wants them."""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

from orchestrator.history.model import Key, Point, Series, Surroundings
from orchestrator.history.schema import to_table
from orchestrator.history.series import all_series
from orchestrator.model import Target

FIRST = date(2024, 1, 1)
REFERENCE = "1.14.0"
ROUNDS = 10
SURROUNDINGS = Surroundings(
    image="venv-made",
    reference_image="venv-reference",
    source="made",
    driver="",
    kernel="6.1",
    python="3.11.7",
    machine="A CPU",
    tool="0.1.0",
    worker="",
    variables="none",
    reference_variables="none",
    boot="",
    microcode="",
    governor="",
)

# By case and version: from which night on it takes so many times as long.
Steps = Mapping[tuple[str, str], Mapping[int, float]]


def labels(cases: int) -> list[str]:
    return [f"train_loop[loop={'fit' if number % 2 else 'train_on_batch'},size={number}]" for number in range(cases)]


def series_of(points: Iterable[Point]) -> dict[Key, Series]:
    """Return the series of points that are sorted oldest first."""
    return all_series(to_table(points))


def one_series(points: Iterable[Point], version: str = "2.0.0") -> Series:
    [series] = [series for key, series in series_of(points).items() if key.target == version]
    return series


def of_metric(points: Iterable[Point], metric: str, figure: float = 2.0**28) -> list[Point]:
    """The same nights, of another metric."""
    return [replace(point, metric=metric, reference_figure=None, target_figure=figure) for point in points]


def of_results(points: Iterable[Point], verdict: str = "equal", difference: float | None = None) -> list[Point]:
    """The same nights, of what calls returned."""
    return [
        replace(point, effect=None, error=None, rounds=0, verdict=verdict)
        for point in of_metric(points, "output", difference or 0.0)
    ]


def history(
    nights: int,
    cases: int | Sequence[str],
    versions: Sequence[str] = ("2.0.0", "2.13.0"),
    seed: int = 1,
    steps: Steps | None = None,
    *,
    reference: str = REFERENCE,
    control: bool = True,
    noise: float = 0.03,
    host: str = "host",
    surroundings: Surroundings = SURROUNDINGS,
) -> list[Point]:
    """A screen a night of every case in every version, and of the control arm; `noise` is that of a round."""
    draw = random.Random(seed)
    names = labels(cases) if isinstance(cases, int) else list(cases)
    twice = str(Target(reference, control=True))
    arms = [*versions, *([twice] if control else [])]
    level = {(case, arm): 0.0 if arm == twice else draw.gauss(0, 0.5) for case in names for arm in arms}
    times = {case: math.exp(draw.uniform(0, 5)) for case in names}
    found = []
    for number in range(nights):
        for name, at in (steps or {}).items():
            level[name] += math.log(at.get(number, 1.0))
        night = FIRST + timedelta(days=number)
        started = datetime.combine(night, time(2), UTC)
        run = f"{started:%Y%m%d-%H%M%S}-{seed:04x}"
        for case in names:
            reference_ms = times[case] * math.exp(draw.gauss(0, noise))
            for arm in arms:
                effect = level[case, arm] + draw.gauss(0, noise / math.sqrt(ROUNDS))
                found.append(
                    Point(
                        night=night,
                        started=started,
                        run=run,
                        stage="screen",
                        suite="made",
                        host=host,
                        engine="venv",
                        device="cpu",
                        reference=reference,
                        target=arm,
                        build=arm,
                        case=case,
                        outcome="measured",
                        reason="",
                        effect=effect,
                        # As spread out as the standard errors of so many rounds are.
                        error=noise / math.sqrt(ROUNDS) * math.sqrt(draw.gammavariate(4.5, 1 / 4.5)),
                        rounds=ROUNDS,
                        verdict="inconclusive",
                        metric="time",
                        reference_figure=reference_ms,
                        target_figure=reference_ms * math.exp(effect),
                        surroundings=surroundings,
                        commit="",
                        judge="wall",
                    )
                )
    return found
