"""The doctor's page: what it finds in hand-made examinations, what it advises, and how it is drawn."""

import os

import pytest

from orchestrator.doctor import noise
from orchestrator.doctor.noise import (
    DoctorFinding,
    Examination,
    Level,
    examine_noise,
    list_noise_findings,
    rate_machine,
)
from orchestrator.doctor.report import examination_as_object
from orchestrator.machine.host import Facts, Interference
from orchestrator.stats.comparisons import DIFFERENCE_ERROR
from orchestrator.stats.verdict import smallest_shown
from tests.unit.doctor.examinations import HOST, LEFT_ALONE, NOISY, QUIET, drawn, equal_arms, examination


def finding(seen: Examination, subject: str) -> DoctorFinding | None:
    return next((found for found in list_noise_findings(seen) if found.subject == subject), None)


def advice(seen: Examination, subject: str) -> str:
    found = finding(seen, subject)
    assert found is not None
    return found.advice


def test_a_quiet_machine_is_fine_and_nothing_is_advised():
    assert rate_machine(QUIET) == "fine"
    assert {found.level for found in list_noise_findings(QUIET)} == {"fine"}
    assert not any(found.advice for found in list_noise_findings(QUIET))


def test_a_quiet_machine_stays_fine_beside_notes_on_what_it_is():
    seen = examination(host={"virtual": "yes", "turbo": "on"})
    assert rate_machine(seen) == "fine"
    assert [found.level for found in list_noise_findings(seen)].count("note") == 2


def test_problems_come_first():
    ranks: dict[Level, int] = {"problem": 0, "note": 1, "fine": 2}
    levels = [ranks[found.level] for found in list_noise_findings(NOISY)]
    assert levels == sorted(levels)
    assert rate_machine(NOISY) == "problem"


def test_more_rounds_see_smaller_slowdowns():
    first, budgeted, last = noise.find_visible_slowdowns(equal_arms(0.03)).values()
    assert first > budgeted > last > 0


@pytest.mark.parametrize(("spread", "expected"), [(0.0, "fine"), (0.02, "fine"), (0.04, "note"), (0.06, "problem")])
def test_a_spread_is_judged_by_the_rounds_that_show_the_margin(spread: float, expected: Level):
    found = finding(examination(spread), "spread")
    assert found is not None
    assert found.level == expected


def test_a_spread_of_a_few_rounds_is_not_called_fine():
    seen = examination(estimate=equal_arms(0.01, rounds=3))
    assert finding(seen, "spread") == DoctorFinding(
        "spread", "note", "equal arms differ by 1.0% from round to round, in 3 rounds", "probe longer to be sure of it"
    )


def test_the_rounds_that_it_advises_are_the_fewest_that_show_the_margin():
    rounds = int(advice(examination(0.08), "spread").partition("--rounds ")[2].partition("`")[0])
    spread = equal_arms(0.08).spread
    few, enough = (smallest_shown(spread, count, DIFFERENCE_ERROR) for count in (rounds - 1, rounds))
    assert enough <= 0.05 < few


def test_a_margin_that_it_advises_is_one_that_ten_rounds_can_show():
    margin = int(advice(examination(0.06), "spread").partition("--margin ")[2].partition("`")[0])
    assert margin / 100 >= noise.find_visible_slowdowns(equal_arms(0.06))[10] > (margin - 1) / 100


def test_rounds_and_margins_that_nobody_wants_are_not_advised():
    assert advice(examination(0.8, host={"usable_cores": 2}), "spread") == "try a quieter time"


@pytest.mark.parametrize(
    ("foreign_cores", "load", "unexplained"), [(0.01, 0.9, True), (0.2, 0.9, False), (0.01, 3.4, False)]
)
def test_a_spread_is_unexplained_only_where_the_probe_was_alone(foreign_cores: float, load: float, unexplained: bool):
    meanwhile = Interference(foreign_cores=foreign_cores, steal_share=0.0)
    found = finding(examination(0.08, meanwhile=meanwhile, moment={"load": load}), "spread")
    assert found is not None
    assert found.seen.endswith("and nothing that runs here explains it") is unexplained


def test_where_something_disturbs_it_is_to_be_ended_before_rounds_are_bought():
    assert advice(NOISY, "spread") == "first stop these disturbances, then probe again"


@pytest.mark.parametrize("subject", ["spread", "other processes", "cgroup quota", "SMT"])
@pytest.mark.parametrize(
    ("usable", "cpus", "pins"), [(8, None, True), (2, None, False), (8, (2, 3), False)], ids=["spare", "few", "pinned"]
)
def test_pinning_is_advised_only_where_there_are_cpus_to_spare(
    subject: str, usable: int, cpus: tuple[int, ...] | None, pins: bool
):
    busy = Interference(foreign_cores=1.0, steal_share=0.0) if subject == "other processes" else LEFT_ALONE
    host: Facts = {"usable_cores": usable, "smt": "1", "cgroup_quota": "150000 100000"}
    seen = examination(0.08, host=host, cpus=cpus, meanwhile=busy)
    assert ("--cpuset" in advice(seen, subject)) is pins


@pytest.mark.parametrize("shift", [0.2, -0.2])
def test_equal_arms_that_come_out_different_are_a_problem(shift: float):
    found = finding(examination(estimate=equal_arms(0.02, shift=shift)), "A/A")
    assert found is not None
    assert found.level == "problem"
    assert "trust no verdict" in found.advice


def test_equal_arms_that_noise_hides_are_a_note():
    found = finding(examination(0.12), "A/A")
    assert found is not None
    assert found.level == "note"
    assert "not shown to be the same" in found.seen


@pytest.mark.parametrize(("share", "expected"), [(0.005, None), (0.03, "note"), (0.06, "problem")])
def test_steal_is_told_by_how_much_it_is(share: float, expected: Level | None):
    found = finding(examination(meanwhile=Interference(foreign_cores=0.0, steal_share=share)), "steal")
    assert (found.level if found else None) == expected


def test_a_machine_that_slept_is_to_be_probed_again():
    slept = Interference(foreign_cores=0.0, steal_share=0.0, suspended_s=4.0)
    assert finding(examination(meanwhile=slept), "interruption") == DoctorFinding(
        "interruption", "problem", "the machine was suspended for 4.0 s", "probe again"
    )
    assert finding(NOISY, "interruption") is None


def test_others_that_have_gone_again_are_told_without_a_name():
    found = finding(examination(meanwhile=Interference(foreign_cores=0.5, steal_share=0.0)), "other processes")
    assert found is not None
    assert found.seen == "they kept 0.5 cores busy: processes that have ended"


@pytest.mark.parametrize(
    ("facts", "subject"),
    [
        ({"governor": "powersave"}, "governor"),
        ({"turbo": "on"}, "turbo"),
        ({"smt": "1"}, "SMT"),
        ({"virtual": "yes"}, "virtual machine"),
        ({"cgroup_quota": "150000 100000"}, "cgroup quota"),
        ({"usable_cores": 1}, "CPUs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fact_is_a_finding_only_where_it_is_seen(facts: Facts, subject: str):
    assert finding(examination(), subject) is None
    assert finding(examination(host=dict.fromkeys(HOST)), subject) is None
    assert finding(examination(host=facts), subject) is not None


@pytest.mark.parametrize(("quota", "cpus"), [("800000 100000", None), ("200000 100000", (2, 3))])
def test_a_quota_that_all_cpus_in_use_fit_into_holds_nobody_up(quota: str, cpus: tuple[int, ...] | None):
    assert finding(examination(host={"cgroup_quota": quota}, cpus=cpus), "cgroup quota") is None


def test_a_load_that_the_probe_cannot_have_made_is_told():
    assert finding(examination(moment={"load": 1.9}), "load") is None
    assert finding(examination(moment={"load": 3.4}), "load") is not None


def test_a_kernel_that_counts_nothing_still_gets_a_page():
    seen = examination(host=dict.fromkeys(HOST), moment={"load": None, "psi_cpu": None}, meanwhile=None)
    assert rate_machine(seen) == "fine"
    assert "fine: " in drawn(seen, 80)
    assert examination_as_object(seen)["probe"]["foreign_cores"] is None


def test_this_machine_can_be_examined():
    cpu = min(os.sched_getaffinity(0))
    seen = examine_noise(1.0, (cpu,))
    assert seen.probe.cpus == (cpu,)
    assert seen.probe.estimate.rounds >= 3
    assert {"spread", "A/A"} <= {found.subject for found in list_noise_findings(seen)}
    assert f"pinned to CPU {cpu}" in drawn(seen, 120)
