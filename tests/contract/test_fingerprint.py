"""The fingerprint names the contract: it moves with every change that the other side would notice, and only then."""

import subprocess
from types import ModuleType

import pytest

from orchestrator import contract
from orchestrator.bundled import WORKLOADS

SOURCE = WORKLOADS / "contract.py"
LOADED = "import runpy, sys; print(runpy.run_path(sys.argv[1])['FINGERPRINT'])"


@pytest.fixture
def copy() -> ModuleType:
    """The contract, loaded once more, to be changed at will."""
    module = ModuleType("contract_copy")
    exec(compile(SOURCE.read_text(), str(SOURCE), "exec"), module.__dict__)
    assert module._fingerprint() == contract.FINGERPRINT
    return module


def test_it_is_sixteen_hexadecimal_digits():
    assert len(contract.FINGERPRINT) == 16
    assert int(contract.FINGERPRINT, 16) >= 0


CHANGES = {
    "the protocol's number": lambda c: setattr(c, "PROTOCOL", c.PROTOCOL + 1),
    "a phase": lambda c: setattr(c, "PHASES", (*c.PHASES, "cooldown")),
    "a field's name": lambda c: setattr(c, "FIELDS", (c.FIELDS[0]._replace(name="id"), *c.FIELDS[1:])),
    "a field's type": lambda c: setattr(c, "FIELDS", (c.FIELDS[0]._replace(type="int32"), *c.FIELDS[1:])),
    "a field's nullability": lambda c: setattr(c, "FIELDS", (c.FIELDS[0]._replace(nullable=True), *c.FIELDS[1:])),
    "the order of fields": lambda c: setattr(c, "FIELDS", c.FIELDS[::-1]),
    "a new command": lambda c: c.COMMANDS.update(pause={}),
    "a command's new key": lambda c: c.COMMANDS["burst"].update(pace=float),
    "the type of a command's key": lambda c: c.COMMANDS["burst"].update(calls=str),
    "a command that is gone": lambda c: c.COMMANDS.pop("probe"),
    "an event's new key": lambda c: c.EVENTS["opened"].update(warnings=list),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_changes_with(copy: ModuleType, change):
    change(copy)
    assert copy._fingerprint() != contract.FINGERPRINT


def test_it_does_not_change_with_what_a_field_is_said_to_mean(copy: ModuleType):
    copy.FIELDS = tuple(field._replace(meaning="reworded") for field in copy.FIELDS)
    assert copy._fingerprint() == contract.FINGERPRINT


def test_it_is_the_same_under_python_3_6(python36: str):
    argv = [python36, "-c", LOADED, str(SOURCE)]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == contract.FINGERPRINT
