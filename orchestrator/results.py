"""Arrow result streams, validated: pydantic states what a row is, numpy checks the columns against it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import annotated_types
import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.errors import ContractBroken
from workloads import contract

Phase = Literal["build", "first", "second", "warmup", "steady"]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
# A call of more than a day is a broken clock, not a measurement.
Duration = Annotated[int, Field(ge=0, le=86_400 * 10**9)]
Amount = Annotated[int, Field(ge=0, le=2**62)]


class Row(BaseModel):
    """One timed call. The contract's table is the truth; a test keeps the two equal."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    run: str
    version: str
    case: str
    round: Count
    position: Count
    replicate: Count
    burst: Count
    phase: Phase
    ordinal: Count
    wall_ns: Duration
    # All threads together: more than the wall time on many cores.
    cpu_ns: Amount
    steps: Annotated[int, Field(ge=1, le=2**31 - 1)]
    import_ns: Duration | None
    peak_rss_kb: Amount | None
    minor_faults: Amount | None
    major_faults: Amount | None
    involuntary_switches: Amount | None
    steal_ns: Amount | None
    psi_us: Amount | None
    traces: Count | None
    checksum: str | None


@dataclass(frozen=True)
class Replicate:
    """What a replicate's rows come to. Calls are given by the step; `calls_ns` is all of them together, and `rise` how
    the later half of its steady calls differs from the earlier half, as a log ratio of medians."""

    version: str
    case: str
    round: int
    build_ns: int
    number: int
    first_ns: float
    second_ns: float
    calls_ns: float
    steady_ns: float
    rise: float
    facts: Row


@dataclass(frozen=True)
class Loaded:
    """Every replicate that could be read, and what could not, in words."""

    replicates: tuple[Replicate, ...] = ()
    problems: tuple[str, ...] = ()
    broken: tuple[str, ...] = field(default=())


def load(streams: Iterable[Path], run: str) -> Loaded:
    """A stream that was cut short gives the rows up to its last flush; one that breaks the contract gives none."""
    replicates: list[Replicate] = []
    problems: list[str] = []
    broken: list[str] = []
    for path in streams:
        try:
            table, cut = read_stream(path)
            replicates.extend(summarise(path, check(path, table, run)))
        except ContractBroken as error:
            broken.append(str(error))
            continue
        if cut:
            problems.append(f"{path.name} was not closed by its worker: read up to its last whole replicate")
    return Loaded(tuple(replicates), tuple(problems), tuple(broken))


def read_stream(path: Path) -> tuple[pa.Table, bool]:
    """The whole batches of a stream, and whether it was cut short."""
    expected = contract.arrow_schema(pa)
    batches: list[pa.RecordBatch] = []
    cut = False
    if path.stat().st_size == 0:
        return pa.Table.from_batches([], expected), True
    try:
        with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as reader:
            _check_schema(path, reader.schema, expected)
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                except (pa.ArrowException, OSError):
                    cut = True
                    break
                # Arrow believes what it reads: a damaged offset or index would be followed out of memory.
                batch.validate(full=True)
                batches.append(batch)
    except (pa.ArrowException, OSError) as error:
        raise ContractBroken(f"{path} is no Arrow stream ({error}); its version has to be run again") from error
    return pa.Table.from_batches(batches, expected).unify_dictionaries().combine_chunks(), cut


def _check_schema(path: Path, found: pa.Schema, expected: pa.Schema) -> None:
    fingerprint = (found.metadata or {}).get(contract.FINGERPRINT_KEY, b"none").decode("ascii", "replace")
    if fingerprint != contract.FINGERPRINT:
        raise ContractBroken(
            f"{path} was written under contract {fingerprint}, this tfcompare reads {contract.FINGERPRINT}; "
            "read it with the tfcompare that wrote it (see the run's manifest.json), or run again"
        )
    if not found.equals(expected):
        raise ContractBroken(f"{path} carries other columns than its contract says; run its version again")


def check(path: Path, table: pa.Table, run: str) -> pa.Table:
    """The table, if every value is one that `Row` allows; else the first row that is not, explained by pydantic."""
    bad = np.zeros(table.num_rows, dtype=bool)
    for column in contract.FIELDS:
        array = table[column.name]
        if not column.nullable:
            bad |= array.is_null().to_numpy(zero_copy_only=False)
        if column.type == "label":
            continue
        lowest, highest = bounds(column.name)
        values = array.fill_null(lowest).to_numpy()
        bad |= (values < lowest) | (values > highest)
    bad |= ~np.isin(_text(table, "phase"), contract.PHASES)
    bad |= _text(table, "run") != run
    if bad.any():
        number = int(np.argmax(bad))
        raise ContractBroken(f"{path}, row {number}: {_explain(table.slice(number, 1).to_pylist()[0], run)}")
    return table


def bounds(name: str) -> tuple[int, int]:
    """The least and greatest value that `Row` allows for a numeric field."""
    metadata = list(Row.model_fields[name].metadata)
    for option in getattr(Row.model_fields[name].annotation, "__args__", ()):
        metadata += [item for part in getattr(option, "__metadata__", ()) for item in part.metadata]
    low = next(item.ge for item in metadata if isinstance(item, annotated_types.Ge))
    high = next(item.le for item in metadata if isinstance(item, annotated_types.Le))
    return int(low), int(high)  # type: ignore[call-overload]


def _explain(row: dict[str, Any], run: str) -> str:
    try:
        Row.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']} (it is {first['input']!r})"
    return f"run: it belongs to run {row['run']!r}, not to {run!r}"


def _text(table: pa.Table, name: str) -> Any:
    """A label column as objects; decoded once a distinct value, not once a row."""
    if table.num_rows == 0:
        return np.array([], dtype=object)
    column = table[name].chunk(0)
    words = np.array([*column.dictionary.to_pylist(), None], dtype=object)
    codes = column.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
    return words[codes]


def summarise(path: Path, table: pa.Table) -> list[Replicate]:
    """One summary a replicate: its build row, its first two calls, and the median of its steady calls a step."""
    if table.num_rows == 0:
        return []
    numbers = table["replicate"].to_numpy()
    phases = _text(table, "phase")
    walls = table["wall_ns"].to_numpy() / table["steps"].to_numpy()
    firsts, seconds = (_by_replicate(numbers, walls, phases == phase) for phase in ("first", "second"))
    steady = phases == "steady"
    medians = _medians(numbers[steady], walls[steady])
    rises = _rises(numbers[steady], table["ordinal"].to_numpy()[steady], walls[steady])
    called = phases != "build"
    totals = np.bincount(numbers[called], weights=table["wall_ns"].to_numpy()[called], minlength=int(numbers.max()) + 1)
    found: list[Replicate] = []
    for build in table.take(np.flatnonzero(phases == "build")).to_pylist():
        row = _validated(path, build)
        if row.replicate not in medians:
            raise ContractBroken(f"{path}: replicate {row.replicate} of {row.case} has no steady call; run it again")
        found.append(
            Replicate(
                version=row.version,
                case=row.case,
                round=row.round,
                number=row.replicate,
                build_ns=row.wall_ns,
                first_ns=firsts.get(row.replicate, 0.0),
                second_ns=seconds.get(row.replicate, 0.0),
                calls_ns=float(totals[row.replicate]),
                steady_ns=medians[row.replicate],
                rise=rises.get(row.replicate, 0.0),
                facts=row,
            )
        )
    return found


def _by_replicate(numbers: Any, walls: Any, chosen: Any) -> dict[int, float]:
    return dict(zip(numbers[chosen].tolist(), walls[chosen].tolist(), strict=True))


def _rises(numbers: Any, ordinals: Any, walls: Any) -> dict[int, float]:
    """Of each replicate: the log ratio of the median of its later calls to that of its earlier ones."""
    names, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    if len(names) == 0:
        return {}
    firsts = np.full(len(names), np.iinfo(ordinals.dtype).max)
    np.minimum.at(firsts, places, ordinals)
    late = ordinals - firsts[places] >= counts[places] / 2
    later, earlier = _medians(numbers[late], walls[late]), _medians(numbers[~late], walls[~late])
    return {
        name: float(np.log(max(later[name], 1.0) / max(earlier[name], 1.0))) for name in later.keys() & earlier.keys()
    }


def _validated(path: Path, row: dict[str, Any]) -> Row:
    try:
        return Row.model_validate(row)
    except ValidationError as error:
        raise ContractBroken(f"{path}: {error}") from error


def _medians(groups: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> dict[int, float]:
    """The median of `values` in each group, in one sort."""
    order = np.lexsort((values, groups))
    names, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    ordered = values[order]
    low = ordered[starts + (counts - 1) // 2]
    high = ordered[starts + counts // 2]
    return dict(zip(names.tolist(), ((low + high) / 2).tolist(), strict=True))
