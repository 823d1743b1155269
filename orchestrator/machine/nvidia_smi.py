"""The GPUs as `nvidia-smi` reports them, for when NVML's package is missing or its library does not answer."""

import csv
import re
import shutil
import subprocess
from functools import cache

FIELDS = (
    "index", "uuid", "name", "compute_cap", "driver_version", "memory.total", "power.limit", "persistence_mode",
    "mig.mode.current", "memory.free", "compute_mode", "fabric.state",
)  # fmt: skip
# A driver that is too old for a field names it in this message, and then reports no other field either.
UNKNOWN_FIELD = re.compile(r'Field "([\w.]+)" is not a valid field')
# A GPU reports a missing value as "[N/A]", "[Not Supported]", "[Unknown Error]" or "Unknown Error".
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
    """Ask nvidia-smi once per process: it can take seconds if no process holds the driver open."""
    fields: tuple[str, ...] = FIELDS
    while fields:
        argv = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            return ()
        if done.returncode == 0:
            lines = csv.reader(done.stdout.splitlines(), skipinitialspace=True)
            # Messages, such as "No devices were found" or that a GPU is lost, are printed in place of GPUs.
            return tuple(_row(fields, values) for values in lines if values and values[0].isdigit())
        refused = UNKNOWN_FIELD.search(done.stdout + done.stderr)
        if refused is None or refused[1] not in fields:
            return ()
        fields = tuple(field for field in fields if field != refused[1])
    return ()


def _row(fields: tuple[str, ...], values: list[str]) -> Row:
    answers = {field: None if NOTHING.fullmatch(value) else value for field, value in zip(fields, values, strict=False)}
    return {field: answers.get(field) for field in FIELDS}
