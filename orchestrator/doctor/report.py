"""The report of `tfcompare doctor`, as a table and as an object."""

import math
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.doctor import STYLES, DoctorFinding
from orchestrator.doctor import environment as setups
from orchestrator.doctor.noise import (
    DEFAULT_BUDGET_ROUNDS,
    FIRST_LOOK,
    LAST_LOOK,
    Examination,
    find_interval,
    find_visible_slowdowns,
    list_noise_findings,
    rate_machine,
    read_number,
    sort_worst_first,
)
from orchestrator.stats.slowdown import format_slowdown
from orchestrator.terminal.strict_json import pick
from orchestrator.terminal.text import safe_text

SCHEMA = "tfcompare.doctor/1"


WIDE = 100


def layout_examination(
    examination: Examination | None, width: int, setup: setups.Setup | None = None
) -> RenderableType:
    """Lay out what can run here, how noisy the machine is, or both."""
    parts: list[RenderableType] = []
    if setup:
        head = Text("tfcompare doctor: what can run here", style="bold")
        parts += [head, _table(sort_worst_first(setups.list_setup_findings(setup)), width)]
    if examination:
        parts += [_head(examination), _table(list_noise_findings(examination), width)]
    return Group(*parts)


def _table(findings: tuple[DoctorFinding, ...], width: int) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    wide = width >= WIDE
    for name in ("", "finding", "observation", *(["advice"] if wide else [])):
        table.add_column(name, no_wrap=name == "")
    for finding in findings:
        mark = Text(finding.level, style=STYLES[finding.level])
        if wide:
            table.add_row(mark, safe_text(finding.subject), safe_text(finding.seen), safe_text(finding.advice))
        else:
            texts = [safe_text(finding.seen), *([safe_text(f"→ {finding.advice}")] if finding.advice else [])]
            table.add_row(mark, safe_text(finding.subject), Text("\n").join(texts))
    return table


def _head(examination: Examination) -> Text:
    host, probe = examination.host, examination.probe
    pressure = read_number(examination.moment, "psi_cpu")
    facts = [
        f"{host.get('cpu')}, {host.get('usable_cores')} of {host.get('cores')} CPUs",
        f"{host.get('system')} {host.get('kernel')}",
        f"load {examination.moment.get('load')}",
        *([] if pressure is None else [f"CPU pressure {pressure:.0f}%"]),
    ]
    pinned = "" if probe.cpus is None else f", pinned to CPU {', '.join(map(str, probe.cpus))}"
    first, second = probe.call_ms
    effects = find_visible_slowdowns(probe.estimate)
    worst = rate_machine(examination)
    head = Text("tfcompare doctor", style="bold")
    head.append("\n" + " · ".join(facts), style="not bold dim")
    head.append(
        f"\nA/A probe: {probe.estimate.rounds} rounds in {probe.seconds:.0f} s{pinned}; "
        f"{first:.2f} and {second:.2f} ms per call",
        style="not bold dim",
    )
    head.append(f"\n{worst}", style=STYLES[worst])
    first_look, budgeted, last_look = (
        format_slowdown(effects[look]) for look in (FIRST_LOOK, DEFAULT_BUDGET_ROUNDS, LAST_LOOK)
    )
    return head.append(
        f": at best, slowdowns of {budgeted} show in about {DEFAULT_BUDGET_ROUNDS} rounds (the default budget), "
        f"of {first_look} in {FIRST_LOOK} rounds, and of {last_look} in {LAST_LOOK} rounds. "
        "TensorFlow's own variance is not included.",
        style="not bold",
    )


def examination_as_object(examination: Examination | None, setup: setups.Setup | None = None) -> dict[str, Any]:
    findings = list(sort_worst_first(setups.list_setup_findings(setup))) if setup else []
    probed: dict[str, Any] = {"level": None}
    if examination:
        findings += list_noise_findings(examination)
        probe, estimate = examination.probe, examination.probe.estimate
        low, high = find_interval(estimate)
        meanwhile = "foreign_cores=meanwhile.foreign_cores steal_share=meanwhile.steal_share"
        probed = {
            "level": rate_machine(examination),
            **pick(examination, "host moment"),
            "probe": {
                **pick(probe, f"seconds cpus call_ms {meanwhile}"),
                **pick(estimate, "rounds spread"),
                "ratio": math.exp(estimate.theta),
                "ci_low": low,
                "ci_high": high,
                "neighbours": [asdict(neighbour) for neighbour in probe.neighbours],
            },
            "visible": [
                {"rounds": rounds, "slowdown": slowdown}
                for rounds, slowdown in find_visible_slowdowns(estimate).items()
            ],
        }
    return {
        "schema": SCHEMA,
        **probed,
        "findings": [asdict(finding) for finding in findings],
        "setup": setups.setup_as_object(setup) if setup else None,
    }
