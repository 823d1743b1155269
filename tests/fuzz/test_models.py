"""What a worker may say of a saved model: anything. Whatever is believed can be judged and written to every file."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.saved_models.answers import ModelReply, pick_line, read_answer
from orchestrator.saved_models.judge import judge_models
from orchestrator.saved_models.question import ModelsQuestion
from orchestrator.saved_models.report import ModelsAnswer, layout_models, models_as_object, render_models_page
from orchestrator.saved_models.run import ModelRow, ModelsOutcome, SavedModel
from orchestrator.terminal import strict_json
from orchestrator.terminal.text import render_plain
from tests.fuzz.damage import damaged_json, dump
from tests.fuzz.memory import bounded_memory
from workloads.sketches import sketch

OUTPUT = sketch({"a": np.arange(6.0, dtype="float32"), "b": "text"})
GOOD = {"outcome": "done", "stage": "train", "kind": "", "message": "", "custom": "", "seconds": 0.5}
RAISED = {"outcome": "raised", "kind": "ValueError", "message": "no\n\nException encountered: why"}
REPLIES = ({**GOOD, "output": OUTPUT, "after": OUTPUT}, {**GOOD, **RAISED, "output": "", "after": ""})


def report(data: bytes) -> None:
    with TemporaryDirectory() as folder, bounded_memory():
        path = Path(folder) / "model.json"
        path.write_bytes(data)
        reply = read_answer(Path(folder), path)
        if reply is None:
            return
        outcome = ModelsOutcome(
            question=ModelsQuestion(),
            path=Path(folder),
            engine="venv",
            targets=("2.8.4", "2.16.2"),
            texts=("2.8", "2.16"),
            saves={("2.8.4", "h5", "nested"): SavedModel(ModelReply(outcome="done", output=OUTPUT))},
            loads={(ModelRow("2.8.4", "h5"), target, "nested"): reply for target in ("2.8.4", "2.16.2")},
            lost={},
            seconds=1.0,
        )
        answer = ModelsAnswer(outcome, judge_models(outcome))
        strict_json.dump(models_as_object(answer)).encode()
        render_models_page(answer).encode()
        render_plain(lambda width: layout_models(answer, width, details=True)).encode()


def test_the_replies_themselves_are_right():
    for reply in REPLIES:
        ModelReply.model_validate(reply)


@given(st.one_of([damaged_json(reply) for reply in REPLIES]))
def test_a_damaged_reply(damaged: object):
    report(dump(damaged))


@given(damaged_json(json.loads(OUTPUT)))
def test_a_damaged_result(damaged: object):
    report(json.dumps({**REPLIES[0], "output": dump(damaged).decode("utf-8", "replace")}).encode())


@given(st.binary())
def test_any_bytes(data: bytes):
    report(data)


@given(st.text())
def test_any_message(message: str):
    assert len(pick_line(message)) <= 240
