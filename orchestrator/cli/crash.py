"""Reports bugs in tfcompare: one line for the terminal, and a traceback in a file that only its owner can read."""

import os
import sys
import tempfile
import traceback

from orchestrator.errors import InternalError
from orchestrator.redact import mask_login, redact_words

LONGEST = 160
# These variables hold addresses whose path may be a token.
SECRET_VARIABLES = ("TFCOMPARE_INDEX_URL", "TFCOMPARE_NOTIFY")


def record(error: BaseException) -> InternalError:
    """Write the traceback of an unexpected error to a file, and return an error that names both."""
    try:
        where = f"traceback in {_write(error)}; please report it with that file"
    except Exception:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else "no traceback"
        where = f"{place}, its traceback could not be written; please report it"
    return InternalError(f"this is a bug in tfcompare: {_summary(error)} ({where})")


def _write(error: BaseException) -> str:
    text = "\n".join(
        (
            f"command: {' '.join(redact_words(sys.argv[1:]))}",
            f"python: {sys.version}",
            f"platform: {' '.join(os.uname())}",
            "",
            "".join(traceback.format_exception(error)),
        )
    )
    descriptor, path = tempfile.mkstemp(prefix="tfcompare-crash-", suffix=".txt")
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(_hide_secrets(text))
    return path


def _summary(error: BaseException) -> str:
    try:
        message = " ".join(_hide_secrets(str(error)).split())
    except Exception:
        message = ""
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _hide_secrets(text: str) -> str:
    """Hide what a run would not record: an error may quote the command line, or an address with a login."""
    for variable in SECRET_VARIABLES:
        for value in os.environ.get(variable, "").split():
            text = text.replace(value, f"${{{variable}}}")
    words = sys.argv[1:]
    for word, redacted in zip(words, redact_words(words), strict=False):
        if word != redacted:
            text = text.replace(_value(word), _value(redacted))
    return mask_login(text)


def _value(word: str) -> str:
    return (word.partition("=")[2] if word.startswith("--") else "") or word
