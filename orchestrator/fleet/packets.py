"""Packets that a command and a host send each other over a pipe: texts with files. Nothing in them is executed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from orchestrator.errors import ContractBroken
from orchestrator.results.part_files import MOST_BYTES

# A line that begins differently was printed by something else, such as a start-up file of a shell.
MARK = b"\x1etfcompare "
# The head is the line before a text and its files. It and the text have at most this many bytes.
MOST_HEAD, MOST_TEXT = 2**23, 2**26
# A host sends messages while it works, and an answer at its end.
Kind = Literal["message", "answer"]


@dataclass(frozen=True)
class Packet:
    text: bytes
    contents: Mapping[str, bytes] = field(default_factory=dict)
    kind: Kind = "message"


HEAD: TypeAdapter[tuple[Kind, int, dict[str, int]]] = TypeAdapter(
    tuple[Kind, int, dict[str, int]], config=ConfigDict(strict=True)
)


def write_packet(out: IO[bytes], packet: Packet) -> None:
    sizes = {name: len(data) for name, data in packet.contents.items()}
    head = MARK + json.dumps([packet.kind, len(packet.text), sizes]).encode() + b"\n"
    out.write(b"".join((head, packet.text, *packet.contents.values())))
    out.flush()


def read_packet(source: IO[bytes], most_bytes: int | None = MOST_BYTES) -> Packet | None:
    """Return the next packet, or None at the end; raise ContractBroken for a malformed one."""
    head = source.readline(MOST_HEAD)
    while head and not head.startswith(MARK):
        head = source.readline(MOST_HEAD)
    if not head.endswith(b"\n"):
        return None
    try:
        kind, size, sizes = HEAD.validate_json(head.removeprefix(MARK))
    except ValidationError as error:
        raise ContractBroken("it sent a line that is not one of tfcompare's") from error
    total = sum(sizes.values())
    if min([size, *sizes.values()]) < 0 or size > MOST_TEXT or (most_bytes is not None and total > most_bytes):
        raise ContractBroken(f"it wanted to send {size + total} bytes, more than any unit has")
    data = source.read(size + total)
    if len(data) < size + total:
        return None
    contents, place = {}, size
    for name, length in sizes.items():
        contents[name] = data[place : place + length]
        place += length
    return Packet(data[:size], contents, kind)
