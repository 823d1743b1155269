"""The work of a host in a fleet: it describes itself, and measures units, each in a separate process."""

import os
import shutil
import sys
from pathlib import Path
from queue import SimpleQueue

from pydantic import TypeAdapter

from orchestrator import contract, interrupts
from orchestrator.bundled import find_own_number
from orchestrator.engines import ENGINES
from orchestrator.errors import EngineUnavailable
from orchestrator.fleet.host_process import HostProcess
from orchestrator.fleet.model import Contents, HostReport, SendMessage, TaskLost, UnitEnd, UnitTask
from orchestrator.fleet.packets import Packet, write_packet
from orchestrator.machine.gpu import find_gpus
from orchestrator.machine.host import host_facts
from orchestrator.machine.occupied import find_simulated_name
from orchestrator.options import EngineOptions

# The machine's Python gets these arguments. -P keeps files in the working directory from posing as our modules.
DESCRIBE, MEASURE = (("-P", "-m", f"orchestrator.fleet.{name}") for name in ("host", "measure"))
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


def measure_unit(task: bytes, workloads: Contents, send_message: SendMessage) -> tuple[bytes, Contents]:
    """Measure a unit in a separate process, and return how it ended, as JSON, and the files of its run folder."""
    environment = dict(os.environ)
    # Ray hides all GPUs from a task that asks it for none.
    if environment.get("CUDA_VISIBLE_DEVICES") == "":
        del environment["CUDA_VISIBLE_DEVICES"]
    messages: SimpleQueue[tuple[bytes, Contents] | None] = SimpleQueue()
    process = HostProcess(
        (sys.executable, *MEASURE),
        Packet(task, workloads),
        lambda text, contents: messages.put((text, contents)),
        environment=environment,
        at_end=lambda: messages.put(None),
    )
    try:
        while message := messages.get():
            send_message(*message)
    except BaseException:
        # The process is asked to end as if it were interrupted; if it does not, it is killed with all that it started.
        process.end()
        process.ended.wait(interrupts.POLITE_S)
        process.kill()
        raise
    if process.answer is None:
        raise TaskLost(f"its process died: {process.reason}")
    return process.answer.text, process.answer.contents


if __name__ == "__main__":
    write_packet(sys.stdout.buffer, Packet(describe_host(), kind="answer"))
