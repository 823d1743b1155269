"""What the machine is, what moves on it and what others do to it, from the kernel's own words and fixed limits."""

import hashlib
import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.machine import host
from orchestrator.machine.gpu import Gpu, GpuReading
from orchestrator.machine.host import (
    TICKS_A_SECOND,
    DisturbanceMonitor,
    Interference,
    Reading,
    host_facts,
    is_here,
    moment,
    read_counters,
)

MOVING = {"load", "psi_cpu"}
CARD = Gpu(0, "GPU-4d6a", "NVIDIA H200", "9.0", "570.1", 143771, 700, True, False)
FILES = {
    "proc/cpuinfo": """\
processor\t: 0
model name\t: AMD EPYC 7763
microcode\t: 0xa0011d1
cpu MHz\t\t: 2400.000
flags\t\t: fpu sse hypervisor lahf_lm

processor\t: 1
model name\t: AMD EPYC 7763
microcode\t: 0xa0011d1
cpu MHz\t\t: 2600.000
""",
    "proc/meminfo": "MemTotal: 16384000 kB\nMemAvailable: 8192000 kB\nSwapTotal: 2048000 kB\n",
    "proc/loadavg": "1.42 0.42 0.20 3/105 12852\n",
    "proc/pressure/cpu": "some avg10=7.25 avg60=4.38 avg300=5.01 total=2500000\nfull avg10=0.00 total=0\n",
    "proc/pressure/memory": "some avg10=0.50 avg60=0.00 avg300=0.00 total=0\nfull avg10=9.00 total=0\n",
    "proc/pressure/io": "some avg10=1.50 avg60=0.00 avg300=0.00 total=0\nfull avg10=9.00 total=0\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
    "proc/stat": """\
cpu  300 0 100 9000 10 0 0 50 0 0
cpu0 200 0 50 4500 5 0 0 20 0 0
cpu1 50 0 25 4500 5 0 0 30 0 0
cpu10 50 0 25 4500 5 0 0 0 0 0
intr 435695 0 0
""",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/devices/system/cpu/smt/active": "1\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "3500000\n",
    "sys/class/thermal/thermal_zone0/temp": "41500\n",
    "sys/class/thermal/thermal_zone1/temp": "57000\n",
    "run/.containerenv": "",
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """The files of a machine that shows everything."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_cpu_time_that_is_not_ours_is_foreign() -> None:
    found = Reading(10.0, 100.0, 5.0).until(Reading(12.0, 103.0, 5.0), own=1.0)
    assert found == Interference(foreign_cores=1.0, steal_share=0.0)
    assert found.disturbance == "other processes kept 1.0 cores busy"


def test_time_that_the_hypervisor_took_is_told_first() -> None:
    found = Reading(10.0, 100.0, 5.0).until(Reading(12.0, 103.0, 6.0), own=1.0)
    assert found is not None
    assert found.disturbance == "the hypervisor took 50% of the time"


@pytest.mark.parametrize(
    ("cpus", "foreign", "steal", "cause"),
    [
        (64, 0.0, 0.2, ""),
        (64, 0.0, 6.4, "the hypervisor took 10% of the time"),
        (64, 6.4, 0.0, ""),
        (64, 12.8, 0.0, "other processes kept 12.8 cores busy"),
        (2, 0.2, 0.0, ""),
        (2, 0.4, 0.0, "other processes kept 0.4 cores busy"),
        (1, 0.0, 0.04, ""),
    ],
)
def test_the_limits_are_shares_of_the_cpus_that_are_counted(cpus: int, foreign: float, steal: float, cause: str):
    found = Reading(10.0, 0.0, 0.0, cpus=cpus).until(Reading(11.0, foreign, steal, cpus=cpus), own=0.0)
    assert found is not None
    assert found.disturbance == cause


def test_idle_is_what_neither_processes_nor_a_hypervisor_used() -> None:
    found = Reading(10.0, 100.0, 5.0, cpus=2).until(Reading(20.0, 111.0, 8.0, cpus=2), own=6.0)
    assert found is not None
    assert (found.foreign_cores, found.steal_share, found.idle_share) == (0.5, 0.15, pytest.approx(0.3))


def test_our_own_work_disturbs_nobody() -> None:
    found = Reading(10.0, 100.0, 5.0).until(Reading(12.0, 103.9, 5.0), own=4.0)
    assert found is not None
    assert found.disturbance == ""


def test_a_moment_is_too_short_to_tell() -> None:
    assert Reading(10.0, 100.0, 5.0).until(Reading(10.1, 101.0, 5.0), own=0.0) is None


@pytest.mark.parametrize(("clock", "jump"), [(1005.2, "3.2"), (998.8, "3.2"), (1002.5, "0.5")])
def test_a_clock_that_jumps_either_way_is_a_disturbance(clock: float, jump: str) -> None:
    found = Reading(10.0, 100.0, 5.0, clock=1000.0).until(Reading(12.0, 100.0, 5.0, clock=clock), own=0.0)
    assert found is not None
    assert found.disturbance == f"the clock jumped by {jump} s"


def test_a_clock_that_is_only_slewed_disturbs_nobody() -> None:
    found = Reading(10.0, 100.0, 5.0, clock=1000.0).until(Reading(12.0, 100.0, 5.0, clock=1002.4), own=0.0)
    assert found is not None
    assert found.disturbance == ""


def test_a_machine_that_slept_is_told_before_the_clock_that_moved_with_it() -> None:
    asleep = Reading(10.0, 100.0, 5.0, clock=1000.0, since_boot=10.0)
    found = asleep.until(Reading(12.0, 100.0, 5.0, clock=1092.0, since_boot=102.0), own=0.0)
    assert found is not None
    assert found.disturbance == "the machine was suspended for 90.0 s"


def test_waiting_for_a_cpu_is_recorded_and_not_judged() -> None:
    found = Reading(10.0, 100.0, 5.0, waited=1.0).until(Reading(12.0, 102.0, 5.0, waited=2.5), own=2.0)
    assert found is not None
    assert found.waiting_share == 0.75
    assert found.disturbance == ""


def test_counters_are_those_of_all_cpus_or_of_some(machine: Path) -> None:
    for cpus, busy, steal in ((None, 400, 50), ({0}, 250, 20), ({1}, 75, 30), ({0, 10}, 325, 20)):
        found = read_counters(None if cpus is None else frozenset(cpus), machine)
        assert found is not None
        assert (found.busy * TICKS_A_SECOND, found.steal * TICKS_A_SECOND) == (busy, steal)
        assert found.waited == 2.5
        assert found.cpus == (3 if cpus is None else len(cpus))


def test_a_process_group_has_spent_what_its_processes_and_their_ended_children_have(machine: Path) -> None:
    times = {41: (41, 100, 50, 20, 30), 42: (41, 300, 0, 0, 0), 43: (43, 1000, 0, 0, 0)}
    for pid, (group, *ticks) in times.items():
        (machine / f"proc/{pid}").mkdir()
        rest = " ".join(map(str, (1, group, *[0] * 8, *ticks, 20, 0, 1, 0, 777)))
        (machine / f"proc/{pid}/stat").write_text(f"{pid} (a) name)) S {rest}\n")
    assert host.sum_cpu_time({41}, machine) * TICKS_A_SECOND == pytest.approx(500)
    assert host.sum_cpu_time((), machine) == host.sum_cpu_time({7}, machine) == 0.0
    first = next(host.read_processes(machine))
    assert (first.name, first.started) == ("a) name)", 777)


def test_cpus_that_the_kernel_does_not_know_have_no_counters(machine: Path, tmp_path: Path) -> None:
    assert read_counters(frozenset({7}), machine) is None
    assert read_counters(root=tmp_path / "nowhere") is None


def test_counters_move_on_and_the_host_is_the_same_twice() -> None:
    before, after = read_counters(), read_counters()
    assert before is not None
    assert after is not None
    assert after.busy >= before.busy > 0
    one, other = host_facts(), host_facts()
    assert {key: one[key] for key in one.keys() - MOVING} == {key: other[key] for key in other.keys() - MOVING}
    assert one["cores"] == os.cpu_count()


def test_the_clocks_of_two_readings_agree() -> None:
    before, after = read_counters(), read_counters()
    assert before is not None
    assert after is not None
    assert None not in (before.clock, before.since_boot, after.clock, after.since_boot)
    assert before.wall <= after.wall


def test_facts_are_what_the_kernel_says(machine: Path) -> None:
    facts = host_facts(machine, lambda: (CARD, CARD))
    expected = {
        "cpu": "AMD EPYC 7763",
        "microcode": "0xa0011d1",
        "swap_mb": 2000,
        "thp": "madvise",
        "aslr": "2",
        "smt": "1",
        "turbo": "off",
        "governor": "powersave",
        "mhz_max": 3500,
        "virtual": "yes",
        "container": "yes",
        "psi_cpu": 7.25,
        "load": 1.42,
        "gpus": f"{CARD}; {CARD}",
    }
    assert {fact: facts[fact] for fact in expected} == expected


def test_facts_that_a_machine_does_not_show_are_none(tmp_path: Path) -> None:
    facts = host_facts(tmp_path, lambda: ())
    hidden = ("microcode", "swap_mb", "thp", "aslr", "turbo", "mhz_max", "psi_cpu", "load", "gpus")
    assert [facts[fact] for fact in hidden] == [None] * len(hidden)
    assert (facts["virtual"], facts["container"]) == ("no", "no")


def identify(*stable: object) -> str:
    """Return the id of a machine that is made of this."""
    return hashlib.sha256(" ".join(map(str, stable)).encode()).hexdigest()[:12]


def test_neither_a_clock_rate_nor_a_card_that_is_not_seen_makes_another_machine(machine: Path) -> None:
    one = host_facts(machine, lambda: (CARD,))["id"]
    (machine / "proc/cpuinfo").write_text(FILES["proc/cpuinfo"].replace("2400", "1200"))
    assert host_facts(machine, lambda: (CARD,))["id"] == one
    assert host_facts(machine, lambda: ())["id"] == one


def test_a_run_of_this_machine_is_told_from_one_of_another(machine: Path) -> None:
    facts = host_facts(machine, lambda: ())
    stable = (facts["cpu"], os.cpu_count(), None, None)
    assert facts["id"] == identify(*stable)
    assert is_here(facts, machine)
    assert not is_here({"id": identify("another", *stable[1:])}, machine)


def test_a_board_whose_name_is_not_utf8_is_named_all_the_same(machine: Path) -> None:
    (machine / "sys/class/dmi/id").mkdir(parents=True)
    (machine / "sys/class/dmi/id/board_name").write_bytes(b"X\xff\n")
    assert host_facts(machine, lambda: ())["id"]


def test_a_moment_is_what_moves(machine: Path) -> None:
    card = GpuReading(1, 1980, 3201, 41, 122, 35, (), (4711,))
    assert moment(machine, lambda: (card,)) == {
        "load": 1.42,
        "running": 3,
        "psi_cpu": 7.25,
        "psi_memory": 0.5,
        "psi_io": 1.5,
        "mhz": 2500,
        "temperature_c": 57.0,
        "available_mb": 8000,
        "gpu1": str(card),
    }


def test_a_moment_of_a_machine_that_shows_nothing_is_empty(tmp_path: Path) -> None:
    assert set(moment(tmp_path, lambda: ()).values()) == {None}


def test_a_moment_of_this_machine_can_be_taken() -> None:
    now = moment()
    assert isinstance(now["available_mb"], int)
    assert now["available_mb"] > 0
    assert isinstance(now["running"], int)


IDLE = GpuReading(0, 1980, 3201, 41, 122, 0, (), ())
HOT = replace(IDLE, sm_mhz=1200, temperature_c=88, power_w=300, throttled=("thermal slowdown",))
CAPPED = replace(IDLE, sm_mhz=1700, power_w=350, throttled=("power cap",))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch):
    """GPUs that tell one reading after another, and how they were asked."""
    asked: list[tuple[tuple[str, ...], bool]] = []

    def tell(*readings: GpuReading) -> list[tuple[tuple[str, ...], bool]]:
        coming = iter(readings)

        def read(only: Collection[str] = (), *, brief: bool = False) -> tuple[GpuReading, ...]:
            asked.append((tuple(only), brief))
            return (next(coming),)

        monkeypatch.setattr(host, "read_gpus", read)
        monkeypatch.setattr(host, "read_counters", lambda cpus: None)
        return asked

    return tell


def test_on_a_cpu_no_card_is_asked(told) -> None:
    asked = told()
    witness = DisturbanceMonitor.begin(None)
    witness.look()
    assert (witness.disturbance(None), witness.spans(), asked) == ("", (), [])


def test_a_card_that_was_throttled_in_any_burst_disturbed_the_visit(told) -> None:
    asked = told(IDLE, IDLE, HOT, IDLE, IDLE)
    witness = DisturbanceMonitor.begin(None, ("GPU-4d6a",))
    for _ in range(3):
        witness.look()
    assert witness.disturbance(None) == "GPU 0 was throttled (thermal slowdown)"
    (span,) = witness.spans()
    assert (span.sm_mhz_min, span.sm_mhz_max, span.temperature_c, span.power_w) == (1200, 1980, 88, 300)
    assert asked == [(("GPU-4d6a",), False), *[(("GPU-4d6a",), True)] * 3, (("GPU-4d6a",), False)]


def test_a_power_cap_is_in_the_record_and_no_disturbance(told) -> None:
    told(IDLE, CAPPED, IDLE)
    witness = DisturbanceMonitor.begin(None, ())
    witness.look()
    assert witness.disturbance(None) == ""
    assert witness.spans()[0].throttled == ("power cap",)


def test_a_witness_says_what_others_did_since_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([Reading(10.0, 100.0, 5.0, cpus=4), Reading(12.0, 107.0, 5.2, cpus=4)])
    monkeypatch.setattr(host, "read_counters", lambda cpus: next(readings))
    witness = DisturbanceMonitor.begin(None)
    meanwhile = witness.meanwhile(3.0)
    assert meanwhile is not None
    assert (meanwhile.foreign_cores, meanwhile.steal_share) == (2.0, pytest.approx(0.025))
    assert witness.disturbance(meanwhile) == "other processes kept 2.0 cores busy"


def test_what_a_runs_own_workers_spend_between_bursts_is_not_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicates report a second of their bursts, and their process groups show three."""
    readings, spent = iter([Reading(10.0, 100.0, 5.0), Reading(12.0, 103.0, 5.0)]), iter([7.0, 10.0])
    monkeypatch.setattr(host, "read_counters", lambda cpus: next(readings))
    monkeypatch.setattr(host, "sum_cpu_time", lambda groups: next(spent))
    meanwhile = DisturbanceMonitor.begin(None, groups=(41,)).meanwhile(1.0)
    assert meanwhile is not None
    assert meanwhile.foreign_cores == 0.0


def test_what_the_counters_show_is_told_before_the_cards_are_asked(told) -> None:
    asked = told(IDLE)
    witness = DisturbanceMonitor.begin(None, ("GPU-4d6a",))
    assert (
        witness.disturbance(Interference(foreign_cores=1.0, steal_share=0.0)) == "other processes kept 1.0 cores busy"
    )
    assert len(asked) == 1
    assert witness.meanwhile(0.0) is None
