"""Listens to the log of apprise, and explains why a notification did not arrive.

The reason is given in tfcompare's own words: what apprise and its libraries log may quote a secret.
"""

import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

ADVICE = {
    401: ": are user, password and token right?",
    403: ": are user, password and token right?",
    404: ": is the address right?",
    413: ": the message is too long for it",
}
# Each entry is a pattern of what libraries log, the reason to report, and whether a later attempt may succeed.
REASONS = (
    (r"certificate", "its certificate is not trusted here", False),
    (r"name or service not known|getaddrinfo|name resolution|nodename nor", "its host name is not known here", True),
    (r"connection refused", "it refused the connection", True),
    (r"timed out|timeout", "it did not answer in time", True),
    (r"unreachable|no route to host", "there is no network route to it", True),
    (r"starttls|ssl", "no encrypted connection to it could be made", False),
    (r"connection (aborted|reset)|remote end closed|unexpectedly closed", "it closed the connection", True),
)
THREADS = "notify"


@dataclass(frozen=True)
class Outcome:
    """The result of an attempt to notify a target.

    The reason is in tfcompare's own words, since those of libraries may quote secrets.
    """

    delivered: bool
    why: str = ""
    again: bool = True


class LogCapture(logging.Handler):
    """A log handler that listens to apprise.

    Apprise reports only in its log why something failed. Its messages quote URLs, so none of them is passed on.
    """

    def __init__(self) -> None:
        super().__init__()
        self._heard: dict[int | None, list[str]] = {}

    @contextmanager
    def listening(self) -> Iterator[list[str]]:
        """Collect the messages that the current thread causes."""
        own = threading.get_ident()
        heard = self._heard[own] = []
        try:
            yield heard
        finally:
            del self._heard[own]

    def emit(self, record: logging.LogRecord) -> None:
        if (heard := self._heard.get(record.thread)) is not None:
            heard.append(record.getMessage())


@cache
def install_log_capture() -> LogCapture:
    capture = LogCapture()
    log = logging.getLogger("apprise")
    log.addHandler(capture)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    # These loggers write the whole URL of every call, also in warnings about bad answers.
    for name in ("connection", "connectionpool", "response", "util.retry"):
        logging.getLogger(f"urllib3.{name}").addFilter(lambda record: not (record.threadName or "").startswith(THREADS))
    return capture


def explain_failure(heard: Sequence[str]) -> Outcome:
    """Return why a delivery failed, as far as that can be determined, and whether a later attempt may succeed."""
    text = "\n".join(heard)
    if any(line.startswith("Sent ") for line in heard):
        return Outcome(delivered=False, why="it did not accept the whole message or all recipients", again=False)
    if status := re.search(r"\berror=(\d{3})\b", text):
        code = int(status[1])
        advice = ADVICE.get(code, "")
        return Outcome(delivered=False, why=f"it answered {code}{advice}", again=code >= 500 or code in (408, 425, 429))
    if answer := re.search(r"\(([45]\d\d), b?['\"]", text):
        code = int(answer[1])
        advice = ADVICE[401] if code in (530, 534, 535) else ""
        return Outcome(delivered=False, why=f"its mail server answered {code}{advice}", again=code < 500)
    for pattern, why, again in REASONS:
        if re.search(pattern, text, re.IGNORECASE):
            return Outcome(delivered=False, why=why, again=again)
    return Outcome(delivered=False, why="it could not be reached, or did not accept the message")
