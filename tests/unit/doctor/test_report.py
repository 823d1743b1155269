"""The page and the object of an examination."""

import json
from dataclasses import replace

import pytest
from rich.cells import cell_len

from orchestrator.doctor.aa_probe import Neighbour
from orchestrator.doctor.noise import Examination, list_noise_findings, rate_machine
from orchestrator.doctor.report import examination_as_object
from tests.unit.doctor.examinations import NOISY, PINNED, QUIET, drawn

QUIET_PAGE = """\
tfcompare doctor
A CPU, 8 of 8 CPUs · Linux 6.1 · load 0.9 · CPU pressure 0%
A/A probe: 20 rounds in 30 s; 4.66 and 4.65 ms per call
fine: at best, slowdowns of 1.9% show in about 10 rounds (the default budget),
of 7.4% in 4 rounds, and of 1.0% in 20 rounds. TensorFlow's own variance is not
included.

       finding  observation
 ────────────────────────────────────────────────────────────────
 fine  spread   equal arms differ by 1.0% from round to round
 fine  A/A      equal arms come out the same: 1.000x, 0.995-1.006
"""
NOISY_PAGE = """\
tfcompare doctor
A CPU, 2 of 2 CPUs · Linux 6.1 · load 5.25
A/A probe: 20 rounds in 30 s; 4.66 and 4.65 ms per call
problem: at best, slowdowns of 25.9% show in about 10 rounds (the default
budget), of over 100% in 4 rounds, and of 12.1% in 20 rounds. TensorFlow's own
variance is not included.

          finding          observation
 ──────────────────────────────────────────────────────────────────────────────
 problem  spread           equal arms differ by 12.0% from round to round
                           → first stop these disturbances, then probe again
 problem  other processes  they kept 1.3 cores busy: cc1plus (pid 4711) 84% of
                           a core, ld (pid 4712) 20% of a core
                           → measure at a quieter time
 problem  steal            the hypervisor took 7% of the time
                           → measure at a quieter time, or on a machine that is
                           not shared
 note     A/A              equal arms are not shown to be the same: 1.000x,
                           0.926-1.080
 note     load             5.2, but the probe alone causes 2 at most
                           → check with `top` what runs or waits for a disk,
                           and measure when it has finished
 note     virtual machine  its neighbours cannot be seen, and not everything
                           they do shows up as steal
                           → compare versions within a run, never the times of
                           two runs
"""
PINNED_PAGE = """\
tfcompare doctor
A CPU, 8 of 8 CPUs · Linux 6.1 · load 0.9 · CPU pressure 0%
A/A probe: 20 rounds in 30 s, pinned to CPU 2, 3; 4.66 and 4.65 ms per call
note: at best, slowdowns of 8.0% show in about 10 rounds (the default budget), of 33.2% in 4 rounds, and of 3.9% in 20
rounds. TensorFlow's own variance is not included.

       finding       observation                                      advice
 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
 note  spread        equal arms differ by 4.0% from round to round    use a longer `--budget`: 20 rounds would show a
                                                                      difference of 5%
 note  cgroup quota  1.5 of 2 CPUs; beyond that, everything here is   raise it (`docker run --cpus`, or systemd's
                     made to wait                                     CPUQuota)
 note  governor      powersave: clock rates follow the load           `sudo cpupower frequency-set --governor
                                                                      performance`
 note  turbo         on: clock rates follow temperature and           switch it off to measure small effects: under
                     neighbours                                       /sys/devices/system/cpu, write 1 to
                                                                      intel_pstate/no_turbo or 0 to cpufreq/boost
 note  SMT           active: two CPUs share a core
 fine  A/A           equal arms come out the same: 1.000x,
                     0.978-1.022
"""


@pytest.mark.parametrize(
    ("seen", "width", "page"),
    [(QUIET, 80, QUIET_PAGE), (NOISY, 80, NOISY_PAGE), (PINNED, 120, PINNED_PAGE)],
    ids=["quiet", "noisy", "pinned"],
)
def test_the_page_is_as_it_was_last_approved(seen: Examination, width: int, page: str):
    assert drawn(seen, width) + "\n" == page


@pytest.mark.parametrize("width", [60, 80, 100, 140])
@pytest.mark.parametrize("seen", [QUIET, NOISY, PINNED], ids=["quiet", "noisy", "pinned"])
def test_no_line_is_wider_than_the_terminal(seen: Examination, width: int):
    assert max(map(cell_len, drawn(seen, width).splitlines())) <= width


def test_a_process_cannot_write_to_the_terminal_by_its_name():
    seen = replace(NOISY, probe=replace(NOISY.probe, neighbours=(Neighbour(1, "\x1b[2J[red]x\n", 0.5),)))
    text = drawn(seen, 140)
    assert "\x1b" not in text
    assert r"\x1b[2J[red]x (pid 1)" in text


@pytest.mark.parametrize("seen", [QUIET, NOISY, PINNED], ids=["quiet", "noisy", "pinned"])
def test_the_object_is_json_and_says_what_the_page_says(seen: Examination):
    found = json.loads(json.dumps(examination_as_object(seen), allow_nan=False))
    assert found["schema"] == "tfcompare.doctor/1"
    assert found["level"] == rate_machine(seen)
    assert [item["seen"] for item in found["findings"]] == [item.seen for item in list_noise_findings(seen)]
    assert [item["rounds"] for item in found["visible"]] == [4, 10, 20]
    assert found["probe"]["ci_low"] <= found["probe"]["ratio"] <= found["probe"]["ci_high"]
    assert found["probe"]["cpus"] == (list(seen.probe.cpus) if seen.probe.cpus else None)
