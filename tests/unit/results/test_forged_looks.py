"""Forged looks in a journal cost neither a crash nor minutes: a line that no run would write is left out."""

import json
from pathlib import Path

import pytest

from orchestrator.results.evaluation import judge_run
from tests.support.builders import NEW, OLD, case, plan, rows, run_folder, write_stream

EXTENDED = {
    "kind": "extended", "created": "2026-01-02T03:04:05Z", "command": [], "seed": 1, "first_round": 7, "budget_s": None,
    "exploratory": False,
}  # fmt: skip
FORGED = {
    "none": [], "descending": [8, 4], "negative": [-4], "thousands": list(range(4, 3000)), "far away": [4, 10**9],
}  # fmt: skip


@pytest.mark.parametrize("entry", [{"kind": "prolonged"}, EXTENDED], ids=["prolonged", "extended"])
@pytest.mark.parametrize("looks", FORGED.values(), ids=FORGED)
def test_looks_that_no_run_would_plan_are_left_out_and_said(tmp_path: Path, entry: dict[str, object], looks: list[int]):
    run = run_folder(tmp_path / "run", plan([case()]))
    for place, version in enumerate((OLD, NEW)):
        batches = [rows(version=version, round=number, replicate=number * 2 + place) for number in range(1, 7)]
        write_stream(run.settled / f"{version}-0.arrow", batches)
    honest = judge_run(run).comparisons
    with run.journal.open("a") as journal:
        journal.write(json.dumps({**entry, "looks": looks}) + "\n")
    found = judge_run(run)
    assert found.comparisons == honest
    assert any("the journal has 1 line that cannot be used" in warning for warning in found.warnings)
