"""Measures a unit in a process of its host: `python -m orchestrator.fleet.measure`.

The task and the user's workloads come through stdin. Messages go to stdout, some of them with the results so far; the
last one says how the unit ended, and has the files of its run folder. When stdin is closed, or silent for too long, the
unit is no longer wanted, and the process ends as if it were interrupted.
"""

import os
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from pydantic import TypeAdapter

from orchestrator import interrupts
from orchestrator.engines.scratch import Scratch
from orchestrator.errors import EngineUnavailable, InternalError, Interrupted, TfCompareError
from orchestrator.fleet.host_process import SILENT_S
from orchestrator.fleet.model import Contents, UnitEnd, UnitMessage, UnitTask
from orchestrator.fleet.packets import Packet, read_packet, write_packet
from orchestrator.measure.run import measure
from orchestrator.plan.planning import plan_as_given
from orchestrator.results.part_files import read_files, write_files
from orchestrator.terminal.view import RoundDone, View

TASK, MESSAGE, END = TypeAdapter(UnitTask), TypeAdapter(UnitMessage), TypeAdapter(UnitEnd)


class PacketView(View):
    """A view whose lines go to the process that asked for the unit."""

    def __init__(self, task: UnitTask, run: Path, out: BinaryIO) -> None:
        self._task = task
        self._run = run
        self._out = out
        self._sent = time.monotonic()
        # Versions are prepared by several threads.
        self._speaking = threading.Lock()

    def say(self, text: str) -> None:
        self._tell(text, stays=text.startswith("warning: "))

    def preparing(self, version: str, text: str) -> None:
        self._tell(f"{version}: {text}")

    def round_done(self, done: RoundDone) -> None:
        self._tell(f"round {done.number} of at most {done.most}")

    def _tell(self, text: str, *, stays: bool = False) -> None:
        task = self._task
        message = UnitMessage(unit=task.unit, copy=task.copy, attempt=task.attempt, text=text, stays=stays)
        with self._speaking:
            is_due = time.monotonic() - self._sent >= task.sent_every_s
            self._sent = time.monotonic() if is_due else self._sent
            # If the other end of the pipe is closed, this process is about to be ended.
            with suppress(BrokenPipeError):
                write_packet(self._out, Packet(MESSAGE.dump_json(message), read_files(self._run) if is_due else {}))


def main() -> None:
    # Text that other code prints to stdout must not be taken for a message.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    interrupts.catch_signals()
    # The user's own command sends it, so workloads may have any size.
    question = read_packet(sys.stdin.buffer, most_bytes=None)
    if question is None:
        return
    # If a shell between ssh and this process leads the session, this process begins a new one.
    with suppress(PermissionError):
        os.setsid()
    interrupts.end_with_stdin(SILENT_S)
    with suppress(BrokenPipeError):
        write_packet(out, measure_task(TASK.validate_json(question.text), question.contents, out))


def measure_task(task: UnitTask, workloads: Contents, out: BinaryIO) -> Packet:
    """Measure a unit, and return how it ended, with the files of its run folder."""
    with Scratch() as scratch:
        run, own = scratch.path / "run", scratch.path / "workloads"
        options = replace(task.options, out=run, own_workloads=own if workloads else None)
        voice = PacketView(task, run, out)
        try:
            write_files(own, workloads, task.workloads.executable, task.workloads.folders)
            # Hosts have different GPUs, and the run has the arms that were planned for all of them.
            end = _describe(measure(plan_as_given(options, voice), voice, alone=True).error)
        except TfCompareError as error:
            end = _describe(error)
        except KeyboardInterrupt:
            end = _describe(Interrupted("interrupted"))
        except OSError as error:
            told = f"{error.filename or 'a file'}: {error.strerror or error}"
            end = UnitEnd(exit_code=InternalError.exit_code, error=told)
        except Exception as error:
            traceback.print_exc()
            end = _describe(InternalError(f"this is a bug in tfcompare: {type(error).__name__}: {error}"))
        return Packet(END.dump_json(end), read_files(run), "answer")


def _describe(error: TfCompareError | None) -> UnitEnd:
    if error is None:
        return UnitEnd(exit_code=0)
    occupied = isinstance(error, EngineUnavailable) and error.is_occupied
    return UnitEnd(exit_code=error.exit_code, error=str(error), occupied=occupied)


if __name__ == "__main__":
    main()
