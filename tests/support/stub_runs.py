"""Runs of the real command with real workers and a stub in place of TensorFlow, and what they leave."""

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.conftest import ROOT
from tests.support import stub
from tests.support.processes import PATIENCE_S

RUN = """
import sys
from dataclasses import replace
from pathlib import Path
from orchestrator.__main__ import main
from orchestrator.engines import ENGINES
from tests.support.stub_engine import Engine

stub = Path(sys.argv.pop())
ENGINES["venv"] = replace(ENGINES["venv"], make=lambda options: Engine(stub))
main()
"""


class Scene:
    """A folder with workloads, the runs in it, and its own temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.out = folder / "run"
        self.own = folder / "own"
        self.temporary = folder / "temporary"
        self.announced = folder / "announced"
        self.stub = stub.write(folder / "stub")
        self.own.mkdir()
        self.temporary.mkdir()

    def start(self, source: str, *flags: str, out: str = "run", limits: str = "") -> "subprocess.Popen[str]":
        """Start a run of this workload; `limits` are commands of the shell before it."""
        (self.own / "own.py").write_text(dedent(source))
        self.out = self.out.with_name(out)
        argv = [
            "run", "--engine", "venv", "--versions", "1.14,2.0", "--workload-folder", str(self.own), "--format", "json",
            "--output", str(self.out), *flags, str(self.stub),
        ]  # fmt: skip
        return subprocess.Popen(
            ["bash", "-c", f'{limits}\nexec "$@"', "run", sys.executable, "-c", RUN, *argv],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(self.temporary), "TF_CPP_ANNOUNCE": str(self.announced)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, source: str, *flags: str, out: str = "run", limits: str = "") -> tuple[int, dict[str, Any], str]:
        with self.start(source, *flags, out=out, limits=limits) as process:
            stdout, stderr = process.communicate(timeout=PATIENCE_S)
        assert stdout, stderr
        return process.returncode, json.loads(stdout), stderr

    def journal(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.out / "journal.jsonl").read_text().splitlines()
        return [entry for entry in map(json.loads, lines) if entry["kind"] == kind]
