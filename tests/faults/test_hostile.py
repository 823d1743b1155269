"""Workloads that send, print and write without end, in virtual environments: each costs itself, and the host little."""

import os
import re
from pathlib import Path

import pytest

from tests.support.end_to_end import outcomes
from tests.support.hostile import CHECKS, VERSIONS, attack, reasons

VENV = ("--engine", "venv")

pytestmark = pytest.mark.usefixtures("stubbed")


@pytest.mark.parametrize("attacker", CHECKS)
def test_a_hostile_workload_costs_itself_alone(tfcompare: str, tmp_path: Path, attacker: str) -> None:
    CHECKS[attacker](tfcompare, tmp_path / "run", VENV)


def test_a_line_without_end_of_a_worker_is_not_listened_to(tfcompare: str, tmp_path: Path) -> None:
    """Root can open the pipe of any process; others find it closed."""
    code = 6 if os.getuid() == 0 else 0
    answer, _ = attack(tfcompare, tmp_path / "run", "innocent", "flood[way=worker]", engine=VENV, code=code)
    found = outcomes(answer)
    assert {found["innocent", version] for version in VERSIONS} == {"measured"}
    for reason in reasons(answer, "flood"):
        assert re.search("broke the contract: a line of more than 1 MiB", reason)
