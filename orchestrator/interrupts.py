"""Signals that end a command: the first one raises KeyboardInterrupt, and none disturbs the clean-up that follows."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Ctrl-C, a polite end from outside, and a terminal or a connection that is gone.
NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Signals within this time are one: people press Ctrl-C several times, and a closing terminal sends two signals.
AGAIN_S = 5.0


class _Interrupts:
    def __init__(self) -> None:
        self._held = 0
        self._raised_at = -AGAIN_S
        self._pending = False

    def handle(self, number: int, frame: object) -> None:
        if self._held:
            self._pending = True
        else:
            self._raise()

    def _raise(self) -> None:
        now = time.monotonic()
        if now - self._raised_at >= AGAIN_S:
            self._raised_at = now
            raise KeyboardInterrupt

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Let no signal end this block; the first signal of all is obeyed at its end."""
        self._held += 1
        pending = False
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                pending, self._pending = self._pending, False
        if pending and self._raised_at < 0:
            self._raise()


_interrupts = _Interrupts()
hold = _interrupts.hold


def install() -> None:
    """Handle the signals, except those that the caller ignores, e.g. with nohup."""
    act_on(_interrupts.handle)


def act_on(handler: object) -> None:
    for number in NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)  # type: ignore[arg-type]
