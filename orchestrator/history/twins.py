"""Finds out that two machines write to a history under one id, such as a machine and its copy."""

from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

# Two machines that took turns longer ago than this count as one again.
RECENT = timedelta(days=14)


def has_twin(table: pa.Table, host: str, now: datetime, boot: str = "") -> bool:
    """Return whether what a host measured lately has a start of the machine that comes back after another one.

    The rows must be sorted oldest first. A machine that was started again never returns to an earlier start; `boot`
    names the one it has now.
    """
    since = pa.scalar(now - RECENT, table.schema.field("started").type)
    recent = pc.and_(pc.equal(table.column("host"), host), pc.greater_equal(table.column("started"), since))
    starts = [*table.filter(recent).column("boot").to_pylist(), boot]
    left: set[str] = set()
    current = ""
    for start in starts:
        # Without the time, which a clock may show otherwise later.
        start = start.rpartition(" ")[2]
        if not start or start == current:
            continue
        if start in left:
            return True
        left.add(current)
        current = start
    return False
