"""The noise of this machine right now: an A/A probe and the machine's facts, as findings with advice."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from orchestrator.catalog.selectors import MARGIN
from orchestrator.doctor import STYLES, DoctorFinding, Level
from orchestrator.doctor.aa_probe import Probe, probe_rounds
from orchestrator.machine.host import MOST_FOREIGN_SHARE, MOST_STEAL_SHARE, Facts, host_facts, moment
from orchestrator.plan.pairs import ALPHA, LOOKS
from orchestrator.stats.comparisons import DIFFERENCE_ERROR
from orchestrator.stats.looks import Stretch, make_schedule
from orchestrator.stats.paired import Estimate
from orchestrator.stats.verdict import Levels, judge_estimate, smallest_shown

# A run may give verdicts at its first look, at about the number of rounds of the default budget, or at its last look.
FIRST_LOOK, DEFAULT_BUDGET_ROUNDS, LAST_LOOK = LOOKS[0], 10, LOOKS[-1]
# More rounds or a larger margin are never advised: the run would take too long, or nearly any change would pass.
MOST_ROUNDS = 100
MOST_MARGIN = 50
# Steal of at least this share is reported; a run repeats a round only if it exceeds MOST_STEAL_SHARE.
LEAST_STEAL = 0.01
# This is too little for a run to repeat a round, but enough to make some of its calls slow.
LEAST_FOREIGN_CORES = 0.1
# One CPU is for the measured process, and one is for everything else.
NEEDED_CPUS = 2
# Both of the probe's processes start at once; afterwards only one of them works.
PROBE_LOAD = 2.0


@dataclass(frozen=True, kw_only=True)
class Examination:
    """The facts of this machine, the probe, and the machine's changing readings at the end of the probe."""

    host: Facts
    probe: Probe
    moment: Facts

    @property
    def disturbed(self) -> bool:
        meanwhile = self.probe.meanwhile
        return meanwhile is not None and bool(meanwhile.disturbance)

    @property
    def alone(self) -> bool:
        meanwhile, load = self.probe.meanwhile, read_number(self.moment, "load")
        others = meanwhile is None or meanwhile.foreign_cores > LEAST_FOREIGN_CORES
        return not others and load is not None and load <= PROBE_LOAD

    @property
    def can_pin(self) -> bool:
        usable = read_number(self.host, "usable_cores")
        return self.probe.cpus is None and usable is not None and usable > NEEDED_CPUS


def examine_noise(seconds: float, cpus: tuple[int, ...] | None = None) -> Examination:
    host = host_facts()
    probe = probe_rounds(seconds, cpus)
    return Examination(host=host, probe=probe, moment=moment())


def list_noise_findings(examination: Examination) -> tuple[DoctorFinding, ...]:
    """Return the findings, problems first."""
    return sort_worst_first(
        [
            _spread(examination),
            _equal_arms(examination.probe.estimate),
            *_find_disturbances(examination),
            *_find_shortages(examination),
            *_find_settings(examination),
        ]
    )


def sort_worst_first(findings: Iterable[DoctorFinding]) -> tuple[DoctorFinding, ...]:
    return tuple(sorted(findings, key=lambda finding: list(STYLES).index(finding.level)))


def _spread(seen: Examination) -> DoctorFinding:
    estimate = seen.probe.estimate
    text = f"equal arms differ by {estimate.spread:.1%} from round to round"
    soon, late = (_smallest(estimate, rounds) for rounds in (DEFAULT_BUDGET_ROUNDS, LAST_LOOK))
    if late > MARGIN:
        if seen.disturbed:
            return DoctorFinding("spread", "problem", text, "first stop these disturbances, then probe again")
        if seen.alone:
            text += ", and nothing that runs here explains it"
        return DoctorFinding("spread", "problem", text, _remedy(seen))
    if soon > MARGIN:
        advice = f"use a longer `--budget`: {LAST_LOOK} rounds would show a difference of {MARGIN:.0%}"
        return DoctorFinding("spread", "note", text, "end the disturbances, or " + advice if seen.disturbed else advice)
    if estimate.rounds < FIRST_LOOK:
        return DoctorFinding("spread", "note", f"{text}, in {estimate.rounds} rounds", "probe longer to be sure of it")
    return DoctorFinding("spread", "fine", text)


def _remedy(seen: Examination) -> str:
    estimate = seen.probe.estimate
    # A run with --rounds has a single look, which can spend the whole error.
    enough = (
        rounds
        for rounds in range(LAST_LOOK, MOST_ROUNDS + 1)
        if smallest_shown(estimate.spread, rounds, DIFFERENCE_ERROR) <= MARGIN
    )
    margin = math.ceil(_smallest(estimate, DEFAULT_BUDGET_ROUNDS) * 100)
    offers = [
        *(["`--cpuset`"] if seen.can_pin else []),
        *[f"`--rounds {rounds}`" for rounds in islice(enough, 1)],
        *([f"`--margin {margin}`"] if margin <= MOST_MARGIN else []),
        "a quieter time",
    ]
    return f"try {' or '.join(offers)}"


def _equal_arms(estimate: Estimate) -> DoctorFinding:
    verdict = judge_estimate(estimate, MARGIN, _levels(estimate.rounds)).verdict
    low, high = find_interval(estimate)
    ratio = f"{math.exp(estimate.theta):.3f}x, {low:.3f}-{high:.3f}"
    if verdict == "same":
        return DoctorFinding("A/A", "fine", f"equal arms come out the same: {ratio}")
    if verdict == "inconclusive" and low <= 1 <= high:
        return DoctorFinding("A/A", "note", f"equal arms are not shown to be the same: {ratio}")
    return DoctorFinding(
        "A/A", "problem", f"equal arms come out different: {ratio}",
        "probe again; if they stay different, trust no verdict from this machine",
    )  # fmt: skip


def _find_disturbances(seen: Examination) -> Iterator[DoctorFinding]:
    """Yield what other processes and the hypervisor did to this machine while it was probed."""
    meanwhile = seen.probe.meanwhile
    if meanwhile is None:
        return
    if meanwhile.foreign_share > MOST_FOREIGN_SHARE:
        neighbours = [f"{other.name} (pid {other.pid}) {other.cores:.0%} of a core" for other in seen.probe.neighbours]
        named = ", ".join(neighbours) or "processes that have ended"
        where = "" if seen.probe.cpus is None else " of these CPUs"
        advice = "measure at a quieter time"
        if seen.can_pin:
            advice += ", or pin with `--cpuset` to CPUs that they leave alone"
        yield DoctorFinding(
            "other processes", "problem", f"they kept {meanwhile.foreign_cores:.1f} cores{where} busy: {named}", advice
        )
    if meanwhile.steal_share >= LEAST_STEAL:
        level: Level = "problem" if meanwhile.steal_share > MOST_STEAL_SHARE else "note"
        yield DoctorFinding(
            "steal", level, f"the hypervisor took {meanwhile.steal_share:.0%} of the time",
            "measure at a quieter time, or on a machine that is not shared",
        )  # fmt: skip
    if meanwhile.steal_share > MOST_STEAL_SHARE or meanwhile.foreign_share > MOST_FOREIGN_SHARE:
        return
    # A run also repeats a round if the machine slept or its clock was set.
    if cause := meanwhile.disturbance:
        yield DoctorFinding("interruption", "problem", cause, "probe again")


def _find_shortages(seen: Examination) -> Iterator[DoctorFinding]:
    load = read_number(seen.moment, "load")
    if load is not None and load > PROBE_LOAD:
        yield DoctorFinding(
            "load", "note", f"{load:.1f}, but the probe alone causes {PROBE_LOAD:.0f} at most",
            "check with `top` what runs or waits for a disk, and measure when it has finished",
        )  # fmt: skip
    usable = read_number(seen.host, "usable_cores")
    if usable is not None and usable < NEEDED_CPUS:
        yield DoctorFinding(
            "CPUs", "problem", "only one can be used, and everything takes turns on it",
            f"let tfcompare use {NEEDED_CPUS} or more",
        )  # fmt: skip
    cpus = len(seen.probe.cpus) if seen.probe.cpus else usable
    quota, _, period = str(seen.host.get("cgroup_quota") or "max").partition(" ")
    if quota == "max" or cpus is None or (granted := int(quota) / int(period)) >= cpus:
        return
    advice = "raise it (`docker run --cpus`, or systemd's CPUQuota)"
    if seen.can_pin and granted >= 1:
        advice += f", or pin with `--cpuset` to {int(granted)} of them"
    yield DoctorFinding(
        "cgroup quota", "note", f"{granted:g} of {cpus:g} CPUs; beyond that, everything here is made to wait", advice
    )


def _find_settings(seen: Examination) -> Iterator[DoctorFinding]:
    governor = seen.host.get("governor")
    if governor not in (None, "performance"):
        yield DoctorFinding(
            "governor", "note", f"{governor}: clock rates follow the load",
            "`sudo cpupower frequency-set --governor performance`",
        )  # fmt: skip
    if seen.host.get("turbo") == "on":
        yield DoctorFinding(
            "turbo", "note", "on: clock rates follow temperature and neighbours",
            "switch it off to measure small effects: under /sys/devices/system/cpu, write 1 to intel_pstate/no_turbo "
            "or 0 to cpufreq/boost",
        )  # fmt: skip
    if seen.host.get("smt") == "1":
        yield DoctorFinding(
            "SMT", "note", "active: two CPUs share a core",
            "pin with `--cpuset` to one CPU of each core; `lscpu --extended` shows them" if seen.can_pin else "",
        )  # fmt: skip
    if seen.host.get("virtual") == "yes":
        yield DoctorFinding(
            "virtual machine", "note", "its neighbours cannot be seen, and not everything they do shows up as steal",
            "compare versions within a run, never the times of two runs",
        )  # fmt: skip


def read_number(facts: Facts, name: str) -> float | None:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) else None


def find_interval(estimate: Estimate) -> tuple[float, float]:
    """Return the interval of the ratio, as a run would give it after this many rounds."""
    width = judge_estimate(estimate, MARGIN, _levels(estimate.rounds)).half_width
    return math.exp(estimate.theta - width), math.exp(estimate.theta + width)


def _levels(rounds: int) -> Levels:
    schedule = make_schedule([Stretch(LOOKS)])
    return Levels(schedule.level(rounds, ALPHA), schedule.level(rounds, DIFFERENCE_ERROR))


def _smallest(estimate: Estimate, rounds: int) -> float:
    return smallest_shown(estimate.spread, rounds, _levels(rounds).differ)


def find_visible_slowdowns(estimate: Estimate) -> dict[int, float]:
    """Return the smallest slowdown that a run would detect on such a machine, by number of rounds."""
    return {rounds: _smallest(estimate, rounds) for rounds in (FIRST_LOOK, DEFAULT_BUDGET_ROUNDS, LAST_LOOK)}


def rate_machine(examination: Examination) -> Level:
    """Return the level of the whole machine: `problem` if any finding is one, or else the level of its spread."""
    worst = list_noise_findings(examination)[0].level
    return worst if worst == "problem" else _spread(examination).level
