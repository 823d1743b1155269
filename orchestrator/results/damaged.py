"""The error for a file that is not what tfcompare writes: one line, however many problems the file has."""

from pathlib import Path

from pydantic import ValidationError

from orchestrator.errors import ContractBroken
from orchestrator.formats import NoFormat, OtherFormat
from orchestrator.terminal.text import clip, escape_unprintable

LONGEST = 160
UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
DAMAGED = "it is damaged, or another tfcompare wrote it"


def damage_error(path: Path, error: ValidationError, line: int | None = None) -> ContractBroken:
    """Return the error, with the first problem in the file."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    # An unknown key says more than a missing one, because it may be that key under a wrong name.
    problems.sort(key=lambda problem: problem["type"] not in UNKNOWN)
    place = ".".join(map(str, problems[0]["loc"]))
    what = "it is no JSON" if problems[0]["type"] == "json_invalid" else problems[0]["msg"]
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    where = path if line is None else f"line {line} of {path}"
    found = clip(escape_unprintable(f"{place}: {what}" if place else what), LONGEST)
    return ContractBroken(f"{where} is not what this tfcompare writes ({found}{more}): {DAMAGED}")


def format_error(path: Path, error: NoFormat | OtherFormat) -> ContractBroken:
    """Return the error for a file that has no mark of its format, or the mark of another format number."""
    if isinstance(error, NoFormat):
        return ContractBroken(f"{path} is not what this tfcompare writes ({error}): {DAMAGED}")
    return ContractBroken(f"{path} cannot be used: {error}")
