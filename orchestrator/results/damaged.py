"""The error for a file that is not what tfcompare writes: one line, however much of the file does not fit."""

from pathlib import Path

from pydantic import ValidationError

from orchestrator.errors import ContractBroken
from orchestrator.formats import NoFormat, OtherFormat
from orchestrator.terminal.text import clip, escape_unprintable

LONGEST = 160
UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
DAMAGED = "it is damaged, or another tfcompare wrote it"


def damage_error(path: Path, error: ValidationError, line: int | None = None) -> ContractBroken:
    """Return the error, with the first thing that does not fit."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    # A key that is unknown says more than the one that it is missing under.
    problems.sort(key=lambda problem: problem["type"] not in UNKNOWN)
    place = ".".join(map(str, problems[0]["loc"]))
    what = "it is no JSON" if problems[0]["type"] == "json_invalid" else problems[0]["msg"]
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    where = path if line is None else f"line {line} of {path}"
    found = clip(escape_unprintable(f"{place}: {what}" if place else what), LONGEST)
    return ContractBroken(f"{where} is not what this tfcompare writes ({found}{more}): {DAMAGED}")


def format_error(path: Path, error: NoFormat | OtherFormat) -> ContractBroken:
    """Return the error for a file without the mark of its format, or of another number."""
    if isinstance(error, NoFormat):
        return ContractBroken(f"{path} is not what this tfcompare writes ({error}): {DAMAGED}")
    return ContractBroken(f"{path} cannot be used: {error}")
