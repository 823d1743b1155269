"""What a worker answers of each model: checked like everything from a worker, and reduced to the line that matters."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from orchestrator import files
from orchestrator.engines.worker.events import clean
from orchestrator.results.sketches import LONGEST

MOST_BYTES, MOST_SECONDS, LONGEST_REASON = 2**20, 10**6, 240
NESTED = re.compile(r"Exception encountered: ")
EXAMPLE = re.compile(r"Example error message for object [^\n]*:\s*\n\s*(?P<message>[^\n]+)")
# After these, Keras quotes a configuration of thousands of letters, or advises.
TAIL = re.compile(
    r"\.? ?(Full object config:|\bconfig=\{| ?using config=|Please ensure|Make sure custom|Note that if you| \.\.\. )"
)

Text = Annotated[str, BeforeValidator(lambda text: clean(text, 8_000))]
Sketched = Annotated[str, Field(max_length=LONGEST)]


class Answer(BaseModel):
    """The end of saving or loading one model, as the worker or the host says."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    outcome: Literal["done", "refused", "raised", "died"]
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
            return self.message[:LONGEST_REASON]
        if self.custom:
            return f"needs the custom object {self.custom}: return it from custom_objects(tf) in the file of --model"
        line = find_line(self.message)
        return f"{self.kind}: {line}" if line else self.kind


def read_answer(root: Path, path: Path) -> Answer | None:
    """Return a worker's answer, or None if there is none that a worker of ours would give."""
    try:
        answer = Answer.model_validate_json(files.read(root, path, MOST_BYTES))
    except (OSError, ValidationError, ValueError, RecursionError):
        return None
    return None if answer.outcome == "died" else answer


def find_line(message: str) -> str:
    """Return the line of a message that says what is wrong: the cause that it quotes, or else its beginning."""
    text = NESTED.split(message)[-1].strip()
    if example := EXAMPLE.search(text):
        text = example["message"]
    lines = (TAIL.split(line, maxsplit=1)[0].strip(" .\"'") for line in text.splitlines())
    return next(filter(None, lines), "")[:LONGEST_REASON]
