"""Notifies people of nightly runs through apprise: mail, chats, webhooks.

A target that is down never makes a nightly run fail. A URL usually contains a secret, so it is shown only as
`scheme://host/…`.
"""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.history.model import NightReport
from orchestrator.nightly.apprise_log import THREADS, Outcome, explain_failure, install_log_capture
from orchestrator.nightly.message import MOST, Message, compose, trial
from orchestrator.nightly.targets import NotifyTarget, load_plugin
from orchestrator.terminal.view import View

if TYPE_CHECKING:
    import apprise

# Each attempt is made after a wait of this many seconds. No attempt begins later than MOST_S after the first.
WAITS = (0, 2, 8, 20)
MOST_S = 60.0
# This is longer than apprise waits for a mail server; an answer that comes byte by byte has no other limit.
PATIENCE_S = 16.0
# Services count characters in their own ways.
ROOM = 0.9

Composed = Callable[[int], Message]


def send(
    report: NightReport,
    targets: Sequence[NotifyTarget],
    *,
    heartbeat: bool,
    view: View,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[str, ...]:
    """Notify the targets of a nightly run, and return one line about each that could not be notified.

    If nothing happened, nothing is sent unless a heartbeat is wanted.
    """
    if not targets or not (report.happened or heartbeat):
        return ()
    host = socket.gethostname()
    return _tell(targets, lambda most: compose(report, host, most), view, sleep)


def try_out(targets: Sequence[NotifyTarget], view: View) -> tuple[str, ...]:
    """Send a test message to the targets, and return one line about each that could not be notified."""
    message = trial(socket.gethostname())
    return _tell(targets, lambda most: message, view, time.sleep)


def _tell(
    targets: Sequence[NotifyTarget], composed: Composed, view: View, sleep: Callable[[float], None]
) -> tuple[str, ...]:
    began = time.monotonic()
    pending = [_Delivery(target, composed) for target in targets]
    lost: list[str] = []
    for number, wait in enumerate(WAITS):
        if number:
            if not pending or time.monotonic() - began + wait > MOST_S:
                break
            for delivery in pending:
                view.say(f"{delivery.target.name}: {delivery.outcome.why}; tried again in {wait} s")
            sleep(wait)
        _attempt(pending)
        # The outcomes are read only once, since an answer may arrive at any moment.
        outcomes = [(delivery, delivery.outcome) for delivery in pending]
        for delivery, outcome in outcomes:
            if outcome.delivered:
                view.say(f"told {delivery.target.name}")
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

    def __init__(self, target: NotifyTarget, composed: Composed) -> None:
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
        # A target that did not answer in time may still get the message, and must not get it twice.
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
        with install_log_capture().listening() as heard:
            try:
                plugin = load_plugin(self.target.url, self.target.name)
                delivered = bool(plugin.notify(**_fit_to_service(plugin, self._composed)))
            except Exception as error:
                heard.append(str(error))
                delivered = False
        self._result = Outcome(delivered=True) if delivered else explain_failure(heard)


def _fit_to_service(plugin: "apprise.NotifyBase", composed: Composed) -> dict[str, Any]:
    """Return the message in the format that a service accepts, with as many alarms as it has room for."""
    import apprise

    form = _form(plugin)
    room = plugin.body_maxlen * ROOM
    for most in (MOST, 5, 3, 2, 1, 0):
        message = composed(most)
        body: str = getattr(message, form)
        # Services without titles get the title as the first line.
        if len(body) + (len(message.title) + 2 if plugin.title_maxlen <= 0 else 0) <= room:
            title = message.title
            break
    else:
        # Only the title fits, e.g. into a text message to a telephone.
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
    # Older releases of apprise know one format per service, which `format=` in a URL replaces.
    resolve = getattr(plugin, "resolve_format", None)
    return str(resolve(wanted).value) if resolve else wanted


def _best(forms: Sequence[str]) -> str:
    """Return the best of the formats that a service accepts.

    Chats read Markdown. All other services, including mail, get plain text if they accept it.
    """
    if "markdown" in forms and "html" not in forms:
        return "markdown"
    return "text" if "text" in forms else forms[0]
