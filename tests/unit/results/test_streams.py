"""Result streams are believed only as far as the contract goes, and a bad one is named with its file and row."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from orchestrator import contract
from orchestrator.results import arrow_messages, replicates, streams
from orchestrator.results.replicates import LoadedReplicates
from orchestrator.results.streams import Stream
from tests.support.builders import MS, RUN, case, rows, write_stream


def load(*paths: Path) -> LoadedReplicates:
    return replicates.load_replicates([Stream.at(path) for path in paths], RUN)


def told(stream: Path) -> str:
    """What is said of a stream that gives nothing."""
    loaded = load(stream)
    assert loaded.replicates == loaded.problems == ()
    (words,) = loaded.broken
    return words


BEYOND_A_DAY = 86_400 * 10**9 + 1
BAD_VALUES = {
    "a negative time": ("wall_ns", -1, "wall_ns: Input should be greater than or equal to 0 (it is -1)"),
    "more than a day": ("wall_ns", BEYOND_A_DAY, f"wall_ns: Input should be less than or equal to {BEYOND_A_DAY - 1}"),
    "the least int64": ("cpu_ns", -(2**63), "cpu_ns: Input should be greater than or equal to 0"),
    "the greatest int64": ("cpu_ns", 2**63 - 1, "cpu_ns: Input should be less than or equal to"),
    "no steps": ("steps", 0, "steps: Input should be greater than or equal to 1 (it is 0)"),
    "a negative round": ("round", -1, "round: Input should be greater than or equal to 0"),
    "a negative fact": ("traces", -1, "traces: Input should be greater than or equal to 0"),
    "no time": ("wall_ns", None, "wall_ns: Input should be a valid integer (it is None)"),
    "no case": ("case", None, "case: Input should be a valid string (it is None)"),
    "no phase": ("phase", None, "phase: Input should be 'build', 'first', 'second', 'warmup' or 'burst'"),
    "an unknown phase": (
        "phase",
        "cooldown",
        "phase: Input should be 'build', 'first', 'second', 'warmup' or 'burst'",
    ),
    "no run": ("run", None, "run: Input should be a valid string (it is None)"),
    "another run": ("run", "other", f"run: it belongs to run 'other', not to '{RUN}'"),
}


@pytest.mark.parametrize(("name", "value", "words"), BAD_VALUES.values(), ids=BAD_VALUES)
def test_a_bad_value_is_named_with_its_file_its_row_and_itself(tmp_path: Path, name: str, value: Any, words: str):
    batches = [rows(replicate=1), rows(replicate=2), rows(replicate=3)]
    batches[1][4][name] = value
    stream = write_stream(tmp_path / "a.arrow", batches)
    number = len(batches[0]) + 4
    assert told(stream).startswith(f"{stream}, row {number}: {words}")


@pytest.mark.parametrize("name", contract.REPLICATE_FIELDS)
def test_what_is_nullable_may_be_null_on_any_row(tmp_path: Path, name: str):
    batch = rows()
    batch[0][name] = None
    (found,) = load(write_stream(tmp_path / "a.arrow", [batch])).replicates
    assert getattr(found, name) is None


@pytest.mark.parametrize("field", [field for field in contract.FIELDS if field.type != "label"], ids=lambda f: f.name)
def test_the_bounds_themselves_are_allowed(tmp_path: Path, field: contract.Field):
    for bound in streams.find_limits(field.name):
        batch = rows(**{field.name: bound})
        assert load(write_stream(tmp_path / "a.arrow", [batch])).broken == ()


def test_an_empty_file_is_a_worker_that_never_came_to_write(tmp_path: Path):
    stream = tmp_path / "a.arrow.partial"
    stream.touch()
    loaded = load(stream)
    assert loaded.replicates == loaded.broken == ()
    assert loaded.problems == ("a.arrow.partial was not closed by its worker: read up to its last whole replicate",)


def test_a_stream_without_a_batch_is_a_version_that_measured_nothing(tmp_path: Path):
    assert load(write_stream(tmp_path / "a.arrow", [])) == LoadedReplicates()


@pytest.mark.parametrize("content", [b"hello, world\n" * 50, b"{}", b"\x00" * 4096, b"ARROW1\x00\x00" + b"x" * 100])
def test_a_file_that_is_no_stream_is_told_by_its_name(tmp_path: Path, content: bytes):
    stream = tmp_path / "a.arrow"
    stream.write_bytes(content)
    words = told(stream)
    assert words.startswith(f"{stream} is not an Arrow stream (") or f"{stream} has different columns" in words


def test_a_stream_under_another_contract_is_told_with_both(tmp_path: Path):
    foreign = contract.arrow_schema(pa).with_metadata({contract.FINGERPRINT_KEY: b"0123456789abcdef"})
    words = told(write_stream(tmp_path / "a.arrow", [rows()], foreign))
    assert f"written under contract 0123456789abcdef, this tfcompare reads {contract.FINGERPRINT}" in words


def test_a_stream_without_a_contract_is_told(tmp_path: Path):
    words = told(write_stream(tmp_path / "a.arrow", [rows()], contract.arrow_schema(pa).remove_metadata()))
    assert "was written under contract none" in words


def as_float(schema: pa.Schema) -> pa.Schema:
    return schema.set(schema.get_field_index("wall_ns"), pa.field("wall_ns", pa.float64(), nullable=False))


SCHEMAS = {
    "a column more": lambda schema: schema.append(pa.field("round2", pa.int32())),
    "a column less": lambda schema: schema.remove(len(schema) - 1),
    "a float, which could be NaN": as_float,
}


@pytest.mark.parametrize("change", SCHEMAS.values(), ids=SCHEMAS)
def test_a_stream_with_other_columns_than_its_contract_is_told(tmp_path: Path, change):
    schema = change(contract.arrow_schema(pa))
    batch = rows(round2=1)
    words = told(write_stream(tmp_path / "a.arrow", [batch], schema))
    assert words == f"{tmp_path / 'a.arrow'} has different columns from its contract; run its version again"


def batches_within(whole: bytes, size: int) -> int | None:
    """How many whole batches the first `size` bytes hold; None where not even the schema is whole."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(whole[:size])) as reader:
            found = 0
            while True:
                try:
                    reader.read_next_batch()
                except (StopIteration, pa.ArrowInvalid, OSError):
                    return found
                found += 1
    except pa.ArrowInvalid:
        return None


def test_a_stream_cut_anywhere_gives_its_whole_batches_and_never_raises(tmp_path: Path):
    whole = write_stream(tmp_path / "whole.arrow", [rows(replicate=number) for number in (1, 2, 3)]).read_bytes()
    cut = tmp_path / "a.arrow.partial"
    seen = set()
    for size in [*range(1, len(whole), 61), *range(len(whole) - 16, len(whole) + 1)]:
        cut.write_bytes(whole[:size])
        loaded, expected = load(cut), batches_within(whole, size)
        seen.add(expected)
        if expected is None:
            assert loaded.replicates == ()
            assert loaded.broken[0].startswith(f"{cut} is not an Arrow stream (")
            continue
        assert loaded.broken == ()
        assert [found.number for found in loaded.replicates] == [1, 2, 3][:expected]
    assert seen == {None, 0, 1, 2, 3}


def test_a_stream_with_damaged_bytes_never_raises_and_never_ends_the_process(tmp_path: Path):
    """Arrow follows offsets and indices wherever they point unless it is told to look first."""
    whole = write_stream(tmp_path / "whole.arrow", [rows(replicate=number) for number in (1, 2)]).read_bytes()
    damaged = tmp_path / "a.arrow"
    outcomes = set()
    for place in range(0, len(whole), 11):
        copy = bytearray(whole)
        copy[place] ^= 0xFF
        damaged.write_bytes(copy)
        loaded = load(damaged)
        outcomes.add(bool(loaded.broken))
        assert len(loaded.replicates) <= 2
    assert outcomes == {True, False}


def test_an_index_below_a_null_that_leads_out_of_its_dictionary_is_refused(tmp_path: Path):
    """Arrow's own validation passes it, and Arrow then ends the process."""
    schema = contract.arrow_schema(pa)
    values = rows()
    columns = [pa.array([row[field.name] for row in values], field.type) for field in schema]
    place = schema.get_field_index("device")
    stray = np.array([0] + [2**30] * (len(values) - 1), dtype=np.int32)
    validity = columns[place].indices.buffers()[0]
    indices = pa.Array.from_buffers(pa.int32(), len(values), [validity, pa.py_buffer(stray)])
    columns[place] = pa.DictionaryArray.from_arrays(indices, columns[place].dictionary, safe=False)
    path = tmp_path / "stray.arrow"
    with path.open("wb") as file, pa.ipc.new_stream(file, schema) as stream:
        for _ in range(2):
            stream.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    assert "an index under a null points outside its dictionary" in told(path)


def test_no_row_that_is_good_is_ever_validated_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    batches = [rows(replicate=number, bursts=(MS,) * 100) for number in range(20)]
    stream = write_stream(tmp_path / "a.arrow", batches)
    monkeypatch.setattr(streams.Row, "model_validate", lambda row: pytest.fail("a row was validated"))
    assert len(load(stream).replicates) == 20


def test_a_file_that_no_worker_would_write_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "MOST_BYTES", 1000)
    stream = write_stream(tmp_path / "a.arrow", [rows()])
    assert "it has more than 0 MiB" in told(stream)


def test_a_closed_stream_is_compacted_to_one_batch_that_says_the_same(tmp_path: Path):
    batches = [rows(case(style=name), replicate=number) for number, name in enumerate("abc", 1)]
    stream = write_stream(tmp_path / "a.arrow", batches)
    before, told = streams.read_stream(stream)[0], load(stream)
    stream.write_bytes(streams.compact_stream(stream, stream.read_bytes()))
    with pa.ipc.open_stream(stream.read_bytes()) as reader:
        assert [batch.num_rows for batch in reader] == [sum(map(len, batches))]
    assert streams.read_stream(stream)[0].to_pylist() == before.to_pylist()
    assert load(stream) == told


@pytest.mark.parametrize("content", ["cut", "text"])
def test_a_stream_that_is_not_whole_is_kept_as_it_is(tmp_path: Path, content: str):
    whole = write_stream(tmp_path / "a.arrow", [rows()] * 2).read_bytes()
    data = b"hello" if content == "text" else whole[:-200]
    assert streams.compact_stream(tmp_path / "a.arrow", data) == data


def zeros(rows: int, labels: int = 1) -> pa.RecordBatch:
    """A batch of rows that are all the same, with dictionaries of this many labels."""
    schema = contract.arrow_schema(pa)
    words = pa.array([f"{number}" for number in range(labels)])
    arrays = [
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), words)
        if pa.types.is_dictionary(field.type)
        else pa.array(np.zeros(rows, field.type.to_pandas_dtype()))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def packed(path: Path, *batches: pa.RecordBatch, **options: Any) -> Path:
    with pa.ipc.new_stream(path, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return path


COMPRESSED = "holds a compressed batch, which no worker writes; its version has to be run again"


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_batch_is_refused_before_it_takes_any_memory(tmp_path: Path, codec: str):
    """A few kilobytes of it unpack to a hundred megabytes."""
    bomb = packed(tmp_path / "a.arrow", zeros(10**6), compression=codec)
    assert bomb.stat().st_size < 10**6
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    peak = pool.max_memory()
    assert told(bomb) == f"{bomb} {COMPRESSED}"
    assert pa.total_allocated_bytes() == before
    assert pool.max_memory() == peak
    assert streams.compact_stream(bomb, bomb.read_bytes()) == bomb.read_bytes()


def test_a_compressed_batch_is_refused_behind_others_and_in_a_stream_that_is_cut(tmp_path: Path):
    whole = packed(tmp_path / "whole.arrow", zeros(1000), compression="zstd").read_bytes()
    good = write_stream(tmp_path / "good.arrow", [rows()]).read_bytes()
    bomb = tmp_path / "a.arrow"
    with pa.ipc.open_stream(good) as reader:
        begin = len(reader.schema.serialize())
    with pa.ipc.open_stream(whole) as reader:
        rest = whole[len(reader.schema.serialize()) :]
    bomb.write_bytes(good[:-8] + rest)
    assert begin < len(good)
    assert told(bomb) == f"{bomb} {COMPRESSED}"
    bomb.write_bytes(whole[:-100])
    assert told(bomb) == f"{bomb} {COMPRESSED}"


def test_a_batch_that_states_its_compression_as_arrow_017_did_is_refused(tmp_path: Path):
    batch = pa.RecordBatch.from_pylist(rows(), schema=contract.arrow_schema(pa))
    stream = tmp_path / "a.arrow"
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch, custom_metadata={"ARROW:experimental_compression": "zstd"})
    assert told(stream) == f"{stream} {COMPRESSED}"


def test_rows_and_labels_are_counted_over_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stream = packed(tmp_path / "a.arrow", zeros(600), zeros(600))
    monkeypatch.setattr(streams, "MOST_ROWS", 1200)
    assert "more than" not in told(stream)
    monkeypatch.setattr(streams, "MOST_ROWS", 1199)
    assert told(stream).startswith(f"{stream} holds more than 1,199 rows, which no worker writes")
    stream = packed(tmp_path / "b.arrow", zeros(10, labels=100))
    monkeypatch.setattr(streams, "MOST_LABELS", 499)
    assert told(stream).startswith(f"{stream} holds more than 499 labels")


@pytest.mark.parametrize("legacy", [False, True])
def test_what_every_pyarrow_writes_is_read(tmp_path: Path, legacy: bool):
    """Before 0.15, messages had no mark in front of their length."""
    stream = packed(tmp_path / "a.arrow", zeros(7), zeros(8), use_legacy_format=legacy)
    batches = list(arrow_messages.read_batches(stream.read_bytes()))
    assert [batch.length for batch in batches if not batch.labels] == [7, 8]
    assert not any(batch.compressed for batch in batches)
