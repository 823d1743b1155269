"""The headers of the messages in an Arrow stream, read before Arrow unpacks any message.

Arrow itself has no way to refuse a compressed batch, and a few kilobytes of one can take gigabytes of memory. A message
begins with a flatbuffer: tables whose fields are found by offsets (arrow/format/Message.fbs).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

# These are the positions of the fields in their tables.
HEADER_TYPE, HEADER, METADATA = 1, 2, 4
LENGTH, COMPRESSION = 0, 3
DATA = 1
# These are the values of the header's type.
SCHEMA, DICTIONARY_BATCH, RECORD_BATCH = 1, 2, 3
# The headers in streams of tfcompare's workers have a few kilobytes.
MOST_HEADER_BYTES = 2**20


class OddMessage(ValueError):
    """A message that none of tfcompare's workers writes; the text says what is odd about it."""


@dataclass(frozen=True)
class Batch:
    """The header of a batch, which has rows or, if `labels` is true, the labels of a column."""

    labels: bool
    length: int
    compressed: bool


def read_batches(data: bytes) -> Iterator[Batch]:
    """Yield the header of each batch, up to where the stream ends or is cut; raise OddMessage."""
    reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(data))
    while True:
        try:
            header = reader.read_next_message().metadata
        except (StopIteration, pa.ArrowException, OSError):
            return
        if len(header) > MOST_HEADER_BYTES:
            raise OddMessage(f"a header of more than {MOST_HEADER_BYTES / 2**20:.0f} MiB")
        try:
            batch = _read_header(memoryview(header))
        except struct.error as error:
            raise OddMessage("a header that is damaged") from error
        if batch:
            yield batch


def _read_header(header: memoryview) -> Batch | None:
    message = _Table(header, _at(header, "<I", 0))
    kind = message.number("<B", HEADER_TYPE)
    inner = message.table(HEADER)
    if inner is None or kind not in (DICTIONARY_BATCH, RECORD_BATCH):
        return None
    batch = inner.table(DATA) if kind == DICTIONARY_BATCH else inner
    if batch is None:
        return None
    # Arrow 0.17 stated the compression in the metadata of the message, and later releases still look there.
    compressed = batch.offset(COMPRESSION) is not None or message.offset(METADATA) is not None
    return Batch(kind == DICTIONARY_BATCH, batch.number("<q", LENGTH), compressed)


class _Table:
    """A table of a flatbuffer: it begins with the distance to the list of its fields' offsets."""

    def __init__(self, header: memoryview, start: int) -> None:
        self._header = header
        self._start = start
        self._fields = start - _at(header, "<i", start)
        self._fields_bytes = _at(header, "<H", self._fields)

    def offset(self, field: int) -> int | None:
        """Return the position of a field, or None if the table does not have it."""
        place = 4 + 2 * field
        if place + 2 > self._fields_bytes:
            return None
        distance = _at(self._header, "<H", self._fields + place)
        return self._start + distance if distance else None

    def number(self, form: str, field: int) -> int:
        place = self.offset(field)
        return 0 if place is None else _at(self._header, form, place)

    def table(self, field: int) -> "_Table | None":
        place = self.offset(field)
        return None if place is None else _Table(self._header, place + _at(self._header, "<I", place))


def _at(header: memoryview, form: str, place: int) -> int:
    # A negative place would be counted from the end.
    if place < 0:
        raise struct.error("a place before the header")
    number: int = struct.unpack_from(form, header, place)[0]
    return number
