"""A worker's answers about each model: checked like everything from a worker, and reduced to the line that matters."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from orchestrator import files
from orchestrator.engines.worker.events import clean
from orchestrator.results.sketches import LONGEST

MOST_BYTES, MOST_SECONDS, LONGEST_MESSAGE, LONGEST_REASON = 2**20, 10**6, 30_000, 240
# A reason ends after the first sentence with which it is at least this long.
ENOUGH = 100
# Keras quotes the original error right after the first of these, and on the next line after the others.
NESTED = re.compile(
    r"Exception encountered: "
    r"|Exception encountered when calling [^\n]*\n\s*\n"
    r"|Example error message for object [^\n]*\n\s*\n"
)
# Colours, and names of nodes in a graph, do not help to explain what is wrong.
NOISE = re.compile(r"\x1b\[[0-9;]{0,20}m|\{\{[^{}\n]{0,300}\}\} ?")
# After these, Keras quotes a configuration of thousands of characters, or gives advice.
TAIL = re.compile(
    r"\.? ?(Full object config:|\bconfig=\{|using config=|Please ensure|Make sure |Note that if you|Expected: \["
    r"|in binary running on )"
)
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
STAGES = {"": "", "call": "it loads, but a call raises ", "train": "it loads, but further training raises "}

Text = Annotated[str, BeforeValidator(lambda text: clean(text, LONGEST_MESSAGE))]
Sketched = Annotated[str, Field(max_length=LONGEST)]


class ModelReply(BaseModel):
    """The result of saving or loading one model, as reported by the worker or the host."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    outcome: Literal["done", "refused", "raised", "died"]
    # The last step that began after the model was saved or loaded.
    stage: Literal["", "call", "train"] = ""
    kind: Annotated[str, Field(max_length=200)] = ""
    message: Text = ""
    # The name of a custom object that is missing.
    custom: Annotated[str, Field(max_length=100)] = ""
    output: Sketched = ""
    after: Sketched = ""
    seconds: Annotated[float, Field(ge=0, le=MOST_SECONDS, allow_inf_nan=False)] = 0.0

    @property
    def reason(self) -> str:
        """The line that matters."""
        if self.outcome != "raised":
            return self.message[:LONGEST_REASON].rstrip(".")
        if self.custom:
            return f"needs the custom object {self.custom}: pass --model FILE with a custom_objects(tf) that returns it"
        line = pick_line(self.message)
        return STAGES[self.stage] + (f"{self.kind}: {line}" if line else self.kind)


def read_answer(root: Path, path: Path) -> ModelReply | None:
    """Return a worker's answer, or None if there is none that a worker of ours would give."""
    try:
        answer = ModelReply.model_validate_json(files.read(root, path, MOST_BYTES))
    except (OSError, ValidationError, ValueError, RecursionError):
        return None
    return None if answer.outcome == "died" else answer


def pick_line(message: str) -> str:
    """Return the line of a message that says what is wrong: the innermost error that it quotes, or its beginning."""
    text = NOISE.sub("", NESTED.split(message)[-1])
    lines = (TAIL.split(line, maxsplit=1)[0].strip(" .") for line in text.splitlines())
    line = next(filter(None, lines), "")
    # A KeyError quotes its whole message.
    if QUOTED.fullmatch(line):
        line = line[1:-1]
    end = line.find(". ", ENOUGH)
    return line[: end if 0 < end < LONGEST_REASON else LONGEST_REASON]
