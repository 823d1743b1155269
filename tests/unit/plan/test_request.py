"""What is asked for becomes a plan, or a message before any work starts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.catalog import claims
from orchestrator.catalog.workloads import VERSION_BUDGET_S, all_workloads
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.model import LargeFile, Plan
from orchestrator.options import EngineOptions
from orchestrator.plan.pairs import LOOKS, TABLE_LOOKS
from orchestrator.plan.request import RunOptions, check_request

BUILTIN = claims.all_claims(all_workloads())
VERSIONS = ("1.14", "2.0")
SMOKE = RunOptions(versions=VERSIONS, suite="smoke", selected=("power[style=eager]",))
OWN = ["sums[size=1]", "sums[size=2]", "words"]


def test_a_plan_holds_what_was_asked_and_the_usual_for_the_rest():
    plan = check_request(RunOptions(versions=VERSIONS, margin=0.03, seed=7, threads=(1, 2))).freeze("venv")
    assert (plan.targets, plan.suite, plan.margin) == (("1.14.0", "2.0.0"), "quick", 0.03)
    assert (plan.seed, plan.threads) == (7, (1, 2))
    assert (plan.looks, plan.alpha, plan.device) == (TABLE_LOOKS, 0.05, "cpu")
    assert len(plan.cases) == 8


@pytest.mark.parametrize(
    ("changes", "looks"),
    [
        ({}, TABLE_LOOKS),
        ({"rounds": 12}, (12,)),
        ({"selected": ("power[style=eager]",), "suite": "smoke"}, LOOKS),
        ({"shard": (1, 2)}, LOOKS),
        ({"prolong": False}, LOOKS),
    ],
)
def test_a_table_is_also_judged_after_three_rounds_unless_its_parts_are_put_together(
    changes: dict[str, Any], looks: tuple[int, ...]
):
    assert check_request(replace(RunOptions(versions=VERSIONS), **changes)).looks == looks


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({}, 40),
        ({"budget_s": 600.0}, 40),
        ({"rounds": 12}, 0),
        ({"rounds": 12, "budget_s": 600.0}, 0),
        ({"suite": "full"}, 0),
        ({"shard": (1, 2)}, 0),
        ({"prolong": False}, 0),
    ],
)
def test_a_pilot_may_plan_more_rounds_in_a_budget_unless_their_number_is_given(changes: dict[str, Any], most: int):
    """Parts of a run that are put together need the same looks."""
    planned = check_request(replace(SMOKE, **{"selected": (), **changes}))
    assert (planned.most_rounds, planned.freeze("venv").most_rounds) == (most, most)


def test_a_plan_has_the_engine_that_made_the_environments_and_what_was_not_copied():
    large = (LargeFile(name="data", path="/data", bytes=1, modified_ns=2),)
    plan = check_request(replace(SMOKE, engine="auto")).freeze("venv", large)
    assert (plan.engine, plan.large) == ("venv", large)


def test_cpu_time_is_judged_if_it_is_asked_for_and_says_something():
    assert check_request(SMOKE).freeze("venv").judge == "wall"
    assert check_request(replace(SMOKE, judge="cpu", metrics=("memory",))).freeze("venv").judge == "cpu"
    with pytest.raises(UsageError, match=r"^--judge cpu: what a GPU computes takes no CPU time; leave it out$"):
        check_request(replace(SMOKE, judge="cpu", environments=EngineOptions(gpu=True)))
    with pytest.raises(UsageError, match=r"^--metric cpu: with --judge cpu, that is what `time` is; leave one of the"):
        check_request(replace(SMOKE, judge="cpu", metrics=("memory", "cpu")))


def test_threads_are_refused_with_a_version_that_does_not_heed_them():
    asked = RunOptions(versions=("1.13", "2.13"), threads=(1, 1))
    with pytest.raises(UsageError, match=r"^--threads has no effect in TensorFlow 1\.13\.2; leave that version out"):
        check_request(asked)
    assert check_request(replace(asked, threads=None)).freeze("venv").threads is None
    assert check_request(replace(asked, versions=("1.14", "2.13"))).freeze("venv").threads == (1, 1)


@pytest.mark.parametrize("name", ["TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"])
@pytest.mark.parametrize("threads", [(2, 2), (0, 0)])
def test_threads_are_refused_with_a_target_that_has_its_own(name: str, threads: tuple[int, int]):
    asked = replace(SMOKE, versions=("2.13", f"2.13 {name}=1 as one-thread"), threads=threads)
    with pytest.raises(UsageError, match=f"^--threads would overwrite {name} of one-thread; leave out one of the two$"):
        check_request(asked)
    assert check_request(replace(asked, threads=None)).freeze("venv").threads is None
    others = replace(asked, versions=("2.13", "2.13 TF_ENABLE_ONEDNN_OPTS=0 as plain"))
    assert check_request(others).freeze("venv").threads == threads
    inherited = replace(others, environments=EngineOptions(variables=((name, "1"),)))
    with pytest.raises(UsageError, match=f"{name} of your shell"):
        check_request(inherited)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder with two workloads of a user, three cases."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "sums.py").write_text("PARAMS = {'size': ('1', '2')}\ndef build(tf, params): return lambda: 1\n")
    (folder / "words.py").write_text("def build(tf, params): return lambda: 1\n")
    return folder


def test_a_folder_of_workloads_is_measured_whole_and_named_in_the_plan(mine: Path):
    plan = check_request(RunOptions(versions=VERSIONS, own_workloads=mine)).freeze("venv")
    assert [case.label for case in plan.cases] == OWN
    assert plan.suite == "mine/"
    usual = check_request(RunOptions(versions=VERSIONS)).freeze("venv")
    assert usual.budget_s == 7.5 * len(usual.arms()) + 2 * VERSION_BUDGET_S > 120
    # So few arms get the least.
    assert plan.budget_s == 120


def test_a_folder_goes_by_its_name_however_it_is_written(mine: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(mine)
    assert check_request(RunOptions(versions=VERSIONS, own_workloads=Path("."))).freeze("venv").suite == "mine/"


def test_a_suite_that_is_named_is_measured_without_the_folder(mine: Path):
    plan = check_request(RunOptions(versions=VERSIONS, own_workloads=mine, suite="quick")).freeze("venv")
    assert plan.cases == check_request(RunOptions(versions=VERSIONS)).freeze("venv").cases
    assert plan.suite == "quick"


def test_a_selection_is_measured_alone(mine: Path):
    """A built-in workload among it has the cases that it has without the folder."""
    plan = check_request(RunOptions(versions=VERSIONS, own_workloads=mine, selected=("sums[size=2]",))).freeze("venv")
    assert [case.label for case in plan.cases] == ["sums[size=2]"]
    with_own = check_request(RunOptions(versions=VERSIONS, own_workloads=mine, selected=("power", "words"))).freeze(
        "venv"
    )
    alone = check_request(RunOptions(versions=VERSIONS, selected=("power",))).freeze("venv")
    assert [case.label for case in with_own.cases] == [*(case.label for case in alone.cases), "words"]


def test_rounds_that_are_fixed_are_one_look_and_no_budget_of_the_suites():
    assert check_request(RunOptions(versions=VERSIONS)).freeze("venv").budget_s is not None
    plan = check_request(RunOptions(versions=VERSIONS, rounds=12)).freeze("venv")
    assert (plan.looks, plan.budget_s) == ((12,), None)


def test_a_budget_that_is_asked_for_goes_before_the_suites():
    assert check_request(RunOptions(versions=VERSIONS, budget_s=5.0)).freeze("venv").budget_s == 5.0


def test_two_runs_of_one_second_have_two_names_and_two_seeds():
    first, second = check_request(SMOKE).freeze("venv"), check_request(SMOKE).freeze("venv")
    assert first.run != second.run
    assert first.seed != second.seed


def test_only_the_workloads_that_are_measured_are_kept():
    assert set(check_request(SMOKE).workloads) == {"power"}


def planned(*names: str, gpu: bool = False, **changes: Any) -> Plan:
    chosen = claims.choose_claims(names, None, BUILTIN)
    return check_request(RunOptions(claims=chosen, environments=EngineOptions(gpu=gpu), **changes)).freeze("venv")


def test_only_the_arms_that_a_claim_names_are_planned():
    plan = planned("predict-after-compile", "eager-train-loops")
    assert plan.targets == ("1.14.0", "2.0.0")
    assert len(plan.arms()) == 4 + 4 * 2
    assert len(plan.pairs) == 2 + 4


def test_what_needs_a_gpu_is_kept_and_not_measured():
    plan = planned("predict-after-compile", "xla-on-gpu")
    assert [claim.name for claim in plan.claims] == ["predict-after-compile", "xla-on-gpu"]
    assert {case.workload for case in plan.cases} == {"predict"}
    with pytest.raises(NothingSelected, match="tested on this device"):
        planned("xla-on-gpu")
    assert {case.workload for case in planned("xla-on-gpu", gpu=True).cases} == {"forward"}


def test_a_pair_that_two_claims_share_is_asked_for_once():
    both = [replace(BUILTIN["graph-for-small-ops"], name=name) for name in ("one", "other")]
    assert len(check_request(RunOptions(claims=tuple(both))).freeze("venv").pairs) == 1


def test_claims_have_the_looks_of_every_run():
    plan = planned("predict-after-compile")
    assert (plan.looks, plan.alpha) == (LOOKS, 0.05)
    assert planned("predict-after-compile", rounds=4).looks == (4,)


def test_a_claim_about_a_version_with_changes_is_measured_in_both():
    plan = planned("onednn-one-thread")
    assert plan.targets == ("2.9.3", "2.9.3+TF_ENABLE_ONEDNN_OPTS=0")
    assert plan.definitions == ("2.9.3 TF_ENABLE_ONEDNN_OPTS=0",)
    assert not plan.outputs


def test_results_are_compared_where_a_claim_is_about_them():
    plan = planned("lstm-default-activation")
    assert (plan.outputs, plan.pairs) == (True, ())
    assert len(plan.arms()) == 4


@pytest.mark.parametrize(
    ("named", "decides"),
    [(None, ()), (("memory", "p99"), ()), (("first", "memory"), ("first",)), (("build",), ("build",))],
)
def test_first_calls_and_builds_get_more_rounds_only_where_they_are_named(
    named: tuple[str, ...] | None, decides: tuple[str, ...]
):
    options = RunOptions(versions=("1.14", "2.0"), suite="smoke", selected=("power[style=eager]",), metrics=named)
    planned = check_request(options).freeze("venv")
    assert planned.decides == decides
    assert ("first" in planned.metrics) == (named is None or "first" in named)


def test_what_a_gate_needs_is_compared_and_gets_no_rounds():
    options = RunOptions(versions=("1.14", "2.0"), suite="smoke", selected=("power[style=eager]",))
    plain = check_request(options).freeze("venv")
    gated = check_request(replace(options, of_gates=("cpu", "build"))).freeze("venv")
    assert gated.metrics == (*plain.metrics, "cpu", "build")
    assert (gated.decides, gated.outputs) == ((), plain.outputs)
