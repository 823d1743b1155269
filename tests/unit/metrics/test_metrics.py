"""Each metric: what of a replicate it is, how it is printed, and by which names it is found."""

import json
import math
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from orchestrator.errors import ContractBroken
from orchestrator.metrics import METRICS, NAMES, OF_PROGRAMS, TIMES, USUAL, choose_metrics, describe_verdict
from orchestrator.metrics.followed import Followed
from orchestrator.metrics.spec import show_bytes
from orchestrator.model import METRIC_NAMES, Metric, ShownVerdict
from tests.support.builders import case, plan, replicate, run_folder

OF = case()


@pytest.mark.parametrize(
    ("metric", "figures", "values"),
    [
        ("time", {}, (4.0, 4.1)),
        ("cpu", {}, (4.2,)),
        # The whole call: what it costs once is no property of a step.
        ("first", {}, (math.log(5_000),)),
        ("first", {"first_call_ns": 0.0}, ()),
        ("build", {}, (math.log(3_000),)),
        ("import", {"import_ns": 800}, (math.log(800),)),
        ("import", {}, ()),
        ("step", {"step_ns": 40}, (math.log(40),)),
        ("step", {}, ()),
        ("memory", {"memory_kb": 700}, (math.log(700),)),
        # Where the kernel does not say it.
        ("memory", {}, (math.log(900),)),
        ("gpu_memory", {"gpu_memory_kb": 50}, (math.log(50),)),
        ("gpu_memory", {}, ()),
        ("energy", {"energy_uj": 1500}, (math.log(1500),)),
        ("energy", {}, ()),
        # Bytes, whatever the process holds.
        ("leak", {"growth_bytes": 900, "growth_calls": 200}, (900.0,)),
        ("leak", {"growth_bytes": 900, "growth_calls": 200, "resident_kb": 2 * 2**20}, (900.0,)),
        ("leak", {"growth_bytes": -9000, "growth_calls": 200}, (-9000.0,)),
        ("leak", {"growth_bytes": 0, "growth_calls": 200}, (0.0,)),
        ("leak", {"growth_bytes": 900, "growth_calls": 199}, ()),
        ("leak", {}, ()),
        ("p50", {}, (1.0,)),
        ("p99", {}, (3.0,)),
        ("p95", {"percentiles": ()}, ()),
        ("traces", {}, (7.0,)),
        ("traces", {"traces": 0}, (0.0,)),
        ("traces", {"traces": None}, ()),
        ("traces_per_call", {"later_traces": 1500}, (1.5,)),
        ("traces_per_call", {"later_traces": 0}, (0.0,)),
        ("traces_per_call", {}, ()),
    ],
)
def test_what_it_is_of_a_replicate(metric: Metric, figures: dict[str, object], values: tuple[float, ...]):
    assert METRICS[metric].values(replicate(**figures)) == pytest.approx(values)


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        ("time", "12.0 ms"), ("first", "2.50 s"), ("build", "3.00 s"), ("cpu", "15.0 ms"), ("step", "1.00 ms"),
        ("memory", "360 MiB"), ("gpu_memory", "12.0 GiB"), ("energy", "1.5 mJ"), ("traces", "4"),
        ("leak", "1.5 KiB per call"), ("traces_per_call", "0.25 per call"),
        ("import", "1.20 s"), ("p50", "1.00 ms"), ("p95", "2.00 ms"), ("p99", "3.00 ms"),
    ],
)  # fmt: skip
def test_how_the_figure_of_an_arm_is_printed(metric: Metric, shown: str):
    made = replicate(
        time_ns=12e6, first_call_ns=2.5e9, build_ns=3 * 10**9, cpu_ns=15e6, step_ns=10**6, memory_kb=360 * 2**10,
        gpu_memory_kb=12 * 2**20, energy_uj=1500, traces=4, later_traces=250, growth_bytes=1536, growth_calls=200,
        percentiles=tuple(map(math.log, (1.001e6, 2e6, 3e6))), import_ns=1_200_000_000,
    )  # fmt: skip
    spec = METRICS[metric]
    assert spec.show(spec.typical([made])) == shown
    assert spec.typical([made, made, made]) == spec.figure(made)
    assert spec.typical([]) is None


def test_every_metric_has_its_file_and_is_found_by_its_name():
    assert set(METRICS) == METRIC_NAMES
    assert all(spec.name == name for name, spec in METRICS.items())
    assert set(NAMES) == {*METRICS, "output"} - {"step"}
    assert set(USUAL) | set(OF_PROGRAMS) | set(TIMES) <= set(METRICS)


@pytest.mark.parametrize(
    ("metric", "verdict", "word"),
    [
        ("time", "slower", "slower"),
        ("first", "slightly faster", "slightly faster"),
        ("memory", "slower", "more"),
        ("memory", "slightly faster", "slightly less"),
        ("leak", "same", "same"),
    ],
)
def test_a_verdict_has_the_words_of_its_metric(metric: Metric, verdict: ShownVerdict, word: str):
    assert describe_verdict(metric, verdict) == word


def test_traces_of_later_calls_are_judged_with_those_of_the_first():
    assert choose_metrics(("traces",)) == (("traces", "traces_per_call"), False)
    assert choose_metrics(("traces_per_call", "leak")) == (("traces_per_call", "leak"), False)


@pytest.mark.parametrize(
    ("metric", "difference", "old", "new", "shown"),
    [
        ("leak", 8 * 1024, 40.2 * 1024, 48.2 * 1024, "+8.0 KiB per call: 40.2 to 48.2"),
        ("leak", -8 * 1024, 48.2 * 1024, 40.2 * 1024, "-8.0 KiB per call: 48.2 to 40.2"),
        ("leak", 600.0, 0.0, 600.0, "+600 B per call: 0 to 600"),
        # Figures have the unit of their difference: in MiB nothing of it would be seen.
        ("leak", 8 * 1024, 2**21, 2**21 + 8 * 1024, "+8.0 KiB per call: 2048.0 to 2056.0"),
        ("leak", 3 * 2**20, -0.001, 3 * 2**20, "+3.0 MiB per call: 0.0 to 3.0"),
        ("traces", 5.0, 5.0, 10.0, "+5: 5 to 10"),
        ("traces", -0.5, 3.0, 2.5, "-0.5: 3 to 2.5"),
        ("traces_per_call", 1.0, 1.0, 2.0, "+1.00 per call: 1.00 to 2.00"),
    ],
)
def test_how_a_difference_is_printed(metric: Metric, difference: float, old: float, new: float, shown: str):
    units = METRICS[metric].units
    assert units is not None
    assert f"{units.show_difference(difference)}: {units.show_figures(difference, old, new)}" == shown


@pytest.mark.parametrize(
    ("metric", "difference", "low", "high", "shown"),
    [
        ("leak", 8 * 1024, 7.9 * 1024, 8.1 * 1024, "+7.9 to +8.1"), ("leak", 8 * 1024, 20.0, 2**14, "+0.02 to +16.0"),
        ("leak", 600.0, -0.3, 1200.0, "+0 to +1200"), ("traces", -2.0, -4.0, -0.004, "-4 to -0.004"),
        ("traces", 0.0, 0.0, 0.0, "+0 to +0"),
    ],
)  # fmt: skip
def test_an_interval_of_differences_that_excludes_0_never_seems_to_end_there(
    metric: Metric, difference: float, low: float, high: float, shown: str
):
    units = METRICS[metric].units
    assert units is not None
    assert units.show_ends(difference, low, high) == shown


@pytest.mark.parametrize(
    ("metric", "text", "amount"),
    [
        ("leak", "4KiB", 4096), ("leak", "1.5 mib", 1.5 * 2**20), ("leak", "700", 700), ("leak", "700B", 700),
        ("leak", "5%", None), ("leak", "4 kb", None), ("leak", "", None), ("leak", "-4KiB", None),
        ("traces", "2", 2), ("traces", "2KiB", None), ("traces", "10%", None), ("traces_per_call", "0.25", 0.25),
        ("memory", "10%", 0.1), ("time", "2.5", 0.025), ("memory", "4KiB", None), ("first", "", None),
    ],
)  # fmt: skip
def test_an_amount_is_written_as_its_metric_is_judged(metric: Metric, text: str, amount: float | None):
    assert METRICS[metric].parse_amount(text) == amount


def test_times_are_always_judged_and_are_not_named_again():
    assert choose_metrics(("time",)) == ((), False)
    assert choose_metrics(("memory", "output", "time", "build", "memory")) == (("memory", "build"), True)


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0.0 KiB"), (100_000, "97.7 KiB"), (-2048, "-2.0 KiB"), (3 * 2**20, "3 MiB"), (9 * 2**30, "9216 MiB"),
     (10 * 2**30, "10.0 GiB")],
)  # fmt: skip
def test_sizes_have_the_unit_that_fits(size: float, shown: str):
    assert show_bytes(size) == shown


@pytest.mark.parametrize("name", ["", "Time", "figures", "__class__", "../time", "time\n", 5, None])
def test_what_a_file_calls_a_metric_is_one(tmp_path: Path, name: object):
    """A plan of another person names metrics, and these choose what is looked up and printed."""
    for kind, own in ((Metric, "memory"), (Followed, "output")):
        assert TypeAdapter(kind).validate_python(own) == own
        with pytest.raises(ValidationError):
            TypeAdapter(kind).validate_python(name)
    run = run_folder(tmp_path / "run", plan([OF], metrics=("memory",)))
    assert run.read_plan().metrics == ("memory",)
    path = run.path / "plan.json"
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "metrics": [name]}))
    with pytest.raises(ContractBroken):
        run.read_plan()
