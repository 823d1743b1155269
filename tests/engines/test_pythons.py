"""The same worker and workloads, unchanged, on the oldest and the newest Python and TensorFlow of the table."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog import workloads
from orchestrator.catalog.selectors import expand, parse_selector, select_cases
from orchestrator.engines import WorkerPaths
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.engines.worker.client import Burst, Closed, Opened, Refused, WorkerClient
from orchestrator.model import Case
from orchestrator.options import EngineOptions
from orchestrator.results.replicates import load_replicates
from orchestrator.results.streams import Stream
from tests.conftest import require_python
from tests.support.builders import target

WORKLOADS = workloads.all_workloads()
# The smoke suite leaves `forward` out for its time only.
SMOKE = select_cases((), (*workloads.suite("smoke").cases, "forward[net=mobilenet_v2,style=eager]"), WORKLOADS)
# One case each of those that single reports are about, and no study; XLA compiles a convolution on a CPU as well.
REPORTED = [
    *(
        expand(parse_selector(name, WORKLOADS), WORKLOADS[name])[0]
        for name in sorted(WORKLOADS.keys() - {case.workload for case in SMOKE})
    ),
    *expand(parse_selector("conv_step[compiler=xla]", WORKLOADS), WORKLOADS["conv_step"]),
]


# 3.7 and 3.11 are what every other test runs on.
@pytest.mark.parametrize(
    ("number", "python"), [pytest.param("1.14.0", "3.6", marks=pytest.mark.long), ("2.20.0", "3.12")]
)
def test_smoke_suite_runs_on(number: str, python: str, tmp_path: Path) -> None:
    require_python(python)
    answers = run_cases(number, python, SMOKE, tmp_path)
    assert not [answer for answer in answers.values() if isinstance(answer, Refused)] or number == "1.14.0"


@pytest.mark.long
def test_every_other_workload_runs_or_says_why_not(tmp_path: Path) -> None:
    assert REPORTED
    measured: set[Case] = set()
    # Whole models take a few seconds each, and have nothing that only an old version has.
    models = {name.partition("[")[0] for name in workloads.suite("models").cases}
    for number, python in (("2.0.0", "3.7"), ("2.13.0", "3.11"), ("2.20.0", "3.11")):
        (tmp_path / number).mkdir()
        cases = [case for case in REPORTED if number == "2.13.0" or case.workload not in models]
        answers = run_cases(number, python, cases, tmp_path / number)
        assert all(answer.reason.endswith(".") for answer in answers.values() if isinstance(answer, Refused))
        measured |= {case for case, answer in answers.items() if isinstance(answer, Opened)}
    # This one needs another backend of Keras.
    assert {case.workload for case in set(REPORTED) - measured} == {"torch_forward"}


def run_cases(number: str, python: str, cases: Sequence[Case], folder: Path) -> dict[Case, Opened | Refused]:
    """One replicate of each, in one worker; none may die, and what was not refused is in the stream."""
    [version] = catalog.resolve_versions([number], fewest=1)
    only = replace(version, flavours=tuple(f for f in version.on("cpu") if f.python.number == python))
    environment = VenvEngine(EngineOptions()).prepare(only, BuildLog(folder / "build.log"))
    stream = folder / "stream.arrow"
    paths = WorkerPaths(run="smoke", results=folder, log=folder / "worker.log", own_workloads=None)
    started = environment.start(paths, stream)
    client = WorkerClient(started.channel, target(number))
    answers: dict[Case, Opened | Refused] = {}
    try:
        ready = client.hello(
            run="smoke", device="cpu", threads=None, folders=started.folders, results=started.results, timeout_s=180
        )
        assert ready.facts["tensorflow"] == number
        assert str(ready.facts["python"]).startswith(python + ".")
        assert client.gpus(60).gpus == ()
        for replicate, case in enumerate(cases, start=1):
            opened = client.open(case, replicate=replicate, round=1, position=0, seed=1, warmup=0, timeout_s=240)
            assert isinstance(opened, (Opened, Refused)), (case, opened, (folder / "worker.log").read_text())
            answers[case] = opened
            if isinstance(opened, Opened):
                assert isinstance(client.burst(replicate, 1, 120), Burst)
                assert isinstance(client.close_replicate(replicate, 60), Closed)
    finally:
        assert client.quit()
    loaded = load_replicates([Stream.at(stream)], "smoke")
    assert (loaded.problems, loaded.broken) == ((), ())
    assert len(loaded.replicates) == len([answer for answer in answers.values() if isinstance(answer, Opened)])
    return answers
