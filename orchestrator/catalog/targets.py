"""Targets as users write them: a version, perhaps with changes, such as `2.15 TF_ENABLE_ONEDNN_OPTS=0 as onednn-off`.

A text without changes names versions the way `--versions` does. Any other is one target; its name is what follows `as`,
or else its version with its changes.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from orchestrator import catalog
from orchestrator.catalog import did_you_mean, variables
from orchestrator.errors import UsageError

GRAMMAR = (
    "a target is VERSION, wheel=FILE or image=NAME, then any of NAME=VALUE, py=3.8 and keras=2, then perhaps `as NAME`"
)
KEYS = ("py", "keras", "wheel", "image")
PYTHON = re.compile(r"3\.\d{1,2}")
NAME = re.compile(r"[A-Za-z][\w.-]{0,39}")
# Names of files and tables take this form. A target with other characters, or more of them, needs a name after `as`.
USUAL_NAME = re.compile(r"[\w.+=,:-]{1,60}")
LONGEST = 4096

KerasNumber = Literal["", "2", "3"]


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A target with changes, as it was written. Exactly one of version, wheel and image is set."""

    version: str = ""
    wheel: Path | None = None
    image: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    python: str = ""
    keras: KerasNumber = ""
    name: str = ""

    @property
    def changes(self) -> tuple[str, ...]:
        """The changes, each as it is written."""
        keys = {"py": self.python, "keras": self.keras}
        named = [f"{key}={value}" for key, value in keys.items() if value]
        return (*named, *(f"{name}={value}" for name, value in self.variables))

    @property
    def is_foreign(self) -> bool:
        """Whether it is a wheel or an image, which no table has."""
        return not self.version

    def __str__(self) -> str:
        own = f"wheel={self.wheel}" if self.wheel else f"image={self.image}"
        return shlex.join([self.version or own, *self.changes, *(["as", self.name] if self.name else [])])


def is_plain(text: str) -> bool:
    """Return whether a text names versions, and changes nothing."""
    return "=" not in text and len(text.split()) < 2


def split_targets(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the targets that several texts name; only a text without changes is a list with commas."""
    return tuple(
        name
        for text in texts
        for name in (re.split(r"[,\s]+", text.strip(", \t\n")) if "=" not in text and " as " not in text else [text])
        if name
    )


def parse_target(text: str) -> Changed:
    """Parse a target with changes; raise UsageError, with the place, for anything else."""
    if len(text) > LONGEST:
        raise UsageError(f"a target of {len(text)} characters: {GRAMMAR}")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"target {text!r}: a quotation mark is not closed; {GRAMMAR}") from error
    if not text.isprintable():
        raise UsageError(f"target {text!r}: it has characters that cannot be printed; {GRAMMAR}")
    name = ""
    if "as" in words:
        *words, word, name = words if words[-1] != "as" else [*words, ""]
        if word != "as" or "as" in words or not NAME.fullmatch(name):
            raise UsageError(
                f"target {text!r}: after `as` comes its name, which ends it: letters, digits, '_', '-' and '.', the "
                "first a letter, at most 40"
            )
        if name in (catalog.ALL, catalog.LATEST) or catalog.NIGHTLY.fullmatch(name):
            raise UsageError(f"target {text!r}: {name!r} names versions; take another name")
    if not words:
        raise UsageError(f"target {text!r}: there is no version in it; {GRAMMAR}")
    first, *others = words
    found: dict[str, str] = {}
    for word in (first, *others) if "=" in first else others:
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"target {text!r}: {word!r} is no change, like NAME=VALUE; {GRAMMAR}")
        if not value and key in KEYS:
            raise UsageError(f"target {text!r}: {key}= has no value; {GRAMMAR}")
        if key in found:
            raise UsageError(f"target {text!r}: {key} is there twice")
        _check_change(text, key, value, first=word is first)
        found[key] = value
    return _make(text, "" if "=" in first else first, found, name)


def _check_change(text: str, key: str, value: str, *, first: bool) -> None:
    if key in ("wheel", "image"):
        if not first:
            raise UsageError(f"target {text!r}: {key}= takes the place of a version, and so comes first; {GRAMMAR}")
    elif first:
        raise UsageError(f"target {text!r}: it begins with {key}=, and not with a version; {GRAMMAR}")
    elif key in KEYS:
        fits = PYTHON.fullmatch(value) if key == "py" else value in ("2", "3")
        if not fits:
            raise UsageError(f"target {text!r}: {key}={value}: it is {'3.8 or the like' if key == 'py' else '2 or 3'}")
    elif not variables.NAME.fullmatch(key):
        raise UsageError(
            f"target {text!r}: unknown change {key!r}{did_you_mean(key, KEYS)}; variables are written in capital "
            f"letters, and {GRAMMAR}"
        )
    elif reason := variables.why_not_settable(key, value):
        raise UsageError(f"target {text!r}: {key} {reason}")


def _make(text: str, version: str, found: Mapping[str, str], name: str) -> Changed:
    changed = Changed(
        version=version,
        wheel=Path(found["wheel"]).expanduser().absolute() if "wheel" in found else None,
        image=found.get("image", ""),
        python=found.get("py", ""),
        keras=cast(KerasNumber, found.get("keras", "")),
        variables=tuple((key, value) for key, value in found.items() if key not in KEYS),
        name=name,
    )
    if changed.image and (changed.python or changed.keras):
        raise UsageError(f"target {text!r}: an image is used as it is; py= and keras= change a version")
    if changed.wheel and changed.keras:
        raise UsageError(f"target {text!r}: keras= changes a version of the table, and not a wheel")
    if not (version or name):
        raise UsageError(f"target {text!r}: give it a name, such as `{text} as mine`")
    usual = "+".join((version, *changed.changes))
    if not (name or USUAL_NAME.fullmatch(usual)):
        raise UsageError(f"target {text!r}: it is too long for tables and names of files; add `as` and a short name")
    return changed
