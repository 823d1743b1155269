"""What a worker answers is checked, and of a long message, the line that says what is wrong is kept."""

import json
from pathlib import Path

import pytest

from orchestrator.saved_models.answers import MOST_BYTES, ModelReply, pick_line, read_answer

GOOD = {
    "outcome": "done",
    "stage": "call",
    "kind": "",
    "message": "",
    "custom": "",
    "seconds": 0.5,
    "output": "",
    "after": "",
}

# These are messages of Keras in its versions, shortened.
MESSAGES = (
    ("Unrecognized keyword arguments: ['batch_shape']", "Unrecognized keyword arguments: ['batch_shape']"),
    (
        "Could not deserialize class 'Functional' because its parent module keras.src.engine.functional cannot be "
        "imported. Full object config: {'module': 'keras.src.engine.functional', 'config': {}}",
        "Could not deserialize class 'Functional' because its parent module keras.src.engine.functional cannot be "
        "imported",
    ),
    (
        "Error when deserializing class 'InputLayer' using config={'batch_shape': [4, 3]}.\n\n"
        "Exception encountered: Unrecognized keyword arguments: ['batch_shape']",
        "Unrecognized keyword arguments: ['batch_shape']",
    ),
    (
        "A total of 2 objects could not be loaded. Example error message for object <Dense name=dense_1, built=True>:"
        "\n\nLayer 'dense_1' expected 2 variables, but received 0 variables during loading. Expected: ['kernel']"
        "\n\nList of objects that could not be loaded:\n[<Dense name=dense_1, built=True>]",
        "Layer 'dense_1' expected 2 variables, but received 0 variables during loading",
    ),
    (
        "Exception encountered when calling StringLookup.call().\n\n\x1b[1m{{node x}} Table not initialized.\x1b[0m\n\n"
        "Arguments received by StringLookup.call():\n  • inputs=tf.Tensor",
        "Table not initialized",
    ),
    (
        # The name of a machine is left out.
        "Op type not registered 'DisableCopyOnRead' in binary running on host. Make sure the Op is there.",
        "Op type not registered 'DisableCopyOnRead'",
    ),
    ("'str' object has no attribute 'quantization_mode'", "'str' object has no attribute 'quantization_mode'"),
    ("\"Unable to open object (object 'vars' doesn't exist)\"", "Unable to open object (object 'vars' doesn't exist)"),
    ("\n\n", ""),
)


@pytest.mark.parametrize(("message", "line"), MESSAGES)
def test_the_line_that_matters_is_found(message: str, line: str):
    assert pick_line(message) == line


def test_a_long_line_ends_with_a_sentence_or_is_cut():
    assert pick_line("a" * 110 + ". Advice follows. More advice") == "a" * 110
    assert len(pick_line("b" * 5000)) == 240


def test_a_reason_says_at_which_step_an_error_was_raised():
    raised = {"outcome": "raised", "kind": "ValueError", "message": "no"}
    assert ModelReply.model_validate(raised).reason == "ValueError: no"
    assert ModelReply.model_validate({**raised, "stage": "train"}).reason == (
        "it loads, but further training raises ValueError: no"
    )
    assert "needs the custom object Scale" in ModelReply.model_validate({**raised, "custom": "Scale"}).reason


def write(folder: Path, text: str) -> Path:
    path = folder / "model.json"
    path.write_text(text)
    return path


def test_an_answer_is_read(tmp_path: Path):
    answer = read_answer(tmp_path, write(tmp_path, json.dumps(GOOD)))
    assert answer is not None
    assert (answer.outcome, answer.seconds) == ("done", 0.5)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        json.dumps({**GOOD, "more": 1}),
        json.dumps({**GOOD, "outcome": "fine"}),
        # Only the host says this.
        json.dumps({**GOOD, "outcome": "died"}),
        json.dumps({**GOOD, "seconds": "1"}),
        json.dumps({**GOOD, "seconds": -1.0}),
        json.dumps(GOOD).replace("0.5", "NaN"),
        json.dumps({**GOOD, "custom": "x" * 101}),
        json.dumps({**GOOD, "message": "x" * MOST_BYTES}),
    ],
    ids=range(11),
)
def test_an_answer_that_no_worker_of_ours_gives_is_none(tmp_path: Path, text: str):
    assert read_answer(tmp_path, write(tmp_path, text)) is None


def test_an_answer_behind_a_link_is_none(tmp_path: Path):
    write(tmp_path, json.dumps(GOOD))
    (tmp_path / "link.json").symlink_to("model.json")
    assert read_answer(tmp_path, tmp_path / "link.json") is None
    assert read_answer(tmp_path, tmp_path / "absent.json") is None
