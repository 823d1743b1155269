"""What targets differ in besides TensorFlow."""

from dataclasses import replace

from orchestrator.model import EnvironmentFacts, Manifest
from orchestrator.reports.target_differences import as_objects, describe_differences
from orchestrator.results.differences import DifferingFact, find_differences
from tests.support.builders import NEW, OLD, case, manifest, plan, target
from tests.support.scenes import everything

CHANGED = "2.13.0+onednn-off"


def environment(version: str, python: str = "3.11.7", **packages: str) -> EnvironmentFacts:
    return EnvironmentFacts(
        version=version, kind="venv", identity="x", lock="y", python=python,
        packages={name.replace("_", "-"): number for name, number in packages.items()},
    )  # fmt: skip


def made(environments: dict[str, EnvironmentFacts], workers: dict[str, dict[str, str | bool | None]]) -> Manifest:
    return manifest(
        environments={target(name): facts for name, facts in environments.items()},
        workers={target(name): facts for name, facts in workers.items()},
    )


def test_only_what_differs_is_told_and_numbers_of_releases_are_in_their_names():
    facts = made(
        {OLD: environment(OLD, "3.7.16", numpy="1.16.6", six="1.0"), NEW: environment(NEW, numpy="1.24.3", six="1.0")},
        {
            OLD: {"tensorflow": OLD, "python": "3.7.16", "onednn": False},
            NEW: {"tensorflow": NEW, "python": "3.11.7", "onednn": True},
        },
    )
    [found] = find_differences(plan([case()]), facts)
    assert found.facts == (DifferingFact("Python", "3.7.16", "3.11.7"), DifferingFact("oneDNN", "off", "on"))
    assert found.packages == (DifferingFact("numpy", "1.16.6", "1.24.3"),)


def test_variables_of_a_target_and_what_they_switched_are_told():
    off = replace(environment(NEW), variables={"TF_ENABLE_ONEDNN_OPTS": "0"})
    facts = made(
        {NEW: environment(NEW), CHANGED: off},
        {NEW: {"tensorflow": NEW, "onednn": True}, CHANGED: {"tensorflow": NEW, "onednn": False}},
    )
    asked = plan([case()], (NEW, CHANGED))
    [found] = find_differences(asked, facts)
    assert found.facts == (DifferingFact("oneDNN", "on", "off"), DifferingFact("TF_ENABLE_ONEDNN_OPTS", "none", "0"))
    comparison = replace(everything(), plan=asked, manifest=facts)
    assert list(describe_differences(comparison)) == [
        f"{CHANGED} also differs from {NEW} in oneDNN on -> off, TF_ENABLE_ONEDNN_OPTS none -> 0"
    ]


def test_tf32_is_of_builds_for_gpus():
    for of_gpus, told in ((True, (DifferingFact("TF32", "none", "on"),)), (False, ())):
        stated = {"tensorflow": NEW, "tf32": True, "is_cuda_build": of_gpus}
        facts = made({OLD: environment(OLD), NEW: environment(NEW)}, {OLD: {"tensorflow": OLD}, NEW: stated})
        assert sum((each.facts for each in find_differences(plan([case()]), facts)), ()) == told


def test_a_wheel_says_its_own_number():
    facts = made(
        {NEW: environment(NEW), "mine": environment("mine")},
        {NEW: {"tensorflow": NEW}, "mine": {"tensorflow": "2.13.0+mine"}},
    )
    [found] = find_differences(plan([case()], (NEW, "mine")), facts)
    assert found.facts == (DifferingFact("TensorFlow", NEW, "2.13.0+mine"),)


def test_targets_that_are_alike_are_not_named():
    assert find_differences(plan([case()]), manifest()) == ()


def test_many_packages_are_counted_and_json_has_them_all():
    before = {f"package{place}": "1.0" for place in range(9)}
    facts = made({OLD: environment(OLD, **before), NEW: environment(NEW)}, {})
    comparison = replace(everything(), plan=plan([case()]), manifest=facts)
    assert list(describe_differences(comparison)) == [f"{NEW} also differs from {OLD} in 9 packages"]
    [found] = as_objects(comparison)
    assert found["packages"][0] == {"name": "package0", "baseline": "1.0", "candidate": "none"}
    assert len(found["packages"]) == 9


def test_of_many_targets_the_first_are_named():
    versions = [f"2.{minor}.0" for minor in range(9)]
    facts = made({version: environment(version, f"3.{place}.0") for place, version in enumerate(versions)}, {})
    lines = list(describe_differences(replace(everything(), plan=plan([case()], versions), manifest=facts)))
    assert len(lines) == 7
    assert lines[-1] == "and 2 more targets: --format json lists what they differ in"
