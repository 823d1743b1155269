"""stdout and stderr for a command line: a closed pipe, a full disk or a poor encoding never ends in a traceback."""

import codecs
import errno
import io
import os
import sys
import unicodedata
from typing import Any, TextIO

from orchestrator.errors import UsageError

# Each character becomes one character, so that tables and plots keep their shape.
ASCII = str.maketrans(
    "▁▂▃▄▅▆▇█" "▐▌" "│┃┊┄─━╌" "┤├┬┴┼┌┐└┘╭╮╰╯" "▲▼△▽▵▿▴▾" "◂▸◀▶←→" "●◆◇✓✗✕×" "·•…±≈µ" "–—‘’“”",
    "_,-~=+*#" "##" "||:.---" "||+++++++++++" "^v/\\^v'," "<><><>" "o*oyxxx" ".*~~~u" "--''\"\"",
)  # fmt: skip
AS_ASCII = "tfcompare.ascii"


class Output(io.FileIO):
    """The writing end of a standard stream. After the first failure it drops everything, also at shutdown."""

    def __init__(self, descriptor: int, *, needed: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._needed = needed
        # The system no longer recognizes a terminal that is gone.
        self._terminal = self.isatty()
        self._gone = False

    def write(self, data: Any) -> int:
        if self._gone:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self._gone = True
            closed = isinstance(error, BrokenPipeError) or (self._terminal and error.errno == errno.EIO)
            if not self._needed or closed:
                return len(data)
            raise UsageError(f"cannot write to stdout: {error.strerror}; make room, or write elsewhere") from error


def guard() -> None:
    """Guard the standard streams of this process; a stream that the caller closed is replaced by the null device."""
    codecs.register_error(AS_ASCII, _replace)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # This order gives each stream its usual descriptor, so that no other file can take it.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w":
            # Measuring continues even if no process reads progress and warnings.
            setattr(sys, name, _guard(stream, needed=name == "stdout"))


def write_utf8(text: str) -> None:
    """Print a document that names its encoding itself."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())


def _guard(stream: TextIO, *, needed: bool) -> TextIO:
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    # Only Python's own streams are guarded, not those that a program or a test has set.
    if type(stream) is not io.TextIOWrapper or type(raw) is not io.FileIO:
        return stream
    stream.flush()
    # Readers expect JSON and XML in UTF-8, so any other encoding would make them invalid.
    encoding = stream.encoding if stream.encoding.lower().startswith("utf") else "ascii"
    return io.TextIOWrapper(
        io.BufferedWriter(Output(raw.fileno(), needed=needed)),
        encoding=encoding,
        errors=AS_ASCII,
        line_buffering=stream.line_buffering or stream.write_through,
    )


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(map(_as_ascii, error.object[error.start : error.end])), error.end


def _as_ascii(character: str) -> str:
    """Return ASCII of the same width."""
    if unicodedata.combining(character):
        return ""
    replacement = character.translate(ASCII)
    wide = unicodedata.east_asian_width(character) in "WF"
    return replacement if replacement.isascii() else "??" if wide else "?"
