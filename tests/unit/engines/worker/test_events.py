"""No answer of a worker can be so odd that it costs more than its replicate, or more than its worker."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator import contract
from orchestrator.engines.worker.channel import ChannelClosed
from orchestrator.engines.worker.client import Burst, Died, Refused, WorkerClient, WorkerDied
from orchestrator.engines.worker.events import LONGEST_LOG, LONGEST_TEXT, InvalidEvent, parse_event
from tests.support.builders import case, target

GOOD: dict[str, dict[str, Any]] = {
    "warned": {
        "replicate": 1,
        "warnings": [{"kind": "FutureWarning", "text": "gone in 3.0", "place": "own.py", "line": 3, "own": True}],
    },
    "ready": {"facts": {"python": "3.11.7", "gpu": None, "xla": True}, "import_ns": 1, "pid": 1},
    "failed": {"stage": "import", "message": "no"},
    "probed": {"gpus": [{"name": "A GPU", "capability": "9.0"}], "driver": {"code": 802, "absent": ["libcudnn.so.8"]}},
    "opened": {
        "replicate": 1,
        "build_ns": 1,
        "first_ns": 2,
        "second_ns": 3,
        "steps": 1,
        "items": 32,
        "output": "float32[2]",
        "threads": [0, 2],
    },
    "measured": {"replicate": 1, "walls_ns": [1, 2], "cpu_ns": 3},
    "closed": {"replicate": 1, "rows": 6},
    "profiled": {"replicate": 1, "profile": {"functions": [{"name": "call"}]}},
    "refused": {"replicate": 1, "reason": "not here"},
    "died": {"replicate": 1, "how": "raised", "reason": "no", "log": "a\nb"},
    "error": {"message": "what?"},
    "bye": {},
}


def line(kind: str, **changes: Any) -> str:
    return json.dumps({"kind": kind, **GOOD[kind], **changes})


def test_there_is_a_model_for_every_event_of_the_contract():
    assert GOOD.keys() == contract.EVENTS.keys()
    for kind, keys in contract.EVENTS.items():
        event = parse_event(line(kind))
        assert event.model_dump(exclude={"kind"}).keys() == keys.keys()
        assert (event.kind, type(event).kind_name()) == (kind, kind)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


ODD = {
    "a time that is a text": ("measured", {"walls_ns": ["x"]}),
    "a negative time": ("measured", {"walls_ns": [-5]}),
    "a time of no clock": ("measured", {"walls_ns": [10**30]}),
    "a fraction": ("measured", {"walls_ns": [1.5]}),
    "true": ("measured", {"walls_ns": [True]}),
    "no call at all": ("measured", {"walls_ns": []}),
    "calls without end": ("measured", {"walls_ns": [1] * 10_001}),
    "more than an int64": ("opened", {"second_ns": 2**64}),
    "no steps": ("opened", {"steps": 0}),
    "three pools of threads": ("opened", {"threads": [1, 2, 3]}),
    "fewer threads than none": ("opened", {"threads": [-1, 2]}),
    "no rows": ("closed", {"rows": 0}),
    "a number among the facts": ("ready", {"facts": {"python": 3}}),
    "a list among the facts": ("ready", {"facts": {"python": ["3"]}}),
    "facts without end": ("ready", {"facts": {str(number): "x" for number in range(51)}}),
    "GPUs without end": ("probed", {"gpus": [{}] * 65}),
    "a driver's code that is none": ("probed", {"driver": {"code": -2}}),
    "a profile that is too deep": ("profiled", {"profile": {"a": deep(50)}}),
}


@pytest.mark.parametrize(("kind", "changes"), ODD.values(), ids=ODD)
def test_a_value_that_cannot_be_is_odd(kind: str, changes: dict[str, Any]):
    with pytest.raises(InvalidEvent):
        parse_event(line(kind, **changes))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, '{"kind":"profiled","profile":' + "[" * 900 + "]" * 900 + "}"]
)
def test_nesting_without_end_is_no_event(text: str):
    with pytest.raises(contract.ContractError):
        parse_event(text)


def test_texts_can_be_written_to_any_file_and_are_not_endless():
    event = parse_event(line("died", reason="caf\udce9" + "x" * 10_000, log="y" * 100_000, how="\ud800"))
    for text in (event.reason, event.log, event.how):
        text.encode("utf-8")
    assert event.reason.startswith("caf?x")
    assert (len(event.reason), len(event.log), event.how) == (LONGEST_TEXT, LONGEST_LOG, "?")
    profiled = parse_event(line("profiled", profile={"a\udce9": ["b\udce9"]}))
    assert profiled.profile == {"a?": ["b?"]}


class Scripted:
    """A channel whose other end answers by kind of order."""

    def __init__(self, answers: dict[str, Callable[[int], str]]) -> None:
        self.answers = answers
        self.orders: list[tuple[str, int]] = []
        self.closed = False

    def send(self, text: str, longest: int = contract.LONGEST_LINE) -> None:
        if self.closed:
            raise ChannelClosed("closed")
        order = json.loads(text)
        self.orders.append((order["kind"], order["replicate"]))

    def receive(self, timeout_s: float) -> str:
        kind, number = self.orders[-1]
        return self.answers[kind](number)

    def close(self) -> None:
        self.closed = True


def usual(kind: str, **changes: Any) -> Callable[[int], str]:
    return lambda number: line(kind, **{"replicate": number, **changes})


def client(**answers: Callable[[int], str]) -> tuple[WorkerClient, Scripted]:
    channel = Scripted({"open": usual("opened"), "burst": usual("measured"), "close": usual("closed"), **answers})
    return WorkerClient(channel, target("2.0.0")), channel


def opened(one: WorkerClient, replicate: int):
    return one.open(case(), replicate=replicate, round=1, position=0, seed=1, warmup=0, timeout_s=1)


def test_an_odd_answer_ends_its_replicate_and_the_worker_goes_on():
    one, channel = client(
        burst=lambda number: line("measured", replicate=number, walls_ns=[-5] if number == 1 else [7])
    )
    assert not isinstance(opened(one, 1), Died)
    died = one.burst(1, 1, 1)
    assert isinstance(died, Died)
    assert died.how == "contract"
    assert "its answer to burst cannot be true: measured.walls_ns.0: " in died.reason
    assert channel.orders[-1] == ("close", 1), "the worker forgets it"
    opened(one, 2)
    assert one.burst(2, 1, 1) == Burst((7,), 3)


def test_an_answer_for_another_replicate_is_odd():
    one, _ = client(open=usual("opened", replicate=99))
    died = opened(one, 1)
    assert isinstance(died, Died)
    assert "not the number of the replicate that was asked" in died.reason


def test_a_refusal_after_the_opening_is_a_death():
    one, _ = client(burst=usual("refused"))
    assert isinstance(one.burst(1, 1, 1), Died)


def test_a_refusal_at_the_opening_is_one():
    one, _ = client(open=usual("refused"))
    assert opened(one, 1) == Refused("not here")


@pytest.mark.parametrize("answer", [line("bye"), line("error"), "[]", "[" * 100_000, '{"kind":"\udce9"}'])
def test_an_answer_that_is_none_ends_the_worker_and_no_more(answer: str):
    one, channel = client(burst=lambda number: answer)
    with pytest.raises(WorkerDied, match="broke the contract") as death:
        one.burst(1, 1, 1)
    str(death.value).encode("utf-8")
    assert channel.closed
