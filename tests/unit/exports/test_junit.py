"""JUnit XML, read by junitparser."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import junitparser
import junitparser.xunit2
import pytest

from orchestrator.exports import export_run, junit
from orchestrator.results.run import Run
from tests.support import scenes
from tests.support.builders import arm, case, comparison, evaluation, plan, target, unmeasured, version_pair
from tests.support.export_runs import BATCH, EAGER, FIT, FUNCTION, JIT, MID, NEW, OLD, of_scene


def read(run: Run, folder: Path) -> dict[str, junitparser.TestSuite]:
    (path,) = export_run(run, "junit", output=folder / "tfcompare.xml").files
    return {suite.name: suite for suite in junitparser.JUnitXml.fromfile(str(path))}


@pytest.fixture
def suites(run: Run, tmp_path: Path) -> dict[str, junitparser.TestSuite]:
    return read(run, tmp_path)


def by_name(suite: junitparser.TestSuite) -> dict[str, junitparser.TestCase]:
    return {test.name: test for test in suite}


def test_each_candidate_is_a_suite_and_the_baseline_one_of_what_it_lacks(suites: dict[str, junitparser.TestSuite]):
    assert list(suites) == [f"tfcompare {OLD}", f"tfcompare {MID}", f"tfcompare {NEW}"]
    assert list(by_name(suites[f"tfcompare {OLD}"])) == [JIT.label]
    assert set(by_name(suites[f"tfcompare {MID}"])) == {one.label for one in (EAGER, FUNCTION, JIT, FIT, BATCH)}


def test_slower_fails_with_ratio_and_interval(suites: dict[str, junitparser.TestSuite]):
    test = by_name(suites[f"tfcompare {MID}"])[EAGER.label]
    (failure,) = test.result
    assert isinstance(failure, junitparser.Failure)
    assert failure.type == "slower"
    assert failure.message.startswith("slower 4.00x (3.98-4.01) against 1.14.0")
    assert failure.text == failure.message
    assert "tfcompare.step_seconds" in {one.name for one in test.iterchildren(junitparser.Properties) for one in one}
    assert test.classname == "tfcompare.power"


def test_dead_is_an_error_refused_and_inconclusive_are_skipped_and_the_rest_passes(suites):
    newest = by_name(suites[f"tfcompare {NEW}"])
    (died,) = newest[BATCH.label].result
    assert isinstance(died, junitparser.Error)
    assert died.message == "ended with exit code 3"
    (noisy,) = by_name(suites[f"tfcompare {MID}"])[FIT.label].result
    assert isinstance(noisy, junitparser.Skipped)
    assert noisy.message.startswith("inconclusive")
    assert "against 1.14.0: " in noisy.message
    (refused,) = by_name(suites[f"tfcompare {OLD}"])[JIT.label].result
    assert isinstance(refused, junitparser.Skipped)
    assert refused.message == "refused: no jit switch before TensorFlow 2.1"
    assert (newest[EAGER.label].is_passed, newest[FUNCTION.label].is_passed) == (True, True)
    assert newest[EAGER.label].system_out.startswith("faster 0.50x")


def test_an_exploratory_verdict_fails_nothing(tmp_path: Path):
    suite = by_name(read(of_scene(scenes.exploratory()), tmp_path)["tfcompare 2.0.0"])
    for (found,) in (test.result for test in suite.values()):
        assert isinstance(found, junitparser.Skipped)
        assert "(exploratory)" in found.message
    assert any(found.message.startswith("slower") for test in suite.values() for found in test.result)


def test_memory_and_first_calls_are_told_and_fail_nothing(suites):
    told = by_name(suites[f"tfcompare {NEW}"])[EAGER.label].system_out.splitlines()
    assert [line.partition(":")[0] for line in told[1:3]] == ["first call", "peak memory"]
    (failure,) = by_name(suites[f"tfcompare {MID}"])[EAGER.label].result
    assert "memory" not in failure.text


def test_counts_and_times_add_up(run: Run, suites: dict[str, junitparser.TestSuite], tmp_path: Path):
    whole = junitparser.JUnitXml.fromfile(str(tmp_path / "tfcompare.xml"))
    measured = junit.durations_s(run.replicates)
    tested = {
        comparison.pair.arms[1] for comparison in run.comparisons if comparison.pair.arms[1].target == target(NEW)
    }
    assert suites[f"tfcompare {NEW}"].time == pytest.approx(sum(measured.get(arm, 0.0) for arm in tested), rel=0.02)
    said = [(one.tests, one.failures, one.errors, one.skipped) for one in (*suites.values(), whole)]
    for suite in (*suites.values(), whole):
        suite.update_statistics()
    assert said == [(one.tests, one.failures, one.errors, one.skipped) for one in (*suites.values(), whole)]
    assert said[-1] == (11, 2, 2, 4)


def test_a_suite_tells_the_run_and_its_warnings(tmp_path: Path):
    (suite,) = read(of_scene(scenes.exploratory()), tmp_path).values()
    assert {one.name: one.value for one in suite.properties()}["tfcompare.run"] == "20260102-030405-abcd"
    assert suite.timestamp == "2026-01-02T03:04:05"
    assert [test.result[0].message.partition(" against")[0] for test in suite] == [
        "slower (exploratory) 1.31x (1.27-1.35)", "inconclusive (exploratory) 1.04x (1.01-1.07)",
    ]  # fmt: skip
    warned = read(of_scene(scenes.poisoned("!")), tmp_path)
    suite = junitparser.xunit2.TestSuite.fromelem(next(iter(warned.values()))._elem)
    assert suite.system_out == "warning: broken!\nwarning: warned!"


def test_an_arm_that_died_has_the_kind_of_its_failure_as_properties():
    alone, other = case("alone"), case("other")
    dead = replace(unmeasured(alone, "1.0.0", "died", "no room"), failure="disk", external=True)
    older = unmeasured(other, "1.0.0", "died", "it broke")
    scene = evaluation(plan=plan([alone, other], pairs=()), arms=(dead, older), comparisons=())
    tests = ElementTree.fromstring(junit.render(of_scene(scene)).encode()).iter("testcase")
    found = {
        test.get("name"): {each.get("name"): each.get("value") for each in test.iter("property")} for test in tests
    }
    assert found == {"alone": {"tfcompare.failure": "disk", "tfcompare.external": "true"}, "other": {}}


def test_an_arm_that_no_comparison_is_about_and_that_died_is_an_error_too(tmp_path: Path):
    """As with a claim that an arm checks itself."""
    alone, other = case("alone"), case("other")
    found = evaluation(
        plan=plan([alone, other], pairs=(version_pair(other),)),
        arms=(unmeasured(alone, "1.0.0", "died", "it broke"), arm(other, "1.0.0"), arm(other, "2.0.0")),
        comparisons=(comparison(version_pair(other)),),
    )
    suites = read(of_scene(found), tmp_path)
    assert list(suites) == ["tfcompare 1.0.0", "tfcompare 2.0.0"]
    (test,) = suites["tfcompare 1.0.0"]
    assert (test.name, type(test.result[0]), test.result[0].message) == ("alone", junitparser.Error, "it broke")


def test_a_slight_difference_passes_and_few_rounds_are_skipped_without_an_interval(tmp_path: Path):
    slight, few = case("slight"), case("few")
    found = evaluation(
        plan=plan([slight, few]),
        arms=tuple(arm(one, version) for one in (slight, few) for version in ("1.0.0", "2.0.0")),
        comparisons=(
            comparison(version_pair(slight), 1.02, size="slight"),
            comparison(
                version_pair(few),
                1.5,
                "inconclusive",
                "3 rounds are too few to tell",
                ci_low=None,
                ci_high=None,
                rounds=3,
            ),
        ),
    )
    tests = by_name(read(of_scene(found), tmp_path)["tfcompare 2.0.0"])
    assert tests["slight"].is_passed
    assert tests["slight"].system_out == "slightly slower 1.02x (0.99-1.05) against 1.0.0"
    (skipped,) = tests["few"].result
    assert skipped.message == "inconclusive 1.50x against 1.0.0: 3 rounds are too few to tell"


def test_what_is_certain_in_its_row_alone_fails_nothing(tmp_path: Path):
    (only,) = evaluation().comparisons
    row_only = replace(only, ratio=1.2, verdict="slower", row_only=True, reason="certain in its row, but not among all")
    (suite,) = read(of_scene(evaluation(comparisons=(row_only,))), tmp_path).values()
    (test,) = suite
    (skipped,) = test.result
    assert isinstance(skipped, junitparser.Skipped)
    assert skipped.message.startswith("slower 1.20x")
    assert skipped.message.endswith("certain in its row, but not among all")
