"""Measures a unit in a separate process, which the host's part of a fleet starts, and can end.

The first line of stdin is the task. Messages go to stdout, a line of JSON each; the last one says how the unit ended.
When stdin is closed, the unit is no longer wanted, and the process ends as if it were interrupted.
"""

import os
import sys
import threading
import traceback
from typing import BinaryIO

from pydantic import TypeAdapter

from orchestrator import interrupts
from orchestrator.errors import EngineUnavailable, InternalError, Interrupted, TfCompareError
from orchestrator.fleet.model import UnitEnd, UnitMessage, UnitTask
from orchestrator.measure.run import measure
from orchestrator.plan.planning import plan_run
from orchestrator.terminal.view import View

TASK, MESSAGE, END = TypeAdapter(UnitTask), TypeAdapter(UnitMessage), TypeAdapter(UnitEnd)


class Voice(View):
    """A view whose lines go to the process that started this one."""

    def __init__(self, task: UnitTask, out: BinaryIO) -> None:
        self._task = task
        self._out = out
        # Versions are prepared by several threads.
        self._speaking = threading.Lock()

    def say(self, text: str) -> None:
        self._tell(text, stays=text.startswith("warning: "))

    def preparing(self, version: str, text: str) -> None:
        self._tell(f"{version}: {text}")

    def round_done(self, number: int, most: int, cases: int, took_s: float, left_s: float) -> None:
        self._tell(f"round {number} of at most {most}")

    def _tell(self, text: str, *, stays: bool = False) -> None:
        task = self._task
        message = UnitMessage(unit=task.unit, copy=task.copy, attempt=task.attempt, text=text, stays=stays)
        self.write(MESSAGE.dump_json(message))

    def write(self, line: bytes) -> None:
        with self._speaking:
            self._out.write(line + b"\n")


def main() -> None:
    # Whatever prints to stdout must not be taken for a message.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    interrupts.catch_signals()
    task = TASK.validate_json(sys.stdin.buffer.readline())
    interrupts.end_with_stdin()
    voice = Voice(task, out)
    voice.write(END.dump_json(_measure(task, voice)))


def _measure(task: UnitTask, voice: Voice) -> UnitEnd:
    try:
        return _describe(measure(plan_run(task.options, voice), voice, alone=True).error)
    except TfCompareError as error:
        return _describe(error)
    except KeyboardInterrupt:
        return _describe(Interrupted("interrupted"))
    except Exception as error:
        traceback.print_exc()
        return _describe(InternalError(f"this is a bug in tfcompare: {type(error).__name__}: {error}"))


def _describe(error: TfCompareError | None) -> UnitEnd:
    if error is None:
        return UnitEnd(exit_code=0)
    occupied = isinstance(error, EngineUnavailable) and error.is_occupied
    return UnitEnd(exit_code=error.exit_code, error=str(error), occupied=occupied)
