"""Validated Arrow result streams: pydantic states what a row is, and whole columns are checked against it."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import annotated_types
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator import contract, files
from orchestrator.errors import ContractBroken
from orchestrator.model import Target
from orchestrator.results.arrow_messages import OddMessage, read_batches

Phase = Literal["build", "first", "second", "warmup", "burst"]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
# A call of more than a day is a broken clock, not a measurement.
Duration = Annotated[int, Field(ge=0, le=86_400 * 10**9)]
Amount = Annotated[int, Field(ge=0, le=2**62)]
Change = Annotated[int, Field(ge=-(2**62), le=2**62)]

# No run makes twenty million calls of one version, and the machine's memory has to hold all rows.
MOST_BYTES = contract.LARGEST_FILE
MOST_ROWS = 20_000_000
# The dictionaries of all batches together have at most this many labels; a replicate has about ten.
MOST_LABELS = 4_000_000


class Row(BaseModel):
    """One timed call. The contract's table is authoritative; a test keeps the two equal."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    run: str
    target: str
    case: str
    round: Count
    position: Count
    replicate: Count
    burst: Count
    phase: Phase
    ordinal: Count
    wall_ns: Duration
    # This is the sum of all threads, which may exceed the wall time.
    cpu_ns: Amount
    steps: Annotated[int, Field(ge=1, le=2**31 - 1)]
    import_ns: Duration | None
    resident_kb: Amount | None
    minor_faults: Amount | None
    major_faults: Amount | None
    involuntary_switches: Amount | None
    steal_ns: Amount | None
    psi_us: Amount | None
    traces: Count | None
    later_traces: Count | None
    calls: Count | None
    untimed_ns: Duration | None
    items: Annotated[int, Field(ge=1, le=2**31 - 1)] | None
    first_step_ns: Duration | None
    step_ns: Duration | None
    losses: str | None
    device: str | None
    gpu_memory_kb: Amount | None
    energy_uj: Amount | None
    memory_kb: Amount | None
    growth_bytes: Change | None
    growth_calls: Count | None
    python_calls: Amount | None
    next_python_calls: Amount | None
    operations: Amount | None
    next_operations: Amount | None
    output: str | None
    fifth_output: str | None


@dataclass(frozen=True)
class Stream:
    """The results of one worker, the `part`-th of its version.

    `target` is None if the file's name does not contain it. While `live`, the worker may still write to the stream.
    """

    target: Target | None
    part: int
    path: Path
    root: Path
    live: bool = False

    @classmethod
    def at(cls, path: Path) -> "Stream":
        """Return a stream outside of any run folder."""
        return cls(None, 0, path, path.parent)

    @property
    def name(self) -> str:
        """The stream's path below its root, for people."""
        return str(self.path.relative_to(self.root))


def read_stream(path: Path, root: Path | None = None, *, live: bool = False) -> tuple[pa.Table, bool]:
    """Return the complete batches of a stream, and whether it was cut short. Follow no link below `root`."""
    try:
        # The whole file is read at once, because a worker may change it meanwhile.
        data = files.read(root or path.parent, path, MOST_BYTES, names=1 if live else None)
    except OSError as error:
        raise ContractBroken(f"{path} cannot be read: {error.strerror}; run its version again") from error
    return parse_stream(path, data)


def parse_stream(path: Path, data: bytes) -> tuple[pa.Table, bool]:
    expected = contract.arrow_schema(pa)
    if not data:
        return pa.Table.from_batches([], expected), True
    try:
        _refuse_bombs(data)
        table, cut = _read_batches(path, data, expected)
        # Arrow trusts its input, and would follow a damaged offset or index out of its memory.
        table.validate(full=True)
        _check_hidden_indices(table)
    except OddMessage as odd:
        raise ContractBroken(f"{path} holds {odd}, which no worker writes; its version has to be run again") from odd
    except (pa.ArrowException, OSError) as error:
        raise ContractBroken(f"{path} is not an Arrow stream ({error}); its version has to be run again") from error
    return table.unify_dictionaries().combine_chunks(), cut


def _check_hidden_indices(table: pa.Table) -> None:
    """Raise ArrowInvalid if the index stored under a null points outside its dictionary.

    Arrow validates only the indices of values, but follows those under nulls also when it unifies dictionaries.
    """
    for column in table.columns:
        if not pa.types.is_dictionary(column.type):
            continue
        for chunk in filter(len, column.chunks):
            _, buffer = chunk.indices.buffers()
            indices = np.frombuffer(buffer, dtype=np.int32, count=len(chunk), offset=4 * chunk.offset)
            # A chunk that has only nulls has no dictionary, and writers store a 0 under each null.
            if not 0 <= indices.min() <= indices.max() <= max(0, len(chunk.dictionary) - 1):
                raise pa.ArrowInvalid("an index under a null points outside its dictionary")


def _refuse_bombs(data: bytes) -> None:
    """Raise OddMessage if the batches would take far more memory than the file has bytes."""
    rows = labels = 0
    for batch in read_batches(data):
        if batch.compressed:
            raise OddMessage("a compressed batch")
        if batch.length < 0:
            raise OddMessage("a batch of a negative length")
        if batch.labels:
            labels += batch.length
        else:
            rows += batch.length
        if rows > MOST_ROWS:
            raise OddMessage(f"more than {MOST_ROWS:,} rows")
        if labels > MOST_LABELS:
            raise OddMessage(f"more than {MOST_LABELS:,} labels")


def compact_stream(path: Path, data: bytes) -> bytes:
    """Return a closed stream as one batch.

    A worker writes one batch per replicate, and ten thousand of them take seconds to read. A stream that was cut short,
    or data that is not a stream, is returned unchanged.
    """
    try:
        table, cut = parse_stream(path, data)
    except ContractBroken:
        return data
    if cut:
        return data
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _read_batches(path: Path, data: bytes, expected: pa.Schema) -> tuple[pa.Table, bool]:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        metadata = reader.schema.metadata or {}
        fingerprint = metadata.get(contract.FINGERPRINT_KEY, b"none").decode("ascii", "replace")
        if fingerprint != contract.FINGERPRINT:
            raise ContractBroken(
                f"{path} was written under contract {fingerprint}, this tfcompare reads {contract.FINGERPRINT}; "
                "read it with the tfcompare that wrote it (see the run's manifest.json), or run again"
            )
        if not reader.schema.equals(expected):
            raise ContractBroken(f"{path} has different columns from its contract; run its version again")
        try:
            return reader.read_all(), False
        except (pa.ArrowException, OSError):
            pass
    # Reading one batch at a time is slow, but finds where a stream was cut.
    batches: list[pa.RecordBatch] = []
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        while True:
            try:
                batches.append(reader.read_next_batch())
            except StopIteration:
                return pa.Table.from_batches(batches, expected), False
            except (pa.ArrowException, OSError):
                return pa.Table.from_batches(batches, expected), True


def check_rows(path: Path, table: pa.Table, run: str, target: Target | None = None) -> pa.Table:
    """Return the table if all its rows are valid; otherwise raise ContractBroken for the first row that is not.

    Every value must be one that `Row` allows, and every row must belong to this run and, if `target` is given, to this
    target.
    """
    bad = np.zeros(table.num_rows, dtype=bool)
    for column in contract.FIELDS:
        array = table[column.name]
        if not column.nullable and array.null_count:
            bad |= array.is_null().to_numpy(zero_copy_only=False)
        if column.type != "label":
            bad |= _outside(array, *find_limits(column.name))
    bad |= _unknown(table, "phase", contract.PHASES)
    bad |= _unknown(table, "run", (run,))
    if target is not None:
        bad |= _unknown(table, "target", (str(target),))
    if bad.any():
        number = int(np.argmax(bad))
        raise ContractBroken(f"{path}, row {number}: {_explain(table.slice(number, 1).to_pylist()[0], run, target)}")
    return table


def find_limits(name: str) -> tuple[int, int]:
    """Return the least and the greatest value that `Row` allows for a numeric field."""
    metadata = list(Row.model_fields[name].metadata)
    for option in getattr(Row.model_fields[name].annotation, "__args__", ()):
        metadata += [item for part in getattr(option, "__metadata__", ()) for item in part.metadata]
    low = next(item.ge for item in metadata if isinstance(item, annotated_types.Ge))
    high = next(item.le for item in metadata if isinstance(item, annotated_types.Le))
    return int(low), int(high)  # type: ignore[call-overload]


def _outside(array: pa.ChunkedArray, lowest: int, highest: int) -> Any:
    """Return which values are out of bounds; a null never is.

    Returns False if no value is out of bounds, which the extremes of the column show at once.
    """
    extremes = pc.min_max(array).as_py()
    if extremes["min"] is None or lowest <= extremes["min"] <= extremes["max"] <= highest:
        return False
    values = array.fill_null(lowest).to_numpy()
    return (values < lowest) | (values > highest)


def _unknown(table: pa.Table, name: str, allowed: Collection[str]) -> Any:
    """Return which rows have a label that is not allowed, decided once per distinct label, not once per row."""
    words, codes = labels(table, name)
    return np.array([word not in allowed for word in words])[codes]


def labels(table: pa.Table, name: str) -> tuple[list[str | None], Any]:
    """Return the distinct labels of a column, with None as the last, and the index of each row's label."""
    if table.num_rows == 0:
        return [None], np.array([], dtype=np.int32)
    column = table[name].chunk(0)
    words = column.dictionary.to_pylist()
    codes = column.indices.fill_null(len(words)) if column.null_count else column.indices
    return [*words, None], as_numpy(codes)


def column_numbers(table: pa.Table, name: str) -> Any:
    """Return the numbers of a column without nulls."""
    chunked = table[name]
    return as_numpy(chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks())


def is_phase(table: pa.Table, phase: Phase) -> Any:
    """Return which rows are of this phase."""
    words, codes = labels(table, "phase")
    return codes == (words.index(phase) if phase in words else -1)


def as_numpy(array: pa.Array) -> Any:
    """Return a NumPy view of an array.

    Arrow's own conversion imports pandas if it is installed, which takes longer than reading a column.
    """
    return np.from_dlpack(array)


def as_arrow(numbers: Any) -> pa.Array:
    """Convert whole numbers back to Arrow, also without pandas."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers.astype(np.int64))])


def _explain(row: dict[str, Any], run: str, target: Target | None) -> str:
    try:
        Row.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']} (it is {first['input']!r})"
    if row["run"] != run:
        return f"run: it belongs to run {row['run']!r}, not to {run!r}"
    return f"target: its row names {row['target']!r}, and {str(target)!r} wrote it"
