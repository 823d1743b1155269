"""What `nvidia-smi` reports of the GPUs, for when NVML's package is missing or its library does not answer."""

import csv
import re
import shutil
import subprocess
from functools import cache

FIELDS = (
    "index", "uuid", "name", "compute_cap", "driver_version", "memory.total", "power.limit", "persistence_mode",
    "mig.mode.current", "memory.free", "compute_mode", "fabric.state",
)  # fmt: skip
# How a driver names a question that it is too old for; it then answers none of the others either.
UNKNOWN_FIELD = re.compile(r'Field "([\w.]+)" is not a valid field')
# What a GPU has not: "[N/A]", "[Not Supported]", "[Unknown Error]", "Unknown Error".
NOTHING = re.compile(r"\[.*\]|N/A|ERR!|Unknown Error|")
TIMEOUT_S = 30.0

Row = dict[str, str | None]


def query_gpus() -> tuple[Row, ...]:
    """Return the fields of each GPU; nothing if there is no driver.

    A field is None if the GPU or its driver does not know it.
    """
    program = shutil.which("nvidia-smi")
    return _query(program) if program else ()


@cache
def _query(program: str) -> tuple[Row, ...]:
    """Ask nvidia-smi once per process: it takes up to seconds if no process holds the driver open."""
    fields: tuple[str, ...] = FIELDS
    while fields:
        argv = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            return ()
        if done.returncode == 0:
            lines = csv.reader(done.stdout.splitlines(), skipinitialspace=True)
            # "No devices were found", and that one is lost, stand where GPUs would.
            return tuple(_row(fields, values) for values in lines if values and values[0].isdigit())
        refused = UNKNOWN_FIELD.search(done.stdout + done.stderr)
        if refused is None or refused[1] not in fields:
            return ()
        fields = tuple(field for field in fields if field != refused[1])
    return ()


def _row(fields: tuple[str, ...], values: list[str]) -> Row:
    answers = {field: None if NOTHING.fullmatch(value) else value for field, value in zip(fields, values, strict=False)}
    return {field: answers.get(field) for field in FIELDS}
