"""Signals that end a command: the first one raises KeyboardInterrupt, and none disturbs the clean-up that follows."""

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

# These mean Ctrl-C, a polite end from outside, and a terminal or a connection that is gone.
NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Signals within this time count as one: people press Ctrl-C several times, and a closing terminal sends two signals.
AGAIN_S = 5.0
# The main thread has this long to notice a signal by itself.
NOTICE_S = 0.1
# Containers are freed and streams closed on a polite end. A process that has not ended after this time hangs.
POLITE_S = 60.0


class _Interrupts:
    def __init__(self) -> None:
        self._held = 0
        self._raised_at = -AGAIN_S
        self._pending = False
        self.handled_at = 0.0

    def handle(self, number: int, frame: object) -> None:
        self.handled_at = time.monotonic()
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
        """Keep signals from ending this block; if the very first one arrives here, it is raised when the block ends."""
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


def catch_signals() -> None:
    """Handle the signals, except those that the caller ignores, e.g. with nohup."""
    act_on(_interrupts.handle)
    _watch()


def act_on(handler: object) -> None:
    for number in NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)  # type: ignore[arg-type]


def end_with_stdin(silent_s: float | None = None) -> None:
    """End this process, which leads its session, once its stdin is closed: the process that started it has ended.

    With `silent_s`, it also ends if nothing arrives for this long, because a network may fail silently.

    It ends as if it were interrupted, and is killed with its group if it hangs. The kernel closes the other end of the
    pipe however that process ends, even if it ends before this one has begun. Programs that this process starts
    have no input.
    """
    stdin = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_end_after, args=(stdin, silent_s), daemon=True).start()


def _end_after(stdin: int, silent_s: float | None) -> None:
    while select.select([stdin], [], [], silent_s)[0] and os.read(stdin, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(POLITE_S)
    os.killpg(os.getpid(), signal.SIGKILL)


@cache
def _watch() -> None:
    """Make sure that the main thread notices each signal.

    The kernel may give a signal to any thread, and only the main thread acts on it. If that one is waiting for an
    install in another thread, it would notice the signal minutes later.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    # Python writes the number of each signal there, whichever thread gets it.
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    threading.Thread(target=_pass_on, args=(read_end,), daemon=True).start()


def _pass_on(read_end: int) -> None:
    """Send signals to the main thread that it has not noticed."""
    main = threading.main_thread().ident
    assert main is not None
    while number := os.read(read_end, 1):
        came = time.monotonic()
        time.sleep(NOTICE_S)
        if _interrupts.handled_at < came - NOTICE_S and signal.getsignal(number[0]) == _interrupts.handle:
            signal.pthread_kill(main, number[0])
