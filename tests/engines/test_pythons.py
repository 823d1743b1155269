"""The same worker, unchanged, on the oldest and the newest Python and TensorFlow of the table."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import catalog, suites
from orchestrator.engines import EngineOptions, WorkerPlace, interpreters
from orchestrator.engines.client import Burst, Closed, Opened, Refused, WorkerClient
from orchestrator.engines.setting import BuildLog
from orchestrator.engines.venv import VenvEngine
from orchestrator.plan import select_cases
from orchestrator.results import load

# 3.7 and 3.11 are what every other test runs on.
COMBINATIONS = [("1.14.0", "3.6"), ("2.20.0", "3.12")]


@pytest.mark.parametrize(("number", "python"), COMBINATIONS)
def test_smoke_suite_runs_on(number: str, python: str, tmp_path: Path) -> None:
    if interpreters.find(python) is None:
        pytest.skip(f"NO PYTHON {python}: {interpreters.missing((python,))}")
    [version] = [version for version in catalog.all_versions() if version.number == number]
    only = replace(version, flavours=tuple(f for f in version.on("cpu") if f.python.number == python))
    environment = VenvEngine(EngineOptions()).prepare(only, BuildLog(tmp_path / "build.log", lambda line: None))
    stream = tmp_path / "stream.arrow"
    place = WorkerPlace(run="smoke", results=tmp_path, log=tmp_path / "worker.log", own_workloads=None)
    started = environment.start(place, stream)
    client = WorkerClient(started.channel, number)
    try:
        ready = client.hello(
            run="smoke", device="cpu", threads=None, folders=started.folders, results=started.results, timeout_s=180
        )
        assert ready.facts["tensorflow"] == number
        assert str(ready.facts["python"]).startswith(python + ".")
        assert client.gpus(60) == []
        cases = select_cases((), suites.suite("smoke").cases, suites.all_workloads())
        for replicate, case in enumerate(cases, start=1):
            opened = client.open(case, replicate=replicate, round=1, position=0, seed=1, warmup=1, timeout_s=120)
            assert isinstance(opened, (Opened, Refused)), (opened, (tmp_path / "worker.log").read_text())
            if isinstance(opened, Opened):
                assert isinstance(client.burst(replicate, 3, 120), Burst)
                assert isinstance(client.close_replicate(replicate, 60), Closed)
    finally:
        assert client.quit()
    loaded = load([stream], "smoke")
    assert (loaded.problems, loaded.broken) == ((), ())
    assert len(loaded.replicates) == len(cases)
