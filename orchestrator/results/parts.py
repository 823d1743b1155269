"""The runs that a merged run consists of: each stays as it was measured, and is read and judged separately.

On the disk, each part numbers its own replicates. In memory, the numbers of parts follow each other, so that no two are
the same.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from orchestrator.errors import ContractBroken
from orchestrator.model import Ended, Entry
from orchestrator.results.run_folder import RunFolder

# The column of a stream cannot hold a larger number.
MOST_REPLICATES = 2**31 - 1


def number_parts(run: RunFolder) -> Iterator[tuple[RunFolder, int]]:
    """Yield the parts of a run, or the run itself if it has none, with the number to add to those of its replicates."""
    first = 0
    for folder in run.parts or [run]:
        last = find_last_number(folder.entries())
        if first + last > MOST_REPLICATES:
            raise ContractBroken(f"{folder.path} numbers its replicates beyond {MOST_REPLICATES}, which no run has")
        yield folder, first
        first += last


def find_last_number(entries: Iterator[Entry]) -> int:
    return max((entry.replicate for entry in entries if isinstance(entry, Ended)), default=0)


def shift_numbers(table: pa.Table, first: int) -> pa.Table:
    """Return rows in which `first` is added to the numbers of replicates."""
    if not first:
        return table
    place = table.schema.get_field_index("replicate")
    shifted = pc.add(table.column(place), pa.scalar(first, table.schema.field(place).type))
    return table.set_column(place, table.schema.field(place), shifted)
