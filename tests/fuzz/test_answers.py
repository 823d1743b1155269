"""What a worker may answer: anything."""

import json

from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.engines.worker import events
from orchestrator.engines.worker.channel import Lines
from tests.fuzz.damage import damaged_json
from tests.fuzz.memory import bounded_memory

ANSWERS = [
    {"kind": "ready", "facts": {"tensorflow": "2.13.0", "gpu": None, "eager": True}, "import_ns": 5, "pid": 7},
    {"kind": "failed", "stage": "import", "message": "no module"},
    {
        "kind": "opened",
        "replicate": 1,
        "build_ns": 1,
        "first_ns": 5,
        "second_ns": 3,
        "steps": 2,
        "items": 0,
        "output": "",
        "threads": [1, 2],
    },
    {"kind": "measured", "replicate": 1, "walls_ns": [5, 6, 7], "cpu_ns": 18},
    {"kind": "closed", "replicate": 1, "rows": 9},
    {"kind": "died", "replicate": 1, "how": "exception", "reason": "ValueError: no", "log": "Traceback"},
    {"kind": "refused", "replicate": 1, "reason": "not in this version"},
    {"kind": "profiled", "replicate": 1, "profile": {"calls": 3, "functions": [{"name": "step", "total_ns": 5}]}},
    {"kind": "probed", "gpus": [{"name": "A100", "capability": "8.0"}], "driver": {}},
    {
        "kind": "probed",
        "gpus": [],
        "driver": {"library": "", "code": 802, "driver": 12040, "absent": ["libcudnn.so.8"]},
    },
    {"kind": "error", "message": "what?"},
    {"kind": "bye"},
]


def parses_or_refuses(line: str) -> None:
    try:
        with bounded_memory():
            event = events.parse_event(line)
    except (contract.ContractError, events.InvalidEvent) as error:
        str(error).encode("utf-8", "replace")
        return
    # Whatever is believed can be written to every file, and read again.
    event.model_dump_json().encode()


def test_the_answers_themselves_are_right():
    for answer in ANSWERS:
        events.parse_event(json.dumps(answer))


@given(st.text())
def test_any_line(line: str):
    parses_or_refuses(line)


@given(st.one_of([damaged_json({"answer": answer}) for answer in ANSWERS]))
def test_a_damaged_answer(damaged: object):
    answer = damaged.get("answer", damaged) if isinstance(damaged, dict) else damaged
    parses_or_refuses(json.dumps(answer))


@given(st.integers(min_value=1, max_value=100_000), st.sampled_from(["[", '{"a":', '{"kind":"profiled","profile":[']))
def test_an_answer_that_is_nested_without_end(depth: int, opening: str):
    parses_or_refuses(opening * depth)


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_lines_are_the_same_however_they_are_cut(chunks: list[bytes]):
    lines = Lines()
    for chunk in chunks:
        lines.feed(chunk)
    lines.end()
    whole = b"".join(chunks).split(b"\n")[:-1]
    assert [lines.take(1) for _ in whole] == [line.decode("utf-8", "replace") for line in whole]
    assert lines.take(1) is None
