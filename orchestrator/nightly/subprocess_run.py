"""Runs a measurement in a separate process, which can be ended when it hangs; its output is passed on and logged."""

import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import IO

from orchestrator import interrupts
from orchestrator.child_process import BOUND_PROGRAM, end_child
from orchestrator.errors import UsageError
from orchestrator.terminal.view import View

KEPT_LINES = 12
NAMING = ("run folder: ", "Next:  ")


@dataclass(frozen=True)
class ChildEnd:
    exit_code: int
    hung: bool
    # The last lines of its output may explain why it ended.
    last_lines: str

    @property
    def last_line(self) -> str:
        return (self.last_lines.splitlines() or ["it printed nothing"])[-1]


class Child:
    """A runner of tfcompare commands, one after another, with one time limit for all of them.

    Each command ends when this process ends, and holds `lock` until then.
    """

    def __init__(
        self,
        log: Path,
        limit_s: float,
        view: View,
        variables: Mapping[str, str] | None = None,
        what: str = "the nightly run",
        lock: int | None = None,
    ) -> None:
        self._log = log
        self._what = what
        self._held = () if lock is None else (lock,)
        # Every user of the machine can read a process's arguments, but only its owner can read its variables.
        self._environment = {**os.environ, **(variables or {})}
        self._until = time.monotonic() + limit_s
        self._limit_s = limit_s
        self._view = view

    @property
    def left_s(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def run(self, words: Sequence[str]) -> ChildEnd:
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            # The log has no buffer: on a full disk, writing the rest of it would fail when the log is closed.
            log = self._log.open("ab", buffering=0)
        except OSError as error:
            raise UsageError(f"cannot write {self._log}: {error.strerror}; take another --history") from error
        last: deque[str] = deque(maxlen=KEPT_LINES)
        process: subprocess.Popen[str] | None = None
        hung = False
        with log, ExitStack() as open_files:
            try:
                # An interrupt while the process starts would leave it running.
                with interrupts.hold():
                    process = self._start(words)
                    assert process.stdin is not None
                    assert process.stderr is not None
                    open_files.enter_context(process.stdin)
                    stream = open_files.enter_context(process.stderr)
                    reader = threading.Thread(target=self._pass_on, args=(stream, log, last), daemon=True)
                    reader.start()
                process.wait(self.left_s)
            except subprocess.TimeoutExpired:
                assert process is not None
                hung = True
                self._try_to_say(f"{self._what} takes longer than {self._limit_s / 3600:.3g} h and is ended")
                end_child(process, interrupts.POLITE_S)
            except BaseException:
                if process is not None:
                    end_child(process, interrupts.POLITE_S)
                raise
            reader.join(interrupts.POLITE_S)
        return ChildEnd(process.returncode, hung, "\n".join(last))

    def _start(self, words: Sequence[str]) -> subprocess.Popen[str]:
        # The process leads a session, so all that it started can be ended, and a Ctrl-C reaches only us, who pass it
        # on.
        return subprocess.Popen(
            [*BOUND_PROGRAM, *words],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=self._held,
        )

    def _pass_on(self, stream: IO[str], log: RawIOBase, last: deque[str]) -> None:
        """Pass on and log the stream to its end, even if that fails for some lines.

        If nothing read the pipe, the process would wait as soon as it is full.
        """
        logged = True
        for line in stream:
            try:
                log.write(line.encode())
            except OSError as error:
                if logged:
                    self._try_to_say(f"{self._log} is not complete: {error.strerror}")
                logged = False
            # These lines name the run's folder, which is renamed when the run is complete.
            if line.startswith(NAMING):
                continue
            last.append(line.rstrip("\n"))
            self._try_to_say(line.rstrip("\n"))

    def _try_to_say(self, text: str) -> None:
        # The listener may be gone; what was measured still counts.
        with suppress(Exception):
            self._view.say(text)
