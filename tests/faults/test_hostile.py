"""Workloads that send, print and write without end, in virtual environments: each costs itself, and the host little."""

import os
import re
from pathlib import Path

import pytest

from tests.soak.kills import marked
from tests.support.end_to_end import outcomes
from tests.support.hostile import CHECKS, VERSIONS, attack, reasons

VENV = ("--engine", "venv")

pytestmark = pytest.mark.usefixtures("stubbed")


@pytest.mark.parametrize("attacker", CHECKS)
def test_a_hostile_workload_costs_itself_alone(tfcompare: str, tmp_path: Path, attacker: str) -> None:
    CHECKS[attacker](tfcompare, tmp_path / "run", VENV)


def test_processes_that_replace_each_other_end_with_their_replicate(tfcompare: str, tmp_path: Path) -> None:
    """As those of a fork bomb do. Neither the innocent case nor anything after the run is touched by them."""
    mark = f"hydra-{os.getpid()}"
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("TF_CPP_MARK", mark)
        answer, _ = attack(tfcompare, tmp_path / "run", "hydra", "innocent", engine=VENV)
    assert set(outcomes(answer).values()) == {"measured"}
    assert any("workloads left processes running" in warning for warning in answer["warnings"])
    assert marked(f"TF_CPP_MARK={mark}") == []


def test_a_line_without_end_of_a_worker_is_not_listened_to(tfcompare: str, tmp_path: Path) -> None:
    """Root can open the pipe of any process; others find it closed."""
    code = 6 if os.getuid() == 0 else 0
    answer, _ = attack(tfcompare, tmp_path / "run", "innocent", "flood[way=worker]", engine=VENV, code=code)
    found = outcomes(answer)
    assert {found["innocent", version] for version in VERSIONS} == {"measured"}
    for reason in reasons(answer, "flood"):
        assert re.search("broke the contract: a line of more than 1 MiB", reason)
