"""What others do to the machine, from the kernel's own counters, against fixed limits."""

import os

from orchestrator.host import Meanwhile, Reading, host_facts, read_counters


def test_cpu_time_that_is_not_ours_is_foreign() -> None:
    found = Reading(10.0, 100.0, 5.0).until(Reading(12.0, 103.0, 5.0), own=1.0)
    assert found == Meanwhile(foreign_cores=1.0, steal_share=0.0)
    assert found.disturbance == "other processes kept 1.0 cores busy"


def test_time_that_the_hypervisor_took_is_told_first() -> None:
    found = Reading(10.0, 100.0, 5.0).until(Reading(12.0, 103.0, 6.0), own=1.0)
    assert found is not None
    assert found.disturbance == "the hypervisor took 50% of the time"


def test_our_own_work_disturbs_nobody() -> None:
    found = Reading(10.0, 100.0, 5.0).until(Reading(12.0, 103.9, 5.0), own=4.0)
    assert found is not None
    assert found.disturbance == ""


def test_a_moment_is_too_short_to_tell() -> None:
    assert Reading(10.0, 100.0, 5.0).until(Reading(10.1, 101.0, 5.0), own=0.0) is None


def test_counters_move_on_and_the_host_is_the_same_twice() -> None:
    before, after = read_counters(), read_counters()
    assert before is not None
    assert after is not None
    assert after.busy >= before.busy > 0
    one, other = host_facts(), host_facts()
    assert {key: one[key] for key in one if key != "load"} == {key: other[key] for key in other if key != "load"}
    assert one["cores"] == os.cpu_count()
