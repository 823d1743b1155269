"""A run folder, however it ended, is read the same way: outcomes, warnings and verdicts from what lies in it."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.model import (
    ArmResult,
    Case,
    Disturbed,
    Ended,
    Evaluation,
    Lost,
)
from orchestrator.reports.table import render_details
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from tests.support.builders import (
    MS,
    NEW,
    OLD,
    case,
    ended,
    finished,
    manifest,
    plan,
    rows,
    run_folder,
    target,
    write_stream,
)

A, B = case("a"), case("b")
DONE = finished(how="", seconds=1.0)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run of two cases in two versions with nothing in it yet."""
    return run_folder(tmp_path / "run", plan([A, B]))


def measured(run: RunFolder, version: str, *cases, rounds=range(5), ms: float = 10, settled: bool = True) -> Path:
    """A stream with the pilot and the rounds of these cases."""
    batches = [
        rows(
            one,
            version,
            round=number,
            replicate=len(rounds) * place + number,
            bursts=(int(ms * MS * (1 + number / 1000)),) * 3,
        )
        for place, one in enumerate(cases)
        for number in rounds
    ]
    stream = run.worker_output.stream(target(version), 1)
    write_stream(stream, batches)
    if settled:
        run.worker_output.settle(stream)
    return stream.path


def end(version: str, of, outcome: str, reason: str, number: int = 1) -> Ended:
    return ended(of, version, outcome, round=number, replicate=99, reason=reason)


def arms(evaluation: Evaluation) -> dict[tuple[str, str], ArmResult]:
    return {arm.key: arm for arm in evaluation.arms}


def test_a_run_that_went_well_has_every_arm_measured_and_nothing_to_warn_of(run: RunFolder):
    for version in (OLD, NEW):
        measured(run, version, A, B)
    run.record(DONE)
    evaluation = judge_run(run)
    assert [(arm.case, arm.target) for arm in evaluation.arms] == [(A, OLD), (A, NEW), (B, OLD), (B, NEW)]
    assert {(arm.outcome, arm.reason, arm.rounds) for arm in evaluation.arms} == {("measured", "", 4)}
    assert (evaluation.warnings, evaluation.broken, evaluation.died) == ((), (), ())
    assert [comparison.verdict for comparison in evaluation.comparisons] == ["same", "same"]


def test_an_arms_figures_are_medians_over_its_rounds_in_the_units_of_their_names(run: RunFolder):
    batches = [
        rows(
            A,
            OLD,
            round=number,
            replicate=number,
            bursts=(ms * MS,) * 3,
            import_ns=3 * 10**9,
            resident_kb=2048 * number,
        )
        for number, ms in ((0, 900), (1, 10), (2, 30), (3, 11))
    ]
    write_stream(run.worker_output.stream(target(OLD), 1), batches)
    arm = arms(judge_run(run))["a", OLD]
    figures = [arm.figures[name] for name in ("time", "first", "build", "import", "traces")]
    assert (figures, arm.resident_bytes) == ([11.0, 50.0, 500.0, 3000.0, 1], 4 * 2**20)


def test_a_refused_arm_says_why_and_costs_no_other(run: RunFolder):
    measured(run, OLD, A, B)
    measured(run, NEW, B)
    run.record(end(NEW, A, "refused", "no such op"))
    run.record(DONE)
    evaluation = judge_run(run)
    found = arms(evaluation)["a", NEW]
    assert (found.outcome, found.reason, found.rounds, found.time_ms) == ("refused", "no such op", 0, None)
    assert [comparison.reason for comparison in evaluation.comparisons] == ["no such op", ""]
    assert evaluation.died == ()


def test_an_arm_that_died_keeps_what_it_measured_and_never_has_a_verdict(run: RunFolder):
    measured(run, OLD, A, B)
    measured(run, NEW, A, B, ms=40)
    run.record(end(NEW, A, "died", "killed by SIGKILL", number=5))
    run.record(DONE)
    evaluation = judge_run(run)
    found = arms(evaluation)["a", NEW]
    assert (found.outcome, found.reason, found.rounds) == ("died", "killed by SIGKILL", 4)
    assert found.time_ms == pytest.approx(40.1)
    assert evaluation.died == (found,)
    assert [comparison.verdict for comparison in evaluation.comparisons] == ["inconclusive", "slower"]
    assert [comparison.pair.case for comparison in evaluation.comparisons if comparison.verdict == "slower"] == [B]


def test_an_arm_that_died_before_it_measured_anything_is_dead_with_its_reason(run: RunFolder):
    run.record(end(NEW, A, "died", "ended with exit code 3", number=0))
    found = arms(judge_run(run))["a", NEW]
    assert (found.outcome, found.reason, found.time_ms) == ("died", "ended with exit code 3", None)


def test_a_lost_version_is_a_warning_and_its_unmeasured_arms_name_it(run: RunFolder):
    measured(run, OLD, A, B)
    run.record(Lost(target=target(NEW), stage="environment", reason="no space left", failure="disk", external=True))
    run.record(DONE)
    evaluation = judge_run(run)
    assert evaluation.warnings == (f"{NEW} was lost (environment: no space left)",)
    assert {arm.reason for arm in evaluation.died} == {"environment: no space left"}
    assert [arm.target for arm in evaluation.died] == [NEW, NEW]


def test_a_version_that_more_rounds_measured_is_not_lost(run: RunFolder):
    measured(run, OLD, A)
    run.record(Lost(target=target(NEW), stage="worker", reason="it died 3 times", failure="worker", external=False))
    run.record(Lost(target=target(OLD), stage="environment", reason="no space left", failure="disk", external=True))
    measured(run, NEW, A)
    run.record(DONE)
    assert judge_run(run).warnings == (f"{OLD} was lost (environment: no space left)",)


def test_a_run_without_an_end_was_cut_short_and_its_unmeasured_arms_say_so(run: RunFolder):
    measured(run, OLD, A, B)
    measured(run, NEW, A, settled=False)
    evaluation = judge_run(run)
    assert evaluation.warnings == ("the run was cut short; what it measured is here",)
    unmeasured = arms(evaluation)["b", NEW]
    assert (unmeasured.outcome, unmeasured.reason) == ("not measured", "the run was cut short")
    assert evaluation.comparisons[0].verdict == "same"


def test_a_stream_that_breaks_the_contract_is_told_and_the_other_versions_stay(run: RunFolder):
    measured(run, OLD, A, B)
    (run.settled / f"{NEW}-1.arrow").write_text("hello")
    evaluation = judge_run(run)
    (broken,) = evaluation.broken
    assert f"{NEW}-1.arrow is not an Arrow stream" in broken
    assert [arm.outcome for arm in evaluation.arms] == ["measured", "not measured", "measured", "not measured"]


def test_an_arm_whose_results_are_lost_says_so(run: RunFolder):
    measured(run, OLD, A)
    run.record(end(NEW, A, "measured", "", number=1))
    (run.settled / f"{NEW}-1.arrow").write_text("hello")
    run.record(DONE)
    unmeasured = arms(judge_run(run))["a", NEW]
    assert (unmeasured.outcome, unmeasured.reason) == ("not measured", "its results are lost")


def test_a_stream_that_was_cut_is_read_up_to_there_and_told(run: RunFolder):
    stream = measured(run, NEW, A, B, settled=False)
    stream.write_bytes(stream.read_bytes()[:-100])
    evaluation = judge_run(run)
    assert (
        evaluation.warnings[0]
        == f"results/{NEW}-1/{stream.name} was not closed by its worker: read up to its last whole replicate"
    )
    assert [arm.rounds for arm in evaluation.arms] == [0, 4, 0, 3]


def test_parts_of_a_version_whose_worker_was_started_again_are_one_arm(run: RunFolder):
    write_stream(run.worker_output.stream(target(OLD), 1), [rows(A, OLD, round=1, replicate=1)])
    write_stream(run.worker_output.stream(target(OLD), 2), [rows(A, OLD, round=2, replicate=2)])
    assert arms(judge_run(run))["a", OLD].rounds == 2


def test_judging_twice_gives_the_same(run: RunFolder):
    for version in (OLD, NEW):
        measured(run, version, A, B)
    assert judge_run(run) == judge_run(run)


def test_a_round_that_was_redone_counts_once_and_one_that_was_kept_is_told(run: RunFolder):
    for version in (OLD, NEW):
        measured(run, version, A, B)
    cause = "other processes kept 1.0 cores busy"
    run.record(Disturbed(case="a", round=2, replicates=(2,), cause=cause, redone=True))
    run.record(Disturbed(case="b", round=3, replicates=(8,), cause=cause, redone=False))
    run.record(DONE)
    evaluation = judge_run(run)
    assert {(one.case.label, one.rounds) for one in evaluation.arms} == {("a", 3), ("b", 4)}
    (warning,) = evaluation.warnings
    assert warning == f"2 disturbances, e.g. {cause}; 1 repeated"


@pytest.mark.parametrize(
    ("how", "reason", "refuted"),
    [
        ("asserted", "AssertionError: it ran (raised in a call)", True),
        ("raised", "ValueError: it ran (raised in a call)", False),
        ("signal", "killed by SIGKILL", False),
    ],
)
def test_an_arm_whose_workload_asserted_in_vain_is_refuted(run: RunFolder, how: str, reason: str, refuted: bool):
    run.record(replace(end(OLD, A, "died", reason), how=how))
    assert arms(judge_run(run))[A.label, OLD].refuted == refuted


@pytest.mark.parametrize("outcome", ["refused", "died"])
@pytest.mark.parametrize("first_case", [True, False])
def test_what_versions_share_is_compared_in_a_case_that_both_have(tmp_path: Path, outcome: str, first_case: bool):
    environments = {
        version: replace(facts, size_bytes=size)
        for (version, facts), size in zip(manifest().environments.items(), (100, 300), strict=True)
    }
    run = run_folder(tmp_path / "run", plan([A, B], metrics=("import", "size")), environments=environments)
    lacking, common = (A, B) if first_case else (B, A)
    measured(run, OLD, A, B)
    measured(run, NEW, common)
    run.record(end(NEW, lacking, outcome, "not in this one"))
    run.record(DONE)
    judged = judge_run(run)
    for metric, verdict in (("import", "same"), ("size", "slower")):
        [comparison] = judged.metrics[metric]
        assert (comparison.pair.case, comparison.verdict) == (common, verdict)


def test_what_versions_share_is_inconclusive_where_no_case_is_common(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan([A, B], metrics=("import",)))
    measured(run, OLD, A, B)
    for case_of in (A, B):
        run.record(end(NEW, case_of, "refused", "not in this one"))
    [comparison] = judge_run(run).metrics["import"]
    assert (comparison.verdict, comparison.reason) == ("inconclusive", "not in this one")


def counted(run: RunFolder, version: str, *cases: Case, operations: int | None) -> None:
    batches = [
        [
            {**row, **dict.fromkeys(("operations", "next_operations"), operations if row["phase"] == "build" else None)}
            for row in rows(one, version, round=number, replicate=10 * place + number)
        ]
        for place, one in enumerate(cases)
        for number in range(5)
    ]
    write_stream(run.worker_output.stream(target(version), 1), batches)


@pytest.mark.parametrize(
    ("new", "backend", "verdict", "reason"),
    [
        (1000, None, "same", ""),
        (1100, None, "slower", ""),
        (None, None, "inconclusive", "0 of 2 replicates were counted in 2.0.0"),
        (0, None, "inconclusive", "a call in 2.0.0 runs none"),
        (None, "torch", "inconclusive", "2.0.0 computes with torch, whose operations are not counted"),
    ],
)
def test_counts_that_are_missing_leave_a_comparison_open_and_say_why(
    tmp_path: Path, new: int | None, backend: str | None, verdict: str, reason: str
):
    workers = {target(OLD): {"python": "3.7.16"}, target(NEW): {"python": "3.11.7", "backend": backend}}
    run = run_folder(tmp_path / "run", plan([A, B], metrics=("ops",)), workers=workers)
    counted(run, OLD, A, B, operations=1000)
    counted(run, NEW, A, operations=new)
    run.record(end(NEW, B, "refused", "not in this one"))
    run.record(DONE)
    # A case that one of both does not have is left out.
    [comparison] = judge_run(run).metrics["ops"]
    assert (comparison.pair.case, comparison.verdict, comparison.reason) == (A, verdict, reason)


def test_a_run_in_which_neither_was_counted_says_so(tmp_path: Path):
    run = run_folder(tmp_path / "run", plan([A], metrics=("ops",)))
    counted(run, OLD, A, operations=None)
    counted(run, NEW, A, operations=None)
    run.record(DONE)
    evaluation = judge_run(run)
    [comparison] = evaluation.metrics["ops"]
    assert comparison.reason == "0 of 2 replicates were counted in 1.0.0"
    assert "TensorFlow operations: nothing decided in 1 comparison" in render_details(evaluation)


@pytest.mark.parametrize(("microseconds", "drifts"), [(3, False), (300, True)])
def test_calls_that_only_read_the_clock_do_not_drift(run: RunFolder, microseconds: int, drifts: bool) -> None:
    first = microseconds * 1000
    batches = [rows(A, OLD, round=number, replicate=number, bursts=(first, 2 * first)) for number in range(7)]
    write_stream(run.worker_output.stream(target(OLD), 1), batches)
    run.record(DONE)
    assert bool(arms(judge_run(run))["a", OLD].drift) is drifts
