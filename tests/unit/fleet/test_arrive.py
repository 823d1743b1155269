"""What hosts send is checked and becomes part of the run; what is not in order counts nowhere, and is kept."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import ContractBroken
from orchestrator.fleet.arrive import MOST_REPLICATES_OF_UNIT, Arrivals, find_hosts, find_measured
from orchestrator.fleet.model import HostReport
from orchestrator.fleet.units import Unit
from orchestrator.model import Ended, Lost
from orchestrator.results.evaluation import gather, judge_run
from orchestrator.results.part_files import read_files
from orchestrator.results.run_folder import RunFolder
from tests.support.builders import NEW, OLD, case, finished, plan, run_folder, target
from tests.support.parts import ROUNDS, measured

ONE, TWO = case(size="1"), case(size="2")
WHOLE = plan((ONE, TWO), run="whole")
REPORT = HostReport(tool="1", contract="c", facts={"id": "abc"}, engines={"venv": ""}, simulated="a")


@pytest.fixture
def arrivals(tmp_path: Path) -> Arrivals:
    run = run_folder(tmp_path / "whole", WHOLE)
    run.write_manifest(replace(run.read_manifest(), environments={}, workers={}))
    return Arrivals(run, run.read_plan(), run.read_manifest())


def units() -> tuple[Unit, Unit]:
    return Unit(1, (ONE,)), Unit(2, (TWO,))


def test_units_become_the_parts_of_one_run(tmp_path: Path, arrivals: Arrivals):
    for unit in units():
        part = measured(tmp_path / f"part-{unit.number}", unit.cases[0], f"run-{unit.number}")
        arrivals.accept(unit, 1, 1, REPORT, read_files(part.path))
    whole = RunFolder(tmp_path / "whole")
    evaluation = judge_run(whole)
    assert {(arm.outcome, arm.rounds) for arm in evaluation.arms} == {("measured", ROUNDS)}
    assert evaluation.broken == ()
    replicates = gather(whole).replicates
    assert len({(each.target, each.number) for each in replicates}) == len(replicates) == 2 * 2 * ROUNDS
    assert find_measured(whole) == {ONE.label, TWO.label}
    assert [part.path.name for part in whole.parts] == ["1-1-1", "2-1-1"]
    [host] = whole.read_manifest().hosts
    assert (host.host["id"], host.cases) == ("abc-a", (ONE.label, TWO.label))
    assert not list((whole.path / "unused").iterdir())


def test_what_was_measured_so_far_is_kept_beside_the_run(tmp_path: Path, arrivals: Arrivals):
    unit, _ = units()
    part = measured(tmp_path / "part", ONE, "run-1")
    place = arrivals.keep(unit, 1, 1, read_files(part.path))
    assert place == tmp_path / "whole" / "unused" / "1-1-1"
    assert len(RunFolder.open(place).read_journal().entries) == 2 + 2 * ROUNDS
    assert find_measured(RunFolder(tmp_path / "whole")) == set()
    # Another command numbers its attempts after that.
    assert arrivals.count_attempts(unit, 1) == 1
    assert arrivals.count_attempts(unit, 2) == 0


def altered(name: str, change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, bytes]], None]:
    def alter(files: dict[str, bytes]) -> None:
        content = json.loads(files[name])
        change(content)
        files[name] = json.dumps(content).encode()

    return alter


def no_rows(files: dict[str, bytes]) -> None:
    lines = [line for line in files["journal.jsonl"].splitlines() if b'"ended"' not in line]
    files["journal.jsonl"] = b"\n".join(lines) + b"\n"


def stranger(files: dict[str, bytes]) -> None:
    files["../evil"] = b"x"


def garbage(files: dict[str, bytes]) -> None:
    name = next(name for name in files if name.endswith(".arrow"))
    files[name] = b"no stream"


@pytest.mark.parametrize(
    ("alter", "told"),
    [
        (altered("plan.json", lambda of: of.update(seed=1, margin=0.2)), "it measured something else: margin: 0.05"),
        (altered("plan.json", lambda of: of.update(engine="docker")), "it measured something else: engine: venv"),
        (altered("manifest.json", lambda of: of["sources"].update(power="x")), "it measured another source of power"),
        (altered("manifest.json", lambda of: of.update(contract="x")), "it measured something else: contract with"),
        (no_rows, "it measured nothing"),
        (stranger, "it sent a file that no run has"),
        (lambda files: files.pop("plan.json"), "holds no run"),
        (lambda files: files.update({"plan.json": b"{"}), "plan.json"),
        (garbage, "arrow"),
    ],
)  # fmt: skip
def test_what_is_not_in_order_is_refused_and_counts_nowhere(
    tmp_path: Path, arrivals: Arrivals, alter: Callable[[dict[str, bytes]], None], told: str
):
    files = read_files(measured(tmp_path / "part", ONE, "run-1").path)
    alter(files)
    with pytest.raises(ContractBroken, match=told):
        arrivals.accept(units()[0], 1, 1, REPORT, files)
    assert find_measured(RunFolder(tmp_path / "whole")) == set()
    # The next answer is taken as if nothing had been.
    good = measured(tmp_path / "good", ONE, "run-2")
    arrivals.accept(units()[0], 1, 2, REPORT, read_files(good.path))
    assert find_measured(RunFolder(tmp_path / "whole")) == {ONE.label}
    assert judge_run(RunFolder(tmp_path / "whole")).broken == ()


def test_numbers_that_no_unit_has_are_refused(tmp_path: Path, arrivals: Arrivals):
    part = measured(tmp_path / "part", ONE, "run-1")
    first = next(entry for entry in part.entries() if isinstance(entry, Ended))
    part.record(replace(first, replicate=MOST_REPLICATES_OF_UNIT + 1), finished())
    with pytest.raises(ContractBroken, match=f"or numbered it beyond {MOST_REPLICATES_OF_UNIT}"):
        arrivals.accept(units()[0], 1, 1, REPORT, read_files(part.path))
    assert find_measured(RunFolder(tmp_path / "whole")) == set()


def test_rows_that_a_journal_does_not_have_are_found_where_they_are_judged(tmp_path: Path, arrivals: Arrivals):
    part = measured(tmp_path / "part", ONE, "run-1")
    first = next(entry for entry in part.entries() if isinstance(entry, Ended))
    part.record(replace(first, replicate=99), finished())
    arrivals.accept(units()[0], 1, 1, REPORT, read_files(part.path))
    [told] = judge_run(RunFolder(tmp_path / "whole")).broken
    assert "the results of 1 replicate are lost" in told


def test_cases_that_were_not_asked_for_are_refused(tmp_path: Path, arrivals: Arrivals):
    part = measured(tmp_path / "part", TWO, "run-1")
    with pytest.raises(ContractBroken, match="it measured other cases or targets than it was asked for"):
        arrivals.accept(units()[0], 1, 1, REPORT, read_files(part.path))


def test_other_packages_than_on_hosts_before_are_refused(tmp_path: Path, arrivals: Arrivals):
    first, second = units()
    arrivals.accept(first, 1, 1, REPORT, read_files(measured(tmp_path / "a", ONE, "run-1").path))
    files = read_files(measured(tmp_path / "b", TWO, "run-2").path)
    altered("manifest.json", lambda of: of["environments"][OLD].update(lock="z"))(files)
    with pytest.raises(ContractBroken, match=f"it has other packages in {OLD} than hosts before it"):
        arrivals.accept(second, 1, 1, REPORT, files)


def test_a_version_that_one_host_lacks_is_lost_for_its_cases_alone(tmp_path: Path, arrivals: Arrivals):
    first, second = units()
    part = measured(tmp_path / "a", ONE, "run-1")
    files = read_files(part.path)
    lines = [line for line in files["journal.jsonl"].splitlines() if NEW.encode() not in line]
    lost = Lost(target=target(NEW), stage="environment", reason="no Python 3.7", failure="workload", external=False)
    part.journal.unlink()
    part.record(lost)
    files["journal.jsonl"] = b"\n".join([part.journal.read_bytes().strip(), *lines]) + b"\n"
    files = {name: data for name, data in files.items() if NEW not in name}
    arrivals.accept(first, 1, 1, REPORT, files)
    arrivals.accept(second, 1, 1, REPORT, read_files(measured(tmp_path / "b", TWO, "run-2").path))
    evaluation = judge_run(RunFolder(tmp_path / "whole"))
    outcomes = {(arm.case.label, str(arm.target)): (arm.outcome, arm.reason) for arm in evaluation.arms}
    assert outcomes[ONE.label, NEW] == ("died", "environment: no Python 3.7")
    assert {outcome for key, (outcome, _) in outcomes.items() if key != (ONE.label, NEW)} == {"measured"}


def interrupt(*about: object) -> None:
    raise KeyboardInterrupt


def test_a_case_is_of_the_host_whose_rows_count(tmp_path: Path, arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch):
    """The run is killed when the manifest has the first host and its part is not in place."""
    first, second = units()
    whole = RunFolder(tmp_path / "whole")
    arrivals.accept(second, 1, 1, REPORT, read_files(measured(tmp_path / "a", TWO, "run-1").path))
    lost = read_files(measured(tmp_path / "b", ONE, "run-2").path)
    with monkeypatch.context() as dying:
        dying.setattr(Path, "rename", interrupt)
        with pytest.raises(KeyboardInterrupt):
            arrivals.accept(first, 1, 1, REPORT, lost)
    assert {case for each in whole.read_manifest().hosts for case in each.cases} == {ONE.label, TWO.label}
    assert find_hosts(whole) == {TWO.label: "abc-a"}
    again = Arrivals(whole, whole.read_plan(), whole.read_manifest())
    assert again.count_attempts(first, 1) == 1
    other = replace(REPORT, simulated="b")
    again.accept(first, 1, 2, other, read_files(measured(tmp_path / "c", ONE, "run-3").path))
    assert find_hosts(whole) == {ONE.label: "abc-b", TWO.label: "abc-a"}
    hosts = {each.host["id"]: each.cases for each in whole.read_manifest().hosts}
    assert hosts == {"abc-a": (TWO.label,), "abc-b": (ONE.label,)}
    evaluation = judge_run(whole)
    assert {arm.outcome for arm in evaluation.arms} == {"measured"}
    assert evaluation.broken == ()


def test_a_unit_that_is_measured_again_takes_the_place_of_what_was_there(tmp_path: Path, arrivals: Arrivals):
    unit, _ = units()
    whole = RunFolder(tmp_path / "whole")
    for attempt in (1, 2):
        part = measured(tmp_path / f"part-{attempt}", ONE, f"run-{attempt}")
        arrivals.accept(unit, 1, attempt, REPORT, read_files(part.path))
    assert [part.path.name for part in whole.parts] == ["1-1-2"]
    assert [path.name for path in (whole.path / "unused").iterdir()] == ["1-1-1"]
    assert Arrivals(whole, whole.read_plan(), whole.read_manifest()).count_attempts(unit, 1) == 2
