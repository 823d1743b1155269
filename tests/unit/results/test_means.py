"""The means of a run: over the same cases in every version, for each metric, and over what claims are about."""

import math
from pathlib import Path

import pytest

from orchestrator.model import CaseSet
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from tests.support.builders import MS, case, claim, ended, plan, rows, run_folder, version_pair, write_stream

VERSIONS = ("1.0.0", "2.0.0", "3.0.0")
EASY, SHORT, HARD = (case(size=size) for size in ("easy", "short", "hard"))
# By what factor each case is slower than in the first version; 3.0.0 refuses the hard one.
RATIOS = {
    ("2.0.0", EASY): 1.5,
    ("2.0.0", SHORT): 1.0,
    ("2.0.0", HARD): 14.0,
    ("3.0.0", EASY): 1.0,
    ("3.0.0", SHORT): 1.0,
}


def write(path: Path, cases=(EASY, SHORT, HARD), versions=VERSIONS, **changes: object) -> RunFolder:
    run = run_folder(path, plan(cases, versions, looks=(4, 6, 8), metrics=("memory",), **changes))
    number = 0
    for version in versions:
        batches = []
        for of in cases:
            ratio = 1.0 if version == VERSIONS[0] else RATIOS.get((version, of))
            if ratio is None:
                run.record(ended(of, version, "refused", replicate=900, reason="no"))
                continue
            for round in range(1, 5 if of == SHORT else 9):
                number += 1
                # The time scatters in all cases of a round alike.
                wall = int(10 * MS * ratio * (1 + (round % 2) * (0.02 if version == "2.0.0" else 0)))
                batches.append(
                    rows(
                        of, version, round=round, replicate=number, bursts=(wall,) * 3, resident_kb=1000 * len(version)
                    )
                )
        write_stream(run.settled / f"{version}-0.arrow", batches)
    return run


def test_all_versions_are_averaged_over_the_cases_that_all_of_them_have(tmp_path: Path):
    found = judge_run(write(tmp_path / "run"))
    times = {mean.candidate: mean for mean in found.means if mean.metric == "time"}
    assert set(times) == {"2.0.0", "3.0.0"}
    assert {(mean.cases, mean.rounds) for mean in found.means} == {(2, 4)}
    # Without the hard case, in which it is 14 times slower.
    assert times["2.0.0"].ratio == pytest.approx(math.sqrt(1.5) * math.exp(0.01), rel=1e-3)
    assert times["2.0.0"].ci_low < times["2.0.0"].ratio < times["2.0.0"].ci_high
    assert times["3.0.0"].ratio == pytest.approx(1.0)
    memory = [mean for mean in found.means if mean.metric == "memory"]
    assert [(mean.candidate, mean.ratio) for mean in memory] == [("2.0.0", 1.0), ("3.0.0", 1.0)]


def test_without_two_cases_that_all_versions_have_there_is_none(tmp_path: Path):
    assert judge_run(write(tmp_path / "run", (EASY, HARD))).means == ()


def test_a_version_that_has_no_ratio_at_all_takes_no_case_from_the_others(tmp_path: Path):
    run = write(tmp_path / "run", (EASY, SHORT))
    (run.settled / "3.0.0-0.arrow").unlink()
    assert {mean.candidate for mean in judge_run(run).means} == {"2.0.0"}


def test_the_cases_of_a_claim_have_a_mean_at_every_look(tmp_path: Path):
    pairs = tuple(version_pair(of, *VERSIONS[:2]) for of in (EASY, HARD))
    together = CaseSet(pairs=pairs, mean_within=1.25, more_often=None)
    run = write(tmp_path / "run", (EASY, HARD), VERSIONS[:2], pairs=pairs, claims=(claim(sets=(together,)),))
    for at_look in (True, False):
        found = judge_run(run, at_look=at_look).set_means[together]
        assert (found.cases, found.rounds) == (2, 8)
        assert found.ratio == pytest.approx(math.sqrt(1.5 * 14.0) * math.exp(0.01), rel=1e-3)
