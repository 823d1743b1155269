"""JUnit XML, which every CI system shows: one suite per candidate version, one test per case, a failure if slower."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from orchestrator.exports.common import describe_comparison, describe_other_metrics
from orchestrator.model import ArmKey, ArmResult, Comparison, Evaluation, Replicate, Target
from orchestrator.results.run import Run
from orchestrator.terminal.text import escape_unprintable

COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def render(run: Run, inconclusive: str = "skipped") -> str:
    """Return the text. A test with an open verdict is `skipped`, or `passed` with its message as output."""
    root, plan = Element("testsuites", name="tfcompare"), run.plan
    facts = {
        "run": plan.run, "engine": plan.engine, "device": plan.device, "suite": plan.suite, "judge": plan.judge,
        "margin": f"{plan.margin:g}", "tool": run.manifest.tool, "cpu": str(run.manifest.host.get("cpu")),
    }  # fmt: skip
    for target in plan.targets:
        tests = list(_tests(run, target, inconclusive))
        if tests:
            suite = SubElement(root, "testsuite", name=escape_unprintable(f"tfcompare {target}"))
            suite.set("timestamp", plan.created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"))
            properties = SubElement(suite, "properties")
            for name, value in facts.items():
                SubElement(properties, "property", name=f"tfcompare.{name}", value=escape_unprintable(value))
            suite.extend(tests)
            _add_output(suite, (f"warning: {text}" for text in run.warnings))
            _count(suite, tests)
    _count(root, list(root.iter("testcase")))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode")


def _tests(run: Run, target: Target, inconclusive: str) -> Iterable[Element]:
    """Yield one test per comparison of this version with another.

    There is also one for each arm that no comparison is about and that was not measured; otherwise a case that dies
    everywhere would be missing.
    """
    evaluation, durations, other_metrics = run.evaluation, durations_s(run.replicates), describe_other_metrics(run)
    arms = {arm.key: arm for arm in evaluation.arms}
    own = [
        comparison
        for comparison in evaluation.comparisons
        if comparison.pair.kind == "target" and comparison.pair.candidate == target
    ]
    for comparison in own:
        name = comparison.pair.arms[1]
        test = _build_comparison_test(evaluation, comparison, arms[name], inconclusive)
        test.set("time", f"{durations.get(name, 0.0):.9f}")
        # A metric that the run was not planned for is never a failure here: `--fail-on` says which are errors.
        if comparison.pair.across:
            _add_output(test, other_metrics.get(name, ()))
        yield test
    about = {comparison.pair.arms[1] for comparison in own}
    for name, arm in arms.items():
        if arm.target == target and arm.outcome != "measured" and name not in about:
            yield _test_without_time(arm)


def durations_s(replicates: Iterable[Replicate]) -> dict[ArmKey, float]:
    """Return how long the calls of each arm took, all its replicates together."""
    durations: dict[ArmKey, float] = defaultdict(float)
    for replicate in replicates:
        durations[replicate.arm] += (replicate.build_ns + replicate.calls_ns) / 1e9
    return durations


def _build_comparison_test(
    evaluation: Evaluation, comparison: Comparison, arm: ArmResult, inconclusive: str
) -> Element:
    if arm.outcome != "measured":
        return _test_without_time(arm)
    pair = comparison.pair
    name = arm.case.label
    name += "" if pair.metric == "time" else f" {pair.metric}"
    baseline = pair.arms[0].target
    name += "" if baseline == evaluation.plan.targets[0] else f" against {baseline}"
    test = _test(arm, name)
    message = describe_comparison(comparison)
    # --fail-on uses the same rule.
    is_open = comparison.report_verdict == "inconclusive" or comparison.exploratory
    if comparison.verdict == "slower" and not is_open:
        _add_result(test, "failure", message, kind="slower")
    elif is_open and inconclusive == "skipped":
        _add_result(test, "skipped", message)
    else:
        _add_output(test, [message])
    return test


def _test_without_time(arm: ArmResult) -> Element:
    test = _test(arm, arm.case.label)
    if arm.outcome == "died":
        if arm.failure:
            _add_properties(test, failure=arm.failure, external="true" if arm.external else "false")
        _add_result(test, "error", arm.reason or "it died", kind="died")
    else:
        _add_result(test, "skipped", f"{arm.outcome}: {arm.reason}")
    return test


def _test(arm: ArmResult, name: str) -> Element:
    test = Element(
        "testcase", classname=escape_unprintable(f"tfcompare.{arm.case.workload}"), name=escape_unprintable(name)
    )
    test.set("time", "0.0")
    if arm.time_ms is not None:
        _add_properties(test, **{f"step_{'' if arm.wall_ms is None else 'cpu_'}seconds": f"{arm.time_ms / 1e3:.9f}"})
    return test


def _add_properties(test: Element, **values: str) -> None:
    properties = test.find("properties")
    if properties is None:
        properties = SubElement(test, "properties")
    for name, value in values.items():
        SubElement(properties, "property", name=f"tfcompare.{name}", value=value)


def _add_result(test: Element, tag: str, text: str, kind: str = "") -> None:
    """Add a result as an attribute and as text, because some viewers show the one and some the other."""
    element = SubElement(test, tag, message=escape_unprintable(text))
    if kind:
        element.set("type", kind)
    element.text = escape_unprintable(text)


def _add_output(parent: Element, lines: Iterable[str]) -> None:
    text = "\n".join(map(escape_unprintable, lines))
    if not text:
        return
    element = parent.find("system-out")
    if element is None:
        element = SubElement(parent, "system-out")
    element.text = f"{element.text}\n{text}" if element.text else text


def _count(suite: Element, tests: list[Element]) -> None:
    kinds = Counter(child.tag for test in tests for child in test)
    suite.set("tests", str(len(tests)))
    for name, tag in COUNTED.items():
        suite.set(name, str(kinds[tag]))
    suite.set("time", f"{sum(float(test.get('time', '0')) for test in tests):.9f}")
