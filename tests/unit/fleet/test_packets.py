"""What goes over a pipe arrives as it was, and what a stranger sends instead is refused before it takes memory."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import ContractBroken
from orchestrator.fleet.packets import MARK, MOST_HEAD, MOST_TEXT, Packet, read_packet, write_packet
from orchestrator.results.part_files import MOST_BYTES

CONTENTS = st.dictionaries(st.text(max_size=20), st.binary(max_size=50), max_size=5)


@given(packets=st.lists(st.builds(Packet, st.binary(max_size=50), CONTENTS, st.sampled_from(["message", "answer"]))))
def test_packets_arrive_as_they_were_sent_and_in_order(packets: list[Packet]):
    pipe = io.BytesIO()
    for packet in packets:
        write_packet(pipe, packet)
    pipe.seek(0)
    assert list(iter(lambda: read_packet(pipe), None)) == packets


def test_what_a_shell_prints_is_no_frame():
    pipe = io.BytesIO()
    pipe.write(b"Welcome to gpu1\n\xff\xfe\n")
    write_packet(pipe, Packet(b"{}", kind="answer"))
    pipe.seek(0)
    assert read_packet(pipe) == Packet(b"{}", kind="answer")
    assert read_packet(pipe) is None


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_a_frame_that_was_cut_is_none(cut: int):
    pipe = io.BytesIO()
    write_packet(pipe, Packet(b"text", {"journal.jsonl": b"data"}))
    assert read_packet(io.BytesIO(pipe.getvalue()[:cut])) is None


def head(*fields: object) -> bytes:
    return MARK + json.dumps(fields).encode() + b"\n"


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (MARK + b"no JSON\n", "it sent a line that is not one of tfcompare's"),
        (head("order", 0, {}), "it sent a line that is not one of tfcompare's"),
        (head("message", "4", {}), "it sent a line that is not one of tfcompare's"),
        (head("message", 1, {"a": 1.5}), "it sent a line that is not one of tfcompare's"),
        (head("message", -1, {}), "more than any unit has"),
        (head("message", 5, {"a": -5}), "more than any unit has"),
        (head("message", MOST_TEXT + 1, {}), "more than any unit has"),
        (head("message", 0, {"a": MOST_BYTES, "b": 1}), "more than any unit has"),
        (head("message", 10**30, {}), "more than any unit has"),
    ],
)
def test_what_is_no_frame_is_refused(sent: bytes, told: str):
    with pytest.raises(ContractBroken, match=told):
        read_packet(io.BytesIO(sent))


def test_a_line_without_an_end_takes_no_memory():
    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self.sent = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
            if self.sent > 3 * MOST_HEAD:
                return 0
            size = len(buffer)
            buffer[:] = b"x" * size
            self.sent += size
            return size

    assert read_packet(io.BufferedReader(Endless())) is None  # type: ignore[arg-type]


def test_workloads_of_the_user_may_be_of_any_size():
    pipe = io.BytesIO(head("message", 0, {"a": MOST_BYTES + 1}))
    assert read_packet(pipe, most_bytes=None) is None
