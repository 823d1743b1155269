"""Runs of the real command, and what their JSON says."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import run_command

Answer = dict[str, Any]


def compare(
    tfcompare: str, *flags: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, Answer, str]:
    """Exit code, comparison and stderr of `tfcompare run --format json`."""
    done = run_command(tfcompare, "run", "--format", "json", *flags, env=env, cwd=cwd)
    return done.returncode, parse(done), done.stderr


def parse(done: subprocess.CompletedProcess[str]) -> Answer:
    assert done.stdout, done.stderr
    answer: Answer = json.loads(done.stdout)
    assert answer["schema"] == "tfcompare.comparison/1"
    return answer


def outcomes(answer: Answer) -> dict[tuple[str, str], str]:
    """Outcome by (workload, version), for runs with one case a workload."""
    return {(arm["workload"], arm["target"]): arm["outcome"] for arm in answer["arms"]}


def comparison(answer: Answer, workload: str, kind: str, where: dict[str, str], **params: str) -> Answer:
    """The one comparison of a workload with these parameters, and these `version`, `baseline` or `candidate`."""
    found = [
        entry
        for entry in answer["comparisons"]
        if (entry["workload"], entry["kind"]) == (workload, kind)
        and where.items() <= entry.items()
        and params.items() <= entry["params"].items()
    ]
    assert len(found) == 1, (workload, where, params, found)
    return found[0]
