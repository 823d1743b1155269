"""How far runs differ beyond their rounds is read from the nights of the same case on the same machine."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from orchestrator.history.between_runs import FEWEST_NIGHTS, estimate_between_run_variance, find_between_run_variances
from orchestrator.history.location import VARIABLE
from orchestrator.history.model import Point, Segment, Value
from orchestrator.history.points import of_run
from orchestrator.history.store import Store
from orchestrator.results.compare_runs import compare_runs
from orchestrator.results.run import load_run
from tests.support.builders import case_pair, plan, version_pair
from tests.support.two_runs import A, B, by_case, run

HERE = {"host": {"id": "m", "boot": "b1", "usable_cores": 2}}


def nights(effects: Sequence[float], error: float = 0.01) -> Segment:
    first = date(2026, 1, 1)
    values = (
        Value(night=first + timedelta(days=number), effect=effect, error=error, rounds=10)
        for number, effect in enumerate(effects)
    )
    return Segment(values=tuple(values), control=())


def test_the_variance_between_runs_is_what_rounds_do_not_explain():
    draw = np.random.default_rng(20261201)
    seen = [
        estimate_between_run_variance([nights(draw.normal(0.3, np.hypot(0.01, 0.02), 12).tolist())]).variance
        for _ in range(2000)
    ]
    assert np.mean(seen) == pytest.approx(0.02**2, rel=0.05)


def test_nights_that_agree_as_well_as_rounds_let_expect_add_nothing():
    assert estimate_between_run_variance([nights([0.3, 0.301, 0.299, 0.3, 0.3])]).variance == 0


def test_a_step_where_the_surroundings_changed_is_no_difference_between_runs():
    apart = [nights([0.3, 0.302, 0.3, 0.301]), nights([0.9, 0.901, 0.9])]
    found = estimate_between_run_variance(apart)
    assert (found.variance, found.freedom) == (0, 5)


@pytest.mark.parametrize("count", range(FEWEST_NIGHTS))
def test_few_nights_say_nothing(count: int):
    assert estimate_between_run_variance([nights([0.3] * count)]) is None
    assert estimate_between_run_variance([nights([0.3] * FEWEST_NIGHTS)]) is not None


def strayed(points: Iterable[Point], effects: Sequence[float]) -> list[Point]:
    """Nights before a run that found these effects."""
    return [
        replace(
            point,
            run=f"night-{number}",
            night=point.night - timedelta(days=number + 1),
            started=point.started - timedelta(days=number + 1),
            effect=effect,
            error=0.001,
        )
        for number, effect in enumerate(effects)
        for point in points
    ]


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "history"))
    return Store(tmp_path / "history")


def test_a_change_that_runs_of_the_machine_differ_by_anyway_is_no_change(tmp_path: Path, history: Store):
    earlier, later = (
        run(tmp_path / name, {"a": ratio, "b": 2.0}, **HERE) for name, ratio in (("e", 2.0), ("later", 2.3))
    )
    alone = compare_runs(earlier, later, find_between_run_variances)
    assert (by_case(alone)["a"].verdict, alone.weighed) == ("slower", 0)
    own = of_run(load_run(later), "screen")
    points = strayed([point for point in own if point.metric == "time" and point.case == A.label], (0.5, 0.9) * 4)
    # What the two runs themselves say is no proof against them.
    history.append([*points, *own, *of_run(load_run(earlier), "screen")])
    weighed = compare_runs(earlier, later, find_between_run_variances)
    assert weighed.weighed == 1
    assert by_case(weighed)["a"].verdict == "inconclusive"
    assert by_case(weighed)["a"].ratio == by_case(alone)["a"].ratio
    assert by_case(weighed)["b"] == by_case(alone)["b"]


def test_nights_of_another_machine_or_runs_on_two_say_nothing(tmp_path: Path, history: Store):
    elsewhere = {"host": {"id": "other", "usable_cores": 2}}
    runs = [
        load_run(run(tmp_path / name, {"a": 2.0}, **facts))
        for name, facts in (("e", HERE), ("later", HERE), ("other", elsewhere))
    ]
    history.append(strayed(of_run(runs[2], "screen"), (0.5, 0.9) * 4))
    assert find_between_run_variances(runs[0], runs[1]) == {}
    assert find_between_run_variances(runs[0], runs[2]) == {}
    history.append(strayed(of_run(runs[0], "screen"), (0.5, 0.9) * 4))
    assert set(find_between_run_variances(runs[0], runs[1])) == {version_pair(A)}


def test_ratios_inside_a_version_have_no_history(tmp_path: Path, history: Store):
    of = plan([A, B], pairs=(*plan([A, B]).pairs, case_pair(A, B)))
    earlier, later = (load_run(run(tmp_path / name, {"a": 2.0, "b": 2.0}, of=of, **HERE)) for name in ("e", "later"))
    history.append(strayed(of_run(earlier, "screen"), (0.5, 0.9) * 4))
    assert set(find_between_run_variances(earlier, later)) == {version_pair(A), version_pair(B)}
