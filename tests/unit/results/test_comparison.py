"""A run directory, however it ended, is read the same way: outcomes, warnings and verdicts from what lies in it."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.model import (
    ArmResult,
    CardSpan,
    Comparison,
    Disturbed,
    Ended,
    EnvironmentFacts,
    Finished,
    Lost,
    Watched,
)
from orchestrator.results.comparison import judge_run
from orchestrator.results.endings import Endings, read_endings
from orchestrator.results.rundir import RunDir
from orchestrator.results.warnings import _join_versions, compare_threads
from tests.support.builders import MS, NEW, OLD, case, manifest, plan, rows, run_directory, write_stream

A, B = case("a"), case("b")
DONE = Finished(how="", seconds=1.0)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run of two cases in two versions with nothing in it yet."""
    return run_directory(tmp_path / "run", plan([A, B]))


def measured(run: RunDir, version: str, *cases, rounds=range(4), ms: float = 10, settled: bool = True) -> Path:
    """A stream with the pilot and the rounds of these cases."""
    batches = [
        rows(
            one,
            version,
            round=number,
            replicate=len(rounds) * place + number,
            steady=(int(ms * MS * (1 + number / 1000)),) * 3,
        )
        for place, one in enumerate(cases)
        for number in rounds
    ]
    stream = run.stream(version, 1)
    write_stream(stream, batches)
    if settled:
        run.settle(stream)
    return stream.path


def ended(version: str, of, outcome: str, reason: str, number: int = 1) -> Ended:
    return Ended(version=version, case=of.label, round=number, replicate=99, outcome=outcome, reason=reason)


def arms(comparison: Comparison) -> dict[tuple[str, str], ArmResult]:
    return {arm.key: arm for arm in comparison.arms}


def test_a_run_that_went_well_has_every_arm_measured_and_nothing_to_warn_of(run: RunDir):
    for version in (OLD, NEW):
        measured(run, version, A, B)
    run.record(DONE)
    comparison = judge_run(run)
    assert [(arm.case, arm.version) for arm in comparison.arms] == [(A, OLD), (A, NEW), (B, OLD), (B, NEW)]
    assert {(arm.outcome, arm.reason, arm.rounds) for arm in comparison.arms} == {("measured", "", 3)}
    assert (comparison.warnings, comparison.broken, comparison.died) == ((), (), ())
    assert [contrast.verdict for contrast in comparison.contrasts] == ["same", "same"]


def test_an_arms_figures_are_medians_over_its_rounds_in_the_units_of_their_names(run: RunDir):
    batches = [
        rows(
            A,
            OLD,
            round=number,
            replicate=number,
            steady=(ms * MS,) * 3,
            import_ns=3 * 10**9,
            peak_rss_kb=2048 * number,
        )
        for number, ms in ((0, 900), (1, 10), (2, 30), (3, 11))
    ]
    write_stream(run.stream(OLD, 1), batches)
    arm = arms(judge_run(run))["a", OLD]
    assert (arm.median_ms, arm.first_ms, arm.build_s, arm.import_s, arm.peak_rss_mb) == (11.0, 50.0, 0.5, 3.0, 4.0)
    assert (arm.traces, arm.checksum) == (1, "abcdef")


def test_a_refused_arm_says_why_and_costs_no_other(run: RunDir):
    measured(run, OLD, A, B)
    measured(run, NEW, B)
    run.record(ended(NEW, A, "refused", "no such op"))
    run.record(DONE)
    comparison = judge_run(run)
    found = arms(comparison)["a", NEW]
    assert (found.outcome, found.reason, found.rounds, found.median_ms) == ("refused", "no such op", 0, None)
    assert [contrast.reason for contrast in comparison.contrasts] == ["no such op", ""]
    assert comparison.died == ()


def test_an_arm_that_died_keeps_what_it_measured_and_never_has_a_verdict(run: RunDir):
    measured(run, OLD, A, B)
    measured(run, NEW, A, B, rounds=range(3), ms=40)
    run.record(ended(NEW, A, "died", "killed by SIGKILL", number=3))
    run.record(DONE)
    comparison = judge_run(run)
    found = arms(comparison)["a", NEW]
    assert (found.outcome, found.reason, found.rounds) == ("died", "killed by SIGKILL", 2)
    assert found.median_ms == pytest.approx(40.06)
    assert comparison.died == (found,)
    assert [contrast.verdict for contrast in comparison.contrasts] == ["inconclusive", "slower"]
    assert [contrast.pair.case for contrast in comparison.slower] == [B]


def test_an_arm_that_died_before_it_measured_anything_is_dead_with_its_reason(run: RunDir):
    run.record(ended(NEW, A, "died", "ended with exit code 3", number=0))
    found = arms(judge_run(run))["a", NEW]
    assert (found.outcome, found.reason, found.median_ms) == ("died", "ended with exit code 3", None)


def test_a_lost_version_is_a_warning_and_its_unmeasured_arms_name_it(run: RunDir):
    measured(run, OLD, A, B)
    run.record(Lost(version=NEW, stage="environment", reason="no space left"))
    run.record(DONE)
    comparison = judge_run(run)
    assert comparison.warnings == (f"{NEW} was lost (environment: no space left)",)
    assert {arm.reason for arm in comparison.died} == {"environment: no space left"}
    assert [arm.version for arm in comparison.died] == [NEW, NEW]


def test_a_version_that_more_rounds_measured_is_not_lost(run: RunDir):
    measured(run, OLD, A)
    run.record(Lost(version=NEW, stage="worker", reason="it died 3 times"))
    run.record(Lost(version=OLD, stage="environment", reason="no space left"))
    measured(run, NEW, A)
    run.record(DONE)
    assert judge_run(run).warnings == (f"{OLD} was lost (environment: no space left)",)


def test_a_run_without_an_end_was_cut_short_and_its_unmeasured_arms_say_so(run: RunDir):
    measured(run, OLD, A, B)
    measured(run, NEW, A, settled=False)
    comparison = judge_run(run)
    assert comparison.warnings == ("the run was cut short; what it measured is here",)
    assert arms(comparison)["b", NEW].reason == "the run ended before it was measured"
    assert comparison.contrasts[0].verdict == "same"


def test_how_a_run_ended_early_is_a_warning(run: RunDir):
    run.record(Finished(how="interrupted", seconds=1.0))
    assert judge_run(run).warnings == ("interrupted",)


def test_a_stream_that_breaks_the_contract_is_told_and_the_other_versions_stay(run: RunDir):
    measured(run, OLD, A, B)
    (run.results / f"{NEW}-1.arrow").write_text("hello")
    comparison = judge_run(run)
    (broken,) = comparison.broken
    assert f"{NEW}-1.arrow is no Arrow stream" in broken
    assert [arm.outcome for arm in comparison.arms] == ["measured", "died", "measured", "died"]


def test_a_stream_that_was_cut_is_read_up_to_there_and_told(run: RunDir):
    stream = measured(run, NEW, A, B, settled=False)
    stream.write_bytes(stream.read_bytes()[:-100])
    comparison = judge_run(run)
    assert (
        comparison.warnings[0]
        == f"results/{NEW}-1/{stream.name} was not closed by its worker: read up to its last whole replicate"
    )
    assert [arm.rounds for arm in comparison.arms] == [0, 3, 0, 2]


def test_parts_of_a_version_whose_worker_was_started_again_are_one_arm(run: RunDir):
    write_stream(run.stream(OLD, 1), [rows(A, OLD, round=1, replicate=1)])
    write_stream(run.stream(OLD, 2), [rows(A, OLD, round=2, replicate=2)])
    assert arms(judge_run(run))["a", OLD].rounds == 2


@pytest.mark.parametrize(
    ("pythons", "warned"),
    [
        (
            ("3.7.16", "3.11.7"),
            (f"Python differs between versions ({OLD} on 3.7.16, {NEW} on 3.11.7): it is part of every ratio",),
        ),
        (("3.11.7", "3.11.9"), ()),
    ],
)
def test_pythons_that_differ_by_more_than_a_patch_are_named(tmp_path: Path, pythons, warned):
    workers = {version: {"python": python} for version, python in zip((OLD, NEW), pythons, strict=True)}
    run = run_directory(tmp_path / "other", plan([A]), workers=workers)
    run.record(DONE)
    assert judge_run(run).warnings == warned


def test_a_python_that_is_known_without_its_patch_is_the_same(tmp_path: Path):
    """A version that was lost at its start has told only the Python of its environment."""
    environments = {
        version: EnvironmentFacts(version=version, kind="docker", identity="x", lock="y", python="3.11")
        for version in (OLD, NEW)
    }
    run = run_directory(tmp_path / "other", plan([A]), environments=environments, workers={OLD: {"python": "3.11.9"}})
    run.record(DONE)
    assert judge_run(run).warnings == ()


def test_judging_twice_gives_the_same(run: RunDir):
    for version in (OLD, NEW):
        measured(run, version, A, B)
    assert judge_run(run) == judge_run(run)


def test_a_round_that_was_redone_counts_once_and_one_that_was_kept_is_told(run: RunDir):
    for version in (OLD, NEW):
        measured(run, version, A, B)
    cause = "other processes kept 1.0 cores busy"
    run.record(Disturbed(case="a", round=2, replicates=(2,), cause=cause, redone=True))
    run.record(Disturbed(case="b", round=3, replicates=(7,), cause=cause, redone=False))
    run.record(DONE)
    comparison = judge_run(run)
    assert {(one.case.label, one.rounds) for one in comparison.arms} == {("a", 2), ("b", 3)}
    (warning,) = comparison.warnings
    assert warning == f"others used the machine in 2 visits of a case (e.g. {cause}); 1 were redone, 1 kept"


def scattered(run: RunDir, spread: float, rounds: int) -> None:
    """Both versions alike, but from round to round they differ by so much, to and fro."""
    for place, version in enumerate((OLD, NEW)):
        batches = [
            rows(
                of, version, round=number, replicate=(number * 3 + which) * 2 + place,
                steady=(int(10 * MS * (1 + spread * place * (-1) ** (number // 2))),) * 3,
            )
            for which, of in enumerate(run.read_plan().cases)
            for number in range(1, rounds + 1)
        ]  # fmt: skip
        stream = run.stream(version, 1)
        write_stream(stream, batches)
        run.settle(stream)
    run.record(DONE)


@pytest.mark.parametrize(
    ("spread", "rounds", "told"), [(0.3, 8, True), (0.3, 3, False), (0.001, 8, False)],
    ids=["noisy", "too few rounds to tell", "quiet"],
)  # fmt: skip
def test_a_machine_that_hides_differences_is_told_before_the_verdicts(
    tmp_path: Path, spread: float, rounds: int, told: bool
):
    run = run_directory(tmp_path / "run", plan([A, B, case("c")]))
    scattered(run, spread, rounds)
    warnings = judge_run(run).warnings
    assert [warning.startswith("A NOISY MACHINE: in 3 of 3 contrasts") for warning in warnings] == [True] * told


def watched(number: int, slowest: int | None, fastest: int | None, *reasons: str, celsius: int | None = 60) -> Watched:
    card = CardSpan(
        index=0, sm_mhz_min=slowest, sm_mhz_max=fastest, temperature_c=celsius, power_w=300, throttled=reasons
    )  # fmt: skip
    return Watched(cases=("a",), round=number, cards=(card,))


def warned(run: RunDir, *visits: Watched) -> tuple[str, ...]:
    for version in (OLD, NEW):
        measured(run, version, A, B)
    for visit in visits:
        run.record(visit)
    run.record(DONE)
    return judge_run(run).warnings


def test_a_gpu_whose_clock_moved_is_told_with_what_held_it_back(run: RunDir):
    visits = (
        watched(1, 1980, 1980),
        watched(2, 1410, 1755, "power cap", celsius=83),
        watched(3, 1900, 1980, "power cap"),
    )
    assert warned(run, *visits) == (
        "GPU 0 ran at 1410 to 1980 MHz after its bursts, up to 83 C, power cap in 2 of 3 visits; "
        "`nvidia-smi --lock-gpu-clocks` keeps it still",
    )


def test_a_gpu_whose_clock_kept_still_or_was_not_told_is_nothing_to_warn_of(run: RunDir):
    still = (watched(1, 1950, 1980, "power cap"), watched(2, 1960, 1980), watched(3, None, None, celsius=None))
    assert warned(run, *still) == ()


def test_what_was_noted_of_the_gpus_at_the_start_stands_above_every_report(run: RunDir):
    run.write_manifest(manifest(notes=("MEASURED BY FORCE: 1.0.0",)))
    assert warned(run) == ("MEASURED BY FORCE: 1.0.0",)


def test_neighbours_that_share_a_python_are_told_together() -> None:
    pythons = {"1.14.0": "3.7", "2.0.0": "3.7", "2.1.4": "3.7", "2.13.0": "3.11", "2.20.0": "3.11"}
    assert _join_versions(pythons) == "1.14.0 to 2.1.4 on 3.7, 2.13.0 on 3.11, 2.20.0 on 3.11"


def test_the_journal_keeps_what_tensorflow_states_of_its_threads(run: RunDir):
    done = ended(OLD, A, "measured", "")
    for threads in ((1, 2), (0, 0), None, ()):
        run.record(replace(done, threads=threads))
    assert read_endings(run).threads == {(A.label, OLD): {(1, 2), (0, 0)}}


EQUAL = {(A.label, OLD): {(0, 0)}, (A.label, NEW): {(0, 0)}}
UNEQUAL = {(A.label, OLD): {(0, 0)}, (A.label, NEW): {(1, 0)}, (B.label, OLD): {(0, 0)}, (B.label, NEW): {(0, 0)}}


@pytest.mark.parametrize(
    ("asked", "stated", "warned"),
    [
        (None, EQUAL, []),
        ((0, 0), EQUAL, []),
        # What an old run or TensorFlow 1.13 does not say is no difference.
        ((1, 2), {}, []),
        (None, UNEQUAL, [f"in 1 of 2 cases (inter,intra; 0 is its own choice), e.g. in a: {OLD}: 0,0; {NEW}: 1,0"]),
        ((1, 2), EQUAL, ["in 1 of 1 cases (inter,intra; 0 is its own choice, --threads 1,2 was asked for)"]),
    ],
)
def test_threads_that_differ_between_versions_or_from_the_flag_are_a_warning(asked, stated, warned: list[str]):
    warnings = compare_threads(plan([A, B], threads=asked), Endings(threads=stated))
    assert len(warnings) == len(warned)
    assert all(part in warning for part, warning in zip(warned, warnings, strict=True))


@pytest.mark.parametrize(
    ("how", "reason", "refuted"),
    [
        ("asserted", "AssertionError: it ran (raised in a call)", True),
        # As journals of earlier releases have it.
        ("raised", "AssertionError: it ran (raised in a call)", True),
        ("raised", "ValueError: AssertionError", False),
        ("signal", "killed by SIGKILL", False),
    ],
)
def test_an_arm_whose_workload_asserted_in_vain_is_refuted(run: RunDir, how: str, reason: str, refuted: bool):
    run.record(replace(ended(OLD, A, "died", reason), how=how))
    assert arms(judge_run(run))[A.label, OLD].refuted == refuted
