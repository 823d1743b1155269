"""OpenMetrics text, read by Prometheus's own parser, and by the one for the older text format."""

from dataclasses import replace

import pytest
from prometheus_client import parser as older
from prometheus_client.openmetrics import parser
from prometheus_client.samples import Sample

from orchestrator.exports.openmetrics import render
from orchestrator.results.run import Run
from tests.support import scenes
from tests.support.builders import NEW as CANDIDATE
from tests.support.builders import case, comparison, evaluation, version_pair
from tests.support.export_runs import BATCH, EAGER, FIT, JIT, MID, NEW, OLD, POISONS, of_scene

VERDICTS = ("slower", "faster", "same", "inconclusive")


def samples(text: str, reader=parser) -> dict[str, list[Sample]]:
    return {family.name: family.samples for family in reader.text_string_to_metric_families(text + "\n")}


def value(found: list[Sample], **labels: str) -> float:
    (one,) = [sample for sample in found if labels.items() <= sample.labels.items()]
    return one.value


def test_it_ends_as_the_format_wants_and_every_metric_has_type_and_help(run: Run):
    text = render(run)
    assert text.endswith("\n# EOF")
    families = list(parser.text_string_to_metric_families(text + "\n"))
    assert {family.type for family in families} == {"gauge"}
    assert all(family.documentation for family in families)
    assert {family.name: family.unit for family in families if family.unit} == {
        "tfcompare_run_created_seconds": "seconds",
        "tfcompare_time_seconds": "seconds",
        "tfcompare_first_seconds": "seconds",
        "tfcompare_build_seconds": "seconds",
        "tfcompare_import_seconds": "seconds",
        "tfcompare_cpu_seconds": "seconds",
        "tfcompare_memory_bytes": "bytes",
    }


def test_times_are_in_seconds_by_case_and_version(run: Run):
    times = samples(render(run))["tfcompare_time_seconds"]
    assert len(times) == sum(1 for arm in run.arms if arm.time_ms is not None)
    assert value(times, case=FIT.label, target=OLD) == pytest.approx(0.003, rel=0.01)
    memory = samples(render(run))["tfcompare_memory_bytes"]
    assert value(memory, workload="power", case=EAGER.label, target=NEW) == 2048 * 1024


def test_ratios_have_their_interval_and_their_verdict(run: Run):
    found = samples(render(run))
    slower = {"case": EAGER.label, "candidate": MID, "baseline": OLD, "kind": "target", "metric": "time"}
    assert value(found["tfcompare_ratio"], **slower) == pytest.approx(4.0, rel=0.01)
    low, high = (value(found[f"tfcompare_ratio_{end}"], **slower) for end in ("low", "high"))
    assert low <= value(found["tfcompare_ratio"], **slower) <= high
    states = {one: value(found["tfcompare_verdict"], verdict=one, **slower) for one in VERDICTS}
    assert states == {"slower": 1, "faster": 0, "same": 0, "inconclusive": 0}
    assert value(found["tfcompare_exploratory"], **slower) == 0


def test_what_has_no_ratio_still_has_a_verdict_and_what_has_no_time_an_outcome(run: Run):
    found = samples(render(run))
    assert not [one for one in found["tfcompare_ratio"] if one.labels["case"] == JIT.label]
    of_time = {"case": JIT.label, "candidate": NEW, "metric": "time"}
    assert value(found["tfcompare_verdict"], verdict="inconclusive", **of_time) == 1
    assert value(found["tfcompare_outcome"], case=BATCH.label, target=NEW, outcome="died") == 1
    assert value(found["tfcompare_outcome"], case=JIT.label, target=OLD, outcome="refused") == 1


def test_the_run_is_told_once(run: Run):
    (about,) = samples(render(run))["tfcompare_run_info"]
    assert (about.value, about.labels["machine"]) == (1, "0123456789ab")
    (created,) = samples(render(run))["tfcompare_run_created_seconds"]
    assert (created.value, created.labels) == (run.plan.created.timestamp(), {})


def test_no_label_grows_with_every_run(run: Run):
    assert run.plan.run not in render(run)


def test_inside_a_version_cases_are_baseline_and_candidate():
    found = samples(render(of_scene(scenes.everything())))["tfcompare_ratio"]
    inside = [one for one in found if one.labels["kind"] == "case"]
    assert {one.labels["target"] for one in inside} == {"1.14.0", "2.0.0", "2.13.0"}
    assert inside[0].labels["candidate"] == "train_loop[loop=fit,mode=graph,model=small]"


def test_the_same_pair_within_two_margins_is_two_series_and_twice_the_same_is_one():
    pair = version_pair(case("claimed"))
    pairs = (pair, replace(pair, margin=0.5), replace(pair, margin=0.05))
    text = render(of_scene(evaluation(comparisons=tuple(comparison(one, 1.2, "slower") for one in pairs))))
    found = [one for one in samples(text)["tfcompare_ratio"] if one.labels["candidate"] == CANDIDATE]
    assert [one.labels["margin"] for one in found] == ["0.05", "0.5"]


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_no_label_breaks_a_line_or_ends_the_text(poison: str):
    text = render(of_scene(scenes.poisoned(poison)))
    assert text.count("# EOF\n") == 0
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    for reader in (parser, older):
        found = samples(text, reader)
        assert len(found["tfcompare_time_seconds"]) == 3
        assert len(found["tfcompare_verdict"]) == 2 * len(VERDICTS)


def test_the_older_text_format_is_the_same_to_its_own_parser(run: Run):
    """The textfile collector and the gateway read no other."""
    text = render(run)
    assert samples(text, older) == samples(text, parser)
