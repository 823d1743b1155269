"""What encode writes decode reads, and whatever the contract does not allow is refused with a reason."""

import json
from typing import Any

import pytest

from orchestrator import contract

EXAMPLES = {int: 7, float: 1.5, bool: True, str: 'text with \n, " and µ', list: ["a", 1], dict: {"loop": "fit"}}
KINDS = [
    *((contract.COMMANDS, kind) for kind in contract.COMMANDS),
    *((contract.EVENTS, kind) for kind in contract.EVENTS),
]


def example(table: dict[str, dict[str, type]], kind: str) -> dict[str, Any]:
    return {"kind": kind, **{key: EXAMPLES[wanted] for key, wanted in table[kind].items()}}


@pytest.mark.parametrize(("table", "kind"), KINDS, ids=[kind for _, kind in KINDS])
def test_every_message_survives_the_way_there_and_back(table, kind: str):
    message = example(table, kind)
    line = contract.encode(message)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert contract.decode(line, table) == message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not an object with a kind"),
        ('"burst"', "not an object with a kind"),
        ("{}", "not an object with a kind"),
        ('{"kind": 1}', "not an object with a kind"),
        ('{"kind": "brust"}', "unknown kind 'brust'; known are burst, close, hello, open, probe, profile, quit"),
        ('{"kind": "burst", "replicate": 1, "timeout_s": 1}', "burst lacks 'calls'"),
        ('{"kind": "burst", "replicate": "1", "calls": 1, "timeout_s": 1}', "burst.replicate is not int: '1'"),
        ('{"kind": "burst", "replicate": 1.0, "calls": 1, "timeout_s": 1}', "burst.replicate is not int: 1.0"),
        ('{"kind": "burst", "replicate": true, "calls": 1, "timeout_s": 1}', "burst.replicate is not int: True"),
        ('{"kind": "burst", "replicate": 1, "calls": 1, "timeout_s": true}', "burst.timeout_s is not float: True"),
        ('{"kind": "burst", "replicate": 1, "calls": null, "timeout_s": 1}', "burst.calls is not int: None"),
        ('{"kind": "quit", "now": 1, "really": 2}', "quit knows no now, really"),
    ],
)
def test_it_refuses(line: str, words: str):
    with pytest.raises(contract.ContractError, match="^" + words.replace("(", r"\(")):
        contract.decode(line, contract.COMMANDS)


def test_a_whole_number_is_a_duration_too():
    order = {"kind": "probe", "timeout_s": 10}
    assert contract.decode(json.dumps(order), contract.COMMANDS) == order


def test_an_event_is_no_command():
    with pytest.raises(contract.ContractError, match="unknown kind 'bye'"):
        contract.decode('{"kind": "bye"}', contract.COMMANDS)


def test_a_refusal_quotes_no_more_than_a_line_or_two_of_a_long_message():
    with pytest.raises(contract.ContractError) as refusal:
        contract.decode("x" * 100_000, contract.COMMANDS)
    assert len(str(refusal.value)) < 300
