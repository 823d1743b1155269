"""Examinations of a quiet, a noisy and a pinned machine."""

import io
from dataclasses import replace
from statistics import NormalDist
from typing import Any

from rich.console import Console

from orchestrator.doctor.aa_probe import Neighbour, Probe
from orchestrator.doctor.noise import Examination
from orchestrator.doctor.report import layout_examination
from orchestrator.machine.host import Facts, Interference
from orchestrator.stats.paired import Estimate

HOST: Facts = {
    "cpu": "A CPU",
    "system": "Linux",
    "kernel": "6.1",
    "cores": 8,
    "usable_cores": 8,
    "virtual": "no",
    "governor": "performance",
    "turbo": "off",
    "smt": "0",
    "cgroup_quota": "max 100000",
}
MOMENT: Facts = {"load": 0.9, "psi_cpu": 0.4}
LEFT_ALONE = Interference(foreign_cores=0.01, steal_share=0.0)


def equal_arms(spread: float, rounds: int = 20, shift: float = 0.0) -> Estimate:
    """Normal differences around `shift`, evenly over the whole distribution, with this spread."""
    normal = NormalDist()
    scores = tuple(normal.inv_cdf((number + 0.5) / rounds) for number in range(rounds))
    scale = spread / Estimate(scores).spread
    return Estimate(tuple(shift + scale * score for score in scores))


def examination(
    spread: float = 0.01,
    *,
    host: Facts | None = None,
    moment: Facts | None = None,
    **probed: Any,
) -> Examination:
    """Of a machine that is quiet but for what is named."""
    probe = Probe(
        estimate=equal_arms(spread), call_ms=(4.66, 4.65), seconds=30.1, cpus=None, meanwhile=LEFT_ALONE, neighbours=(),
    )  # fmt: skip
    return Examination(
        host={**HOST, **(host or {})}, moment={**MOMENT, **(moment or {})}, probe=replace(probe, **probed)
    )


def drawn(seen: Examination, width: int) -> str:
    buffer = io.StringIO()
    Console(file=buffer, width=width, color_system=None).print(layout_examination(seen, width))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n")


QUIET = examination()
NOISY = examination(
    0.12,
    host={"usable_cores": 2, "cores": 2, "virtual": "yes"},
    moment={"load": 5.25, "psi_cpu": None},
    meanwhile=Interference(foreign_cores=1.31, steal_share=0.07),
    neighbours=(Neighbour(4711, "cc1plus", 0.84), Neighbour(4712, "ld", 0.2)),
)
PINNED = examination(
    0.04,
    host={"governor": "powersave", "turbo": "on", "smt": "1", "cgroup_quota": "150000 100000"},
    cpus=(2, 3),
)
