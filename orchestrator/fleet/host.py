"""What a host of a fleet does: it says what it is, and it measures units, each in a separate process."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter

from orchestrator import contract, files, interrupts
from orchestrator.bundled import find_own_number
from orchestrator.child_process import end_group, has_ended
from orchestrator.engines import ENGINES
from orchestrator.engines.scratch import Scratch
from orchestrator.errors import EngineUnavailable, InternalError
from orchestrator.fleet.model import Contents, HostReport, Tell, UnitAnswer, UnitEnd, UnitTask
from orchestrator.machine.gpu import find_gpus
from orchestrator.machine.host import host_facts
from orchestrator.machine.occupied import find_simulated_name
from orchestrator.options import EngineOptions
from orchestrator.results.part_files import read_files, write_files

# The program of the process. Without -P a file in the working directory could pose as one of our modules.
PROGRAM = (sys.executable, "-P", "-c", "from orchestrator.fleet.measure import main; main()")
REPORT, TASK, END = TypeAdapter(HostReport), TypeAdapter(UnitTask), TypeAdapter(UnitEnd)


def describe_host() -> bytes:
    """Describe this machine."""
    engines = {}
    for name, info in ENGINES.items():
        engine = info.make(EngineOptions())
        try:
            engine.check()
            engines[name] = ""
        except EngineUnavailable as error:
            engines[name] = error.headline
        finally:
            engine.close()
    found = HostReport(
        tool=find_own_number(),
        contract=contract.FINGERPRINT,
        facts=dict(host_facts()),
        engines=engines,
        gpus=find_gpus(),
        free_mb=shutil.disk_usage(Path.home()).free // 2**20,
        simulated=find_simulated_name(),
    )
    return REPORT.dump_json(found)


def measure_unit(task: bytes, workloads: Contents, tell: Tell) -> tuple[bytes, Contents]:
    """Measure a unit, and return how it ended, as JSON, and the files of its run folder."""
    with Scratch() as scratch:
        answer = _measure(TASK.validate_json(task), workloads, tell, scratch.path)
    return END.dump_json(answer.end), answer.files


def _measure(task: UnitTask, workloads: Contents, tell: Tell, scratch: Path) -> UnitAnswer:
    run = scratch / "run"
    options = replace(task.options, out=run, own_workloads=scratch / "workloads" if workloads else None)
    try:
        write_files(scratch / "workloads", workloads, task.workloads.executable, task.workloads.folders)
        with (scratch / "stderr").open("wb") as errors, _start(errors) as process:
            try:
                end = _listen(process, replace(task, options=options), run, tell)
            except BaseException:
                _end(process)
                raise
            process.wait()
    except OSError as error:
        told = f"{error.filename or 'a file'} cannot be written: {error.strerror or error}"
        return UnitAnswer(UnitEnd(exit_code=InternalError.exit_code, error=told), {})
    if end is None:
        said = files.read_last_line(scratch / "stderr") or "it said nothing"
        end = UnitEnd(exit_code=process.returncode or InternalError.exit_code, error=f"its process died: {said}")
    return UnitAnswer(end, read_files(run))


def _start(errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    environment = dict(os.environ)
    # Ray hides all GPUs from a task that asks it for none.
    if environment.get("CUDA_VISIBLE_DEVICES") == "":
        del environment["CUDA_VISIBLE_DEVICES"]
    return subprocess.Popen(
        PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, start_new_session=True
    )


def _listen(process: "subprocess.Popen[bytes]", task: UnitTask, run: Path, tell: Tell) -> UnitEnd | None:
    """Pass on what the process says, with what it has measured so far; return how it ended, if it says so."""
    assert process.stdin
    assert process.stdout
    with suppress(BrokenPipeError):
        # It stays open: when it is closed, the process knows that the unit is no longer wanted.
        process.stdin.write(TASK.dump_json(task) + b"\n")
        process.stdin.flush()
    sent = time.monotonic()
    end = None
    for line in (ended.rstrip(b"\n") for ended in process.stdout):
        with suppress(ValueError):
            end = END.validate_json(line)
            continue
        now = time.monotonic()
        due = now - sent >= task.sent_every_s
        sent = now if due else sent
        tell(line, read_files(run) if due else {})
    return end


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process, as if it were interrupted; what does not end then is killed with all that it started."""
    assert process.stdin
    with suppress(OSError):
        process.stdin.close()
    has_ended(process, interrupts.POLITE_S)
    end_group(process)
