"""Reads a comment on a pull request that asks for a run, such as `/tfcompare --versions 2.15,2.16 --budget 10m`.

The comment decides what is measured: targets, cases, budget and the like. It chooses no code, place, engine or
recipient, and it counts only if a member of the repository wrote it. The run is of the commit that the pull request had
when the comment was written: if GitHub records a push at that time or later, nothing is measured.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.cli import parse
from orchestrator.cli.settings import find_needs
from orchestrator.cli.talk import say
from orchestrator.errors import TfCompareError, UsageError
from orchestrator.exports import forges

WORD = "/tfcompare"
MEMBERS = ("OWNER", "MEMBER", "COLLABORATOR")
LONGEST = 2000
FLAGS: Mapping[str, Sequence[str]] = {
    "run": (
        "versions", "target", "case", "suite", "budget", "rounds", "margin", "metric", "judge", "fail-on", "seed",
        "pairs",
    ),
    "upgrade": ("target", "case", "suite", "budget", "margin", "judge", "fail-on", "seed"),
}  # fmt: skip
SWITCHES: Mapping[str, Sequence[str]] = {"run": ("control",), "upgrade": ("no-remedies",)}
TARGETS = ("versions", "target")


class CommentRequest(NamedTuple):
    command: str
    words: tuple[str, ...]


def read_comment_request(event: Mapping[str, Any]) -> CommentRequest:
    """Return the command that a comment asks for; raise UsageError if it asks for none, or its author may not ask."""
    comment = event.get("comment")
    text = comment.get("body") if isinstance(comment, dict) else None
    if not isinstance(comment, dict) or not isinstance(text, str) or event.get("action") != "created":
        raise UsageError("this job was not started by a new comment")
    if comment.get("author_association") not in MEMBERS:
        raise UsageError("only members of the repository may ask for a run")
    line = text.partition("\n")[0].rstrip("\r")
    if len(line) > LONGEST or not line.isprintable():
        raise UsageError(f"the first line is longer than {LONGEST} characters or contains unprintable ones")
    try:
        first, *words = shlex.split(line) or [""]
    except ValueError as error:
        raise UsageError("a quotation mark of the comment is not closed") from error
    if first != WORD:
        raise UsageError(f"the comment does not begin with {WORD}")
    command = words.pop(0) if words[:1] and words[0] in FLAGS else "run"
    return CommentRequest(command, tuple(_check(command, words)))


def _check(command: str, words: Sequence[str]) -> list[str]:
    """Return the words of a comment, each value joined to its flag; raise UsageError for a word that is not listed."""
    left, checked = list(words), []
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            _check_target(word)
            checked.append(word)
            continue
        flag, equals, value = word.removeprefix("--").partition("=")
        if word == f"--{flag}" and flag in SWITCHES[command]:
            checked.append(word)
            continue
        if not word.startswith("--") or flag not in FLAGS[command]:
            known = ", ".join(f"--{name}" for name in (*FLAGS[command], *SWITCHES[command]))
            raise UsageError(f"a comment cannot set {word!r}; it can set {known}")
        if not equals and not left:
            raise UsageError(f"{word} has no value")
        value = value if equals else left.pop(0)
        if flag in TARGETS:
            _check_target(value)
        checked.append(f"--{flag}={value}")
    return checked


def _check_target(text: str) -> None:
    if parse.names_file(text) or find_needs("target", [text]):
        raise UsageError(f"{text!r}: a comment can only name versions and set harmless variables for them")


def main() -> None:
    """Write the commit, the command and its arguments to the outputs of the step, or say why nothing is measured."""
    try:
        request = read_comment_request(event := forges.read_event(os.environ))
        commit = forges.find_commit_before(forges.find_forge(os.environ), event["comment"].get("created_at"))
    except TfCompareError as error:
        say(f"nothing is measured: {error}")
        return
    with Path(os.environ["GITHUB_OUTPUT"]).open("a") as outputs:
        outputs.write(f"commit={commit}\ncommand={request.command}\narguments={shlex.join(request.words)}\n")
