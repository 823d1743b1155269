"""Notifies people of nightly runs through apprise: mail, chats, webhooks.

A target that is down never makes a nightly run fail. A URL usually contains a secret, so it is shown only as
`scheme://host/…`.
"""

import logging
import os
import re
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import UsageError
from orchestrator.history.model import NightReport
from orchestrator.nightly.message import MOST, Message, compose, trial
from orchestrator.redact import mask_url

if TYPE_CHECKING:
    import apprise

VARIABLE = "TFCOMPARE_NOTIFY"
# Seconds before each attempt. No further one is begun when it would begin later than MOST_S after the first.
WAITS = (0, 2, 8, 20)
MOST_S = 60.0
# Longer than apprise waits for a mail server; what drips byte by byte has no other end.
PATIENCE_S = 16.0
# Services count characters in their own ways.
ROOM = 0.9

NAME = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

ADVICE = {
    401: ": are user, password and token right?",
    403: ": are user, password and token right?",
    404: ": is the address right?",
    413: ": the message is too long for it",
}
# What libraries say, what of that is told, and whether it may go better in a while.
REASONS = (
    (r"certificate", "its certificate is not trusted here", False),
    (r"name or service not known|getaddrinfo|name resolution|nodename nor", "its host name is not known here", True),
    (r"connection refused", "it refused the connection", True),
    (r"timed out|timeout", "it did not answer in time", True),
    (r"unreachable|no route to host", "there is no way to it through the network", True),
    (r"starttls|ssl", "no encrypted connection to it could be made", False),
    (r"connection (aborted|reset)|remote end closed|unexpectedly closed", "it broke off the connection", True),
)
THREADS = "notify"

Say = Callable[[str], None]
Composed = Callable[[int], Message]


@dataclass(frozen=True, kw_only=True)
class Target:
    name: str
    url: str = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """The result of an attempt to notify a target.

    The reason is in tfcompare's own words, since those of libraries may quote secrets.
    """

    delivered: bool
    why: str = ""
    again: bool = True


def _aloud(text: str) -> None:
    print(text, file=sys.stderr)


def targets(
    urls: Sequence[str], file: Path | None, environ: Mapping[str, str], say: Say = _aloud
) -> tuple[Target, ...]:
    """Return the targets named by arguments, environment and file.

    A target that cannot be used is an error now, and not at the end of a nightly run.
    """
    by_url: dict[str, Target] = {}
    for where, text in _collect_urls(urls, file, environ, say):
        url = _expand(where, text, environ)
        if url not in by_url:
            _plugin(url, where)
            by_url[url] = Target(name=mask_url(url), url=url)
    names = Counter(target.name for target in by_url.values())
    return tuple(
        replace(target, name=f"{target.name} (target {number})") if names[target.name] > 1 else target
        for number, target in enumerate(by_url.values(), start=1)
    )


def _collect_urls(
    urls: Sequence[str], file: Path | None, environ: Mapping[str, str], say: Say
) -> Iterator[tuple[str, str]]:
    """Yield each URL with the source by which a message names it."""
    yield from (("--notify", url.strip()) for url in urls)
    yield from ((VARIABLE, url) for url in environ.get(VARIABLE, "").split())
    if file is None:
        return
    try:
        text = file.read_text(encoding="utf-8")
        mode = file.stat().st_mode
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"--notify-file {file}: cannot be read: {why}") from None
    if os.name == "posix" and mode & 0o044:
        say(f"warning: {file} can be read by others than its owner, and has secrets in it; chmod 600 {file}")
    for number, line in enumerate(text.splitlines(), start=1):
        # Within an URL a # is its own, as in a channel's name.
        if url := re.sub(r"(^|\s)#.*", "", line).strip():
            yield f"{file}, line {number}", url


def _expand(where: str, text: str, environ: Mapping[str, str]) -> str:
    for name in NAME.findall(text):
        if not environ.get(name):
            raise UsageError(f"{where}: names ${{{name}}}, and the environment has no {name}; set it, or name another")
    if "${" in NAME.sub("", text):
        raise UsageError(f"{where}: a name in ${{…}} is made of letters, digits and _")
    return NAME.sub(lambda match: environ[match[1]], text)


def _plugin(url: str, where: str) -> "apprise.NotifyBase":
    try:
        import apprise
    except ModuleNotFoundError as error:
        raise UsageError(f"{where}: notifications need apprise: pip install 'tfcompare[notify]'") from error
    _ear()
    # Pictures would be fetched from elsewhere by whoever reads the message.
    asset = apprise.AppriseAsset(
        app_id="tfcompare", app_desc="tfcompare", app_url="", image_url_mask="", image_url_logo=""
    )
    plugin = apprise.Apprise.instantiate(url, asset=asset)
    if plugin is None:
        raise UsageError(
            f"{where}: {mask_url(url)} is nothing that apprise can tell: its kind is not known, a part of it is "
            "missing, or it needs a package that is not installed; `apprise --details` lists the kinds and their parts"
        )
    return plugin


def send(
    report: NightReport,
    targets: Sequence[Target],
    *,
    heartbeat: bool,
    say: Say,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[str, ...]:
    """Notify the targets of a nightly run, and return one line about each that could not be notified.

    If nothing happened, nothing is sent unless a heartbeat is wanted.
    """
    if not targets or not (report.happened or heartbeat):
        return ()
    host = socket.gethostname()
    return _tell(targets, lambda most: compose(report, host, most), say, sleep)


def try_out(targets: Sequence[Target], say: Say, sleep: Callable[[float], None] = time.sleep) -> tuple[str, ...]:
    """Send a test message to the targets, and return one line about each that could not be notified."""
    message = trial(socket.gethostname())
    return _tell(targets, lambda most: message, say, sleep)


def _tell(targets: Sequence[Target], composed: Composed, say: Say, sleep: Callable[[float], None]) -> tuple[str, ...]:
    began = time.monotonic()
    pending = [_Delivery(target, composed) for target in targets]
    lost: list[str] = []
    for number, wait in enumerate(WAITS):
        if number:
            if not pending or time.monotonic() - began + wait > MOST_S:
                break
            for delivery in pending:
                say(f"{delivery.target.name}: {delivery.outcome.why}; tried again in {wait} s")
            sleep(wait)
        _attempt(pending)
        # Once: what is not there yet may be there a moment later.
        outcomes = [(delivery, delivery.outcome) for delivery in pending]
        for delivery, outcome in outcomes:
            if outcome.delivered:
                say(f"told {delivery.target.name}")
            elif not outcome.again:
                lost.append(delivery.describe_loss(outcome))
        pending = [delivery for delivery, outcome in outcomes if not outcome.delivered and outcome.again]
    return (
        *lost,
        *(delivery.describe_loss(delivery.outcome) for delivery in pending if not delivery.outcome.delivered),
    )


def _attempt(pending: "Sequence[_Delivery]") -> None:
    for delivery in pending:
        delivery.begin()
    end = time.monotonic() + PATIENCE_S
    for delivery in pending:
        delivery.wait(end - time.monotonic())


class _Delivery:
    """The delivery of a message to one target.

    Each attempt has a separate thread, so that all run at the same time and none is waited for endlessly.
    """

    def __init__(self, target: Target, composed: Composed) -> None:
        self.target = target
        self._composed = composed
        self._thread: threading.Thread | None = None
        self._result: Outcome | None = None
        self._attempts = 0

    @property
    def outcome(self) -> Outcome:
        return self._result or Outcome(delivered=False, why="it did not answer in time")

    def describe_loss(self, outcome: Outcome) -> str:
        times = "" if self._attempts == 1 else f" ({self._attempts} attempts)"
        return f"{self.target.name} was not told: {outcome.why}{times}"

    def begin(self) -> None:
        # One that did not answer in time may have got there since, or may yet: a second message would be one too many.
        if self.outcome.delivered or (self._thread and self._thread.is_alive()):
            return
        self._attempts += 1
        self._result = None
        self._thread = threading.Thread(target=self._run, name=f"{THREADS} {self.target.name}", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        assert self._thread is not None
        self._thread.join(max(seconds, 0.0))

    def _run(self) -> None:
        with _ear().listening() as heard:
            try:
                plugin = _plugin(self.target.url, self.target.name)
                delivered = bool(plugin.notify(**_fit_to_service(plugin, self._composed)))
            except Exception as error:
                heard.append(str(error))
                delivered = False
        self._result = Outcome(delivered=True) if delivered else _outcome(heard)


def _fit_to_service(plugin: "apprise.NotifyBase", composed: Composed) -> dict[str, Any]:
    """Return the message in the format that a service accepts, with as many alarms as it has room for."""
    import apprise

    form = _form(plugin)
    room = plugin.body_maxlen * ROOM
    for most in (MOST, 5, 3, 2, 1, 0):
        message = composed(most)
        body: str = getattr(message, form)
        # Services without titles get it as the first line.
        if len(body) + (len(message.title) + 2 if plugin.title_maxlen <= 0 else 0) <= room:
            title = message.title
            break
    else:
        # As in a text message to a telephone.
        title, body, form = "", composed(0).title, "text"
    return {
        "title": title,
        "body": body,
        "notify_type": apprise.NotifyType(message.gravity),
        "body_format": apprise.NotifyFormat(form),
    }


def _form(plugin: "apprise.NotifyBase") -> str:
    declared = plugin.notify_format
    several = declared if isinstance(declared, tuple | list) else (declared,)
    wanted = _best([str(getattr(form, "value", form)) for form in several])
    # Older releases know one form a service, and `format=` in an URL makes it that one.
    resolve = getattr(plugin, "resolve_format", None)
    return str(resolve(wanted).value) if resolve else wanted


def _best(forms: Sequence[str]) -> str:
    """Return the best of the formats that a service accepts.

    Chats read Markdown. All other services, including mail, get plain text if they accept it.
    """
    if "markdown" in forms and "html" not in forms:
        return "markdown"
    return "text" if "text" in forms else forms[0]


class _Ear(logging.Handler):
    """A log handler that listens to apprise.

    Only there does apprise report why something failed, and it quotes URLs in these messages. None of them is passed
    on.
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
def _ear() -> _Ear:
    ear = _Ear()
    log = logging.getLogger("apprise")
    log.addHandler(ear)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    # They tell the whole URL of every call, and warn of bad answers with it.
    for name in ("connection", "connectionpool", "response", "util.retry"):
        logging.getLogger(f"urllib3.{name}").addFilter(lambda record: not _is_ours(record))
    return ear


def _is_ours(record: logging.LogRecord) -> bool:
    return (record.threadName or "").startswith(THREADS)


def _outcome(heard: Sequence[str]) -> Outcome:
    """Return why a delivery failed, as far as that can be determined, and whether a later attempt may succeed."""
    text = "\n".join(heard)
    if any(line.startswith("Sent ") for line in heard):
        return Outcome(delivered=False, why="it did not take all of it, or not for all recipients", again=False)
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
    return Outcome(delivered=False, why="it could not be reached, or did not take it")
