"""What was loaded is judged against what was saved, by the rule for results."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.saved_models.answers import ModelReply
from orchestrator.saved_models.judge import LoadedModel, Verdict, compare_answers, judge_models, sum_up
from orchestrator.saved_models.question import ModelsQuestion
from orchestrator.saved_models.report import ModelsAnswer
from orchestrator.saved_models.run import ModelRow, ModelsOutcome, SavedModel
from workloads.sketches import sketch

VALUES = np.random.RandomState(0).normal(size=(4, 2)).astype("float32")


def done(output: Any = VALUES, after: Any = None) -> ModelReply:
    return ModelReply(outcome="done", output=sketch(output), after="" if after is None else sketch(after))


RAISED = ModelReply(outcome="raised", kind="ValueError", message="no such layer")
REFUSED = ModelReply(outcome="refused", message="not here")


@pytest.mark.parametrize(
    ("saved", "loaded", "verdict"),
    [
        (done(), done(), "ok"),
        (done(), done(VALUES * (1 + 1e-6)), "ok"),
        (done(), done(VALUES * 1.01), "differs"),
        (done(), done(VALUES[:2]), "differs"),
        (done(), done(np.where(VALUES > 1, np.nan, VALUES)), "differs"),
        (done(after=VALUES + 1), done(after=VALUES + 1), "ok"),
        # The state of the optimizer was lost.
        (done(after=VALUES + 1), done(after=VALUES + 1.1), "differs"),
        # What serves a model does not train it.
        (done(after=VALUES + 1), done(), "ok"),
        (done({}), done({}), "not compared"),
        (done(), ModelReply(outcome="done", output="no sketch"), "not compared"),
    ],
)
def test_equal_is_ok_and_different_is_named(saved: ModelReply, loaded: ModelReply, verdict: str):
    found, reason, _ = compare_answers(saved, loaded)
    assert found == verdict
    assert bool(reason) == (verdict != "ok")


def test_a_difference_says_when_and_how_large_it_is():
    assert compare_answers(done(), done(VALUES * 1.5)) == (
        "differs",
        "returns different values, by 33%",
        pytest.approx(1 / 3),
    )
    _, reason, _ = compare_answers(done(after=VALUES), done(after=VALUES * 2))
    assert reason == "after a further training step: returns different values, by 50%"


def outcome(
    saves: dict[tuple[str, str, str], ModelReply], loads: dict[tuple[str, str, str, str], ModelReply], **more: Any
) -> ModelsOutcome:
    """An outcome; loads are by source, format, target and model."""
    return ModelsOutcome(
        question=more.pop("question", ModelsQuestion()),
        path=Path("run"),
        engine="venv",
        targets=("2.8.4", "2.16.2"),
        texts=("2.8", "2.16"),
        saves={key: SavedModel(answer, 100) for key, answer in saves.items()},
        loads={
            (ModelRow(source, form), target, model): answer for (source, form, target, model), answer in loads.items()
        },
        lost=more.pop("lost", {}),
        seconds=60.0,
        **more,
    )


def verdicts(found: ModelsOutcome) -> dict[tuple[str, str, str], Verdict]:
    return {(each.row.format, each.target, each.model): each.verdict for each in judge_models(found)}


def test_every_model_gets_a_verdict_in_every_target():
    found = outcome(
        {("2.8.4", "h5", "a"): done(), ("2.8.4", "h5", "b"): RAISED, ("2.8.4", "keras", "a"): REFUSED},
        {("2.8.4", "h5", "2.8.4", "a"): done(), ("2.8.4", "h5", "2.16.2", "a"): RAISED},
    )
    assert verdicts(found) == {
        ("h5", "2.8.4", "a"): "ok",
        ("h5", "2.16.2", "a"): "dies",
        ("h5", "2.8.4", "b"): "not saved",
        ("h5", "2.16.2", "b"): "not saved",
        ("keras", "2.8.4", "a"): "refused",
        ("keras", "2.16.2", "a"): "refused",
    }


def test_a_saved_model_is_loaded_with_and_without_keras():
    found = outcome(
        {("2.8.4", "savedmodel", "a"): done()},
        {
            ("2.8.4", "savedmodel", "2.8.4", "a"): done(),
            ("2.8.4", "served", "2.8.4", "a"): done(),
            ("2.8.4", "savedmodel", "2.16.2", "a"): REFUSED,
            ("2.8.4", "served", "2.16.2", "a"): done(VALUES + 1),
        },
    )
    assert list(verdicts(found).values()) == ["ok", "refused", "ok", "differs"]


def test_a_file_that_was_given_is_expected_to_return_what_it_returns_first():
    given = {("old.h5", "h5", "given"): ModelReply(outcome="done")}
    loads = {("old.h5", "h5", "2.8.4", "given"): RAISED, ("old.h5", "h5", "2.16.2", "given"): done()}
    assert list(verdicts(outcome(given, loads)).values()) == ["dies", "ok"]
    loads["old.h5", "h5", "2.8.4", "given"] = done(VALUES + 1)
    assert list(verdicts(outcome(given, loads)).values()) == ["ok", "differs"]
    loads["old.h5", "h5", "2.8.4", "given"] = ModelReply(outcome="done", message="unknown inputs")
    assert list(verdicts(outcome(given, loads)).values()) == ["not compared", "ok"]


def test_a_target_that_was_lost_has_not_run():
    found = outcome(
        {("2.8.4", "h5", "a"): done()},
        {
            ("2.8.4", "h5", "2.8.4", "a"): done(),
            ("2.8.4", "h5", "2.16.2", "a"): ModelReply(outcome="died", message="gone"),
        },
        lost={"2.16.2": "gone"},
    )
    assert list(verdicts(found).values()) == ["ok", "not run"]


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        (["ok", "ok"], "ok"),
        (["ok", "dies"], "1 dies"),
        (["dies", "ok", "differs", "dies"], "1 differs, 2 die"),
        (["dies", "dies"], "all die"),
        (["differs"], "differs"),
        (["refused", "refused"], "refused"),
        (["not saved", "dies"], "dies"),
        (["not saved"], "not saved"),
        (["slower"], "loads slower"),
        (["slower", "slower", "ok"], "2 load slower"),
    ],
)
def test_a_cell_sums_up(kinds: list[Verdict], text: str):
    row = ModelRow("2.8.4", "h5")
    models = [
        LoadedModel(row=row, target="2.16.2", model="a", verdict=kind, saved=kind != "not saved") for kind in kinds
    ]
    assert sum_up(models) == text


def test_a_cell_leaves_out_what_could_not_be_saved():
    refused = LoadedModel(row=ModelRow("2.0.0", "h5"), target="2.16.2", model="a", verdict="refused", saved=False)
    loaded = replace(refused, model="b", verdict="ok", saved=True)
    assert sum_up([refused, loaded]) == "ok"
    assert sum_up([refused, refused]) == "refused"


def test_a_reason_is_named_once_with_all_its_models():
    def fail(layer: str) -> ModelReply:
        return ModelReply(
            outcome="raised", kind="ValueError", message=f"Layer '{layer}' expected 2 variables, but received 0"
        )

    names = ("a", "b", "c")
    found = outcome(
        {("2.8.4", "keras", name): done() for name in names},
        {("2.8.4", "keras", "2.8.4", name): done() for name in names}
        | {
            ("2.8.4", "keras", "2.16.2", "a"): fail("dense_1"),
            ("2.8.4", "keras", "2.16.2", "b"): fail("embedding"),
            ("2.8.4", "keras", "2.16.2", "c"): RAISED,
        },
    )
    assert [(each.reason, each.models, each.count) for each in ModelsAnswer(found, judge_models(found)).failures] == [
        ("ValueError: Layer 'dense_1' expected 2 variables, but received 0", ("a", "b"), 2),
        ("ValueError: no such layer", ("c",), 1),
    ]
