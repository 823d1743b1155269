"""JSON without NaN and infinities, which no parser of other languages reads."""

import ast
import json
import math
from dataclasses import dataclass, field, replace
from datetime import date

import pytest

from orchestrator.exports import EXPORTS, export_run
from orchestrator.model import Evaluation, Target
from orchestrator.reports import trend
from orchestrator.results import tables
from orchestrator.results.evaluation import _read_losses
from orchestrator.terminal import strict_json
from tests.conftest import ROOT
from tests.support import scenes
from tests.support.builders import change_arm
from tests.support.export_runs import of_scene

ODD = (math.nan, math.inf, -math.inf)
# What these write holds texts and whole numbers, or is read by tfcompare alone.
WITHOUT_FIGURES = {
    "bisect/state.py", "catalog/locking.py", "cli/settings.py", "engines/docker/image.py", "engines/layers.py",
    "engines/venv/engine.py", "fleet/packets.py", "images/archive.py", "nightly/lock.py", "nightly/schedule/units.py",
    "results/sealed.py",
}  # fmt: skip


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def read(text: str):
    return json.loads(text, parse_constant=refuse)


def test_what_json_cannot_hold_is_null():
    value = {"a": [1.5, *ODD], "b": {"c": (math.nan, 2)}, "d": "NaN", "e": None, "f": True}
    expected = {"a": [1.5, None, None, None], "b": {"c": [None, 2]}, "d": "NaN", "e": None, "f": True}
    assert read(strict_json.dump(value, indent=2)) == expected


def test_nothing_else_writes_figures_as_json():
    folder = ROOT / "orchestrator"
    callers = set()
    for path in folder.rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        if any(ast.unparse(call.func) in ("json.dumps", "json.dump") for call in calls):
            callers.add(str(path.relative_to(folder)))
    assert callers == WITHOUT_FIGURES | {"terminal/strict_json.py"}


def odd_figures() -> Evaluation:
    """A comparison whose figures are no numbers, as where a training has failed."""
    found = scenes.everything()
    odd = {"losses": ODD, "time": math.nan, "first": math.inf, "build": math.inf, "memory": math.nan}
    arms = tuple(change_arm(arm, **odd) if arm.outcome == "measured" else arm for arm in found.arms)
    comparisons = tuple(
        replace(comparison, ratio=math.inf, ci_low=math.nan, ci_high=math.inf, mde=math.inf)
        for comparison in found.comparisons
    )
    return replace(found, arms=arms, comparisons=comparisons, metrics={}, outputs=())


@pytest.mark.parametrize("name", ["json", "bencher", "github-benchmark"])
def test_an_export_is_strict(name: str):
    assert EXPORTS[name].module
    read(export_run(of_scene(odd_figures()), name).text or "")


def test_an_asv_export_is_strict(tmp_path):
    for path in export_run(of_scene(odd_figures()), "asv", output=tmp_path / "asv").files:
        read(path.read_text())


def test_losses_that_are_no_numbers_are_null():
    arms = read(export_run(of_scene(odd_figures()), "json").text)["arms"]
    assert [None, None, None] in [arm["losses"] for arm in arms]


def test_a_trend_is_strict():
    assert read(trend.as_json(odd_figures()))


def test_a_run_keeps_losses_that_are_no_numbers_in_tables_and_in_the_library():
    losses = _read_losses('["inf", "-inf", 0.5, "nan"]')
    assert losses[:3] == (math.inf, -math.inf, 0.5)
    assert math.isnan(losses[3])
    scene = odd_figures()
    found = replace(scene, arms=tuple(replace(arm, losses=losses[:2]) for arm in scene.arms))
    assert set(tables.arms(found)["loss"].to_pylist()) == {-math.inf}


@pytest.mark.parametrize("text", ["[null]", "[[1]]", f"[{10**400}]", "{", "7", '["much"]'])
def test_losses_that_a_worker_wrote_as_something_else_do_no_harm(text: str):
    assert _read_losses(text) == ()


@dataclass
class Told:
    target: Target = field(default_factory=lambda: Target("2.0.0", control=True))
    reason: str = ""
    took_ms: float = 1500.0
    took_ns: int = 3 * 10**9
    day: date = date(2026, 11, 3)
    names: tuple[object, ...] = field(default_factory=lambda: (Target("1.14.0"), 2, True, None))
    params: tuple[tuple[str, str], ...] = (("size", "1"),)
    facts: dict[str, object] = field(default_factory=lambda: {"cores": 2, "cpu": None})
    inner: "Told | None" = None


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("target day", {"target": "2.0.0+control", "day": "2026-11-03"}),
        ("reason", {"reason": ""}), ("reason? names?", {"reason": None, "names": ["1.14.0", 2, True, None]}),
        ("facts", {"facts": {"cores": 2, "cpu": None}}),
        ("took_ms took_s=took_ms other_s=took_ns", {"took_ms": 1500.0, "took_s": 1.5, "other_s": 3.0}),
        ("params why=reason", {"params": {"size": "1"}, "why": ""}),
        ("of=inner.target deep_s=inner.inner.took_ms", {"of": None, "deep_s": None}),
    ],
)  # fmt: skip
def test_what_is_named_is_picked_in_the_types_of_json(names: str, expected: dict[str, object]):
    assert strict_json.pick(Told(), names) == expected
    assert strict_json.pick(Told(inner=Told(took_ms=1.0)), "of_s=inner.took_ms") == {"of_s": 0.001}


def test_of_nothing_everything_is_null_and_what_does_not_exist_is_an_error():
    assert strict_json.pick(None, "target reason?") == {"target": None, "reason": None}
    with pytest.raises(AttributeError, match="tagret"):
        strict_json.pick(Told(), "tagret")
