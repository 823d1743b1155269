"""The formats of files that tfcompare writes and reads again: each has a number, and every file begins with it.

A reader reads one number. A change of a released format raises its number, and a reader of the previous number is kept
for one release.
"""

import re
from dataclasses import dataclass

MARK = re.compile(r"tfcompare\.(?P<name>[a-z]+)/(?P<number>\d{1,9})", re.ASCII)
# In an object that is also part of the interface, `schema` names the format.
HEAD = re.compile(rb'\s*\{\s*"(?:format|schema)"\s*:\s*"(?P<mark>[^"\\]{1,80})"\s*,')


class NoFormat(ValueError):
    """A file without the mark of its format: tfcompare did not write it, or it is damaged."""


class OtherFormat(ValueError):
    """A file with another number than the one that its reader reads."""


@dataclass(frozen=True)
class Format:
    name: str
    number: int
    # This says what to do with a file of another number.
    advice: str

    @property
    def mark(self) -> str:
        return f"tfcompare.{self.name}/{self.number}"

    def stamp(self, data: bytes) -> bytes:
        """Return a JSON object with the mark in front of its first key."""
        return b'{\n "format": "%s",%s' % (self.mark.encode(), data.removeprefix(b"{"))

    def unstamp(self, data: bytes) -> bytes:
        """Return a JSON object without the mark; raise NoFormat or OtherFormat."""
        head = HEAD.match(data)
        self.check(head["mark"].decode(errors="replace") if head else "")
        assert head
        return b"{" + data[head.end() :]

    def check(self, mark: str) -> None:
        """Raise NoFormat or OtherFormat unless a mark is that of this format and number."""
        match = MARK.fullmatch(mark)
        if match is None or match["name"] != self.name:
            raise NoFormat(f"it does not begin with the mark of its format ({self.mark})")
        if match["number"] != str(self.number):
            raise OtherFormat(f"its format is {mark}, and this tfcompare reads {self.mark}: {self.advice}")


# The files begun.json, plan.json and manifest.json carry the mark of a run folder, for everything in it.
RUN = Format("run", 1, "read it with the tfcompare that wrote it, or start a new run")
PROFILE = Format("profile", 1, "read it with the tfcompare that wrote it, or start a new profile")
SEARCH = Format("search", 1, "continue it with the tfcompare that wrote it, or start a new search")
WHY = Format("why", 1, "continue it with the tfcompare that wrote it, or ask again")
UPGRADE = Format("upgrade", 1, "continue it with the tfcompare that wrote it, or start again")
MODELS = Format("models", 1, "read it with the tfcompare that wrote it, or make the table again")
# Everybody may read the figures of an atlas; its state is for the atlas itself.
ATLAS = Format("atlas", 1, "read it with the tfcompare that wrote it, or build it again from its folder")
ATLAS_STATE = Format("atlasstate", 1, "continue it with the tfcompare that wrote it, or start a new atlas")
POINTS = Format("points", 1, "the tfcompare that wrote it reads it")
EVENT = Format("event", 1, "the tfcompare that wrote it reads it")
# These are formats of the user's data.
TRUST = Format("trust", 1, "use the tfcompare that wrote it")
FLEET = Format("fleet", 1, "`tfcompare fleet up` names its machines again")
FORMATS = (RUN, PROFILE, SEARCH, WHY, UPGRADE, MODELS, ATLAS, ATLAS_STATE, POINTS, EVENT, TRUST, FLEET)
