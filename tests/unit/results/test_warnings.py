"""What a report warns of: an early end, noise, and whatever differs between the versions besides TensorFlow."""

from pathlib import Path

import pytest

from orchestrator.model import Comparison, GpuSpan, Target, Watched
from orchestrator.results.endings import Endings
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.warnings import check_control, check_dependence, check_noise, compare_threads, is_noisy
from orchestrator.stats.dependence import Dependence
from tests.support.builders import (
    MS,
    NEW,
    OLD,
    case,
    comparison,
    environment_facts,
    finished,
    manifest,
    plan,
    rows,
    run_folder,
    target,
    version_pair,
    write_stream,
)

A, B = case("a"), case("b")
DONE = finished(how="", seconds=1.0)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run of two cases in two versions with nothing in it yet."""
    return run_folder(tmp_path / "run", plan([A, B]))


def test_how_a_run_ended_early_is_a_warning(run: RunFolder):
    run.record(finished(how="interrupted", seconds=1.0))
    assert judge_run(run).warnings == ("interrupted",)


def test_a_python_that_is_known_without_its_patch_is_the_same(tmp_path: Path):
    """A version that was lost at its start has told only the Python of its environment."""
    environments = {
        version: environment_facts(version=version, kind="docker", identity="x", lock="y", python="3.11")
        for version in (OLD, NEW)
    }
    run = run_folder(tmp_path / "other", plan([A]), environments=environments, workers={OLD: {"python": "3.11.9"}})
    run.record(DONE)
    assert judge_run(run).warnings == ()


def scattered(run: RunFolder, spread: float, rounds: int) -> None:
    """Both versions alike, but from round to round they differ by so much, to and fro."""
    for place, version in enumerate((OLD, NEW)):
        batches = [
            rows(
                of, version, round=number, replicate=(number * 3 + which) * 2 + place,
                bursts=(int(10 * MS * (1 + spread * place * (-1) ** (number // 2))),) * 3,
            )
            for which, of in enumerate(run.read_plan().cases)
            for number in range(1, rounds + 1)
        ]  # fmt: skip
        stream = run.worker_output.stream(target(version), 1)
        write_stream(stream, batches)
        run.worker_output.settle(stream)
    run.record(DONE)


@pytest.mark.parametrize(
    ("spread", "rounds", "told"), [(0.3, 8, True), (0.3, 3, False), (0.001, 8, False)],
    ids=["noisy", "too few rounds to tell", "quiet"],
)  # fmt: skip
def test_a_machine_that_hides_differences_is_told_before_the_verdicts(
    tmp_path: Path, spread: float, rounds: int, told: bool
):
    run = run_folder(tmp_path / "run", plan([A, B, case("c")]))
    scattered(run, spread, rounds)
    warnings = judge_run(run).warnings
    assert [warning.startswith("noisy machine: in 3 of 3 comparisons, ") for warning in warnings] == [True] * told


def control(*verdicts: str, **changes) -> list[Comparison]:
    """The comparisons of the control arm, one case each."""
    pairs = (version_pair(case(str(place)), OLD, Target(OLD, control=True)) for place in range(len(verdicts)))
    return [comparison(pair, 1.2, verdict, **changes) for pair, verdict in zip(pairs, verdicts, strict=True)]


def test_a_control_arm_that_fails_more_often_than_chance_explains_is_told_loudly():
    few = ("same",) * 9
    assert check_control(control("slower"))[0].startswith(
        "THE CONTROL ARM FAILED in 1 of 1 cases: 1.0.0 against itself"
    )
    assert check_control(control("slower", "faster", *few))[0].startswith("THE CONTROL ARM FAILED in 2 of 11 cases")
    assert check_control(control("slower", *few)) == [
        "the control arm came out different in 1 of 10 cases: 1.0.0 against itself is slower (1.20x in 0); in a run "
        "with that many equal arms, chance alone does this with a probability of 22%"
    ]


def test_a_control_arm_that_is_open_is_told_with_what_keeps_it_so():
    assert check_control(control("same", "same")) == []
    assert check_control(control("same", "inconclusive")) == [
        "the control arm is not shown to be the same in 1 of 2 cases: a noisy machine"
    ]
    assert check_control(control("inconclusive", "inconclusive", ci_low=None, ci_high=None)) == [
        "the control arm is not shown to be the same in 2 of 2 cases: too few rounds"
    ]


def noisy(**changes) -> list[Comparison]:
    """Three comparisons that noise leaves open, but for what is named."""
    facts = {"ci_low": 0.7, "ci_high": 1.6, "mde": 0.4, "verdict": "inconclusive"} | changes
    return [comparison(version_pair(case(name)), 1.1, **facts) for name in "abc"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "slowdowns below 40% may go unseen (target: 5%)"),
        ({"mde": 3.2}, "even a slowdown by a factor of two may go unseen"),
        ({"verdict": "same"}, ""),
        ({"ci_low": 1.01}, ""),
        ({"mde": 0.04}, ""),
        ({"rounds": 4}, ""),
        ({"ci_low": None, "ci_high": None, "mde": None}, ""),
    ],
)  # fmt: skip
def test_noise_is_what_leaves_comparisons_open_that_a_quieter_machine_would_decide(changes: dict, told: str):
    asked = plan([case(name) for name in "abc"])
    warnings = check_noise(asked, noisy(**changes))
    assert [told in warning for warning in warnings] == [True] * bool(told)
    assert is_noisy(asked, noisy(**changes)) is bool(told)


def watched(number: int, slowest: int | None, fastest: int | None, *reasons: str, celsius: int | None = 60) -> Watched:
    card = GpuSpan(
        index=0, sm_mhz_min=slowest, sm_mhz_max=fastest, temperature_c=celsius, power_w=300, throttled=reasons
    )  # fmt: skip
    return Watched(cases=("a",), round=number, gpus=(card,))


def warned(run: RunFolder, *visits: Watched) -> tuple[str, ...]:
    for visit in visits:
        run.record(visit)
    run.record(DONE)
    return judge_run(run).warnings


def test_a_gpu_whose_clock_moved_is_told_with_what_held_it_back(run: RunFolder):
    visits = (
        watched(1, 1980, 1980),
        watched(2, 1410, 1755, "power cap", celsius=83),
        watched(3, 1900, 1980, "power cap"),
    )
    assert warned(run, *visits) == (
        "GPU 0 ran at 1410 to 1980 MHz after its bursts, up to 83 C, power cap in 2 of 3 visits; "
        "--lock-clocks MHZ holds it still",
    )


def test_a_gpu_whose_clock_kept_still_or_was_not_told_is_nothing_to_warn_of(run: RunFolder):
    still = (watched(1, 1950, 1980, "power cap"), watched(2, 1960, 1980), watched(3, None, None, celsius=None))
    assert warned(run, *still) == ()


def test_what_was_noted_of_the_gpus_at_the_start_stands_above_every_report(run: RunFolder):
    run.write_manifest(manifest(notes=("MEASURED BY FORCE: 1.0.0",)))
    assert warned(run) == ("MEASURED BY FORCE: 1.0.0",)


EQUAL = {(A.label, OLD): {(0, 0)}, (A.label, NEW): {(0, 0)}}
UNEQUAL = {(A.label, OLD): {(0, 0)}, (A.label, NEW): {(1, 0)}, (B.label, OLD): {(0, 0)}, (B.label, NEW): {(0, 0)}}


@pytest.mark.parametrize(
    ("asked", "stated", "warned"),
    [
        (None, EQUAL, []),
        ((0, 0), EQUAL, []),
        # What TensorFlow 1.13 does not say is no difference.
        ((1, 2), {}, []),
        (None, UNEQUAL, [f"in 1 of 2 cases (inter,intra; 0 is its own choice), e.g. in a: {OLD}: 0,0; {NEW}: 1,0"]),
        ((1, 2), EQUAL, ["in 1 of 1 cases (inter,intra; 0 is its own choice, --threads 1,2 was asked for)"]),
    ],
)
def test_threads_that_differ_between_versions_or_from_the_flag_are_a_warning(asked, stated, warned: list[str]):
    warnings = compare_threads(plan([A, B], threads=asked), Endings(threads=stated))
    assert len(warnings) == len(warned)
    assert all(part in warning for part, warning in zip(warned, warnings, strict=True))


def test_rounds_that_depend_on_each_other_are_a_warning_that_names_what_is_less_certain():
    assert check_dependence({("time", None): Dependence(), ("step", None): Dependence(0.62)}) == [
        "rounds resemble the rounds before them (correlation 0.62), so the intervals of step are wider: something on "
        "this machine changes slowly"
    ]


def test_a_run_whose_ratio_wanders_is_warned_of_it_and_says_so_where_it_stays_open(run: RunFolder):
    """The candidate is 30 % slower for ten rounds, and 30 % faster for ten."""
    for place, version in enumerate((OLD, NEW)):
        batches = [
            rows(
                of, version, round=number, replicate=(number * 3 + which) * 2 + place,
                bursts=(int(10 * MS * (1 + place * (0.3 if number <= 10 else -0.3) + 0.001 * (number % 3))),) * 3,
            )
            for which, of in enumerate(run.read_plan().cases)
            for number in range(1, 21)
        ]  # fmt: skip
        stream = run.worker_output.stream(target(version), 1)
        write_stream(stream, batches)
        run.worker_output.settle(stream)
    run.record(DONE)
    judged = judge_run(run)
    assert any(warning.startswith("rounds resemble the rounds before them") for warning in judged.warnings)
    assert all("because rounds depend on each other" in comparison.reason for comparison in judged.comparisons)
