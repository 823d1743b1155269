"""What ends a command with an error: `[METRIC:]VERDICT[>PERCENT]`, of which `--fail-on` takes a list."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.errors import ArmsDied, OutcomeFound, TfCompareError, UsageError
from orchestrator.metrics import KEYS, METRICS, NAMES, OUTPUT
from orchestrator.model import OutputContrast, Pair

DIED, OPEN = "died", "inconclusive"
OF_OUTPUTS = ("differs", OPEN)
GATE = re.compile(r"(?:(?P<metric>\w+):)?(?P<verdict>\w+)(?:>(?P<percent>\d{1,6}(?:\.\d{1,6})?)%?)?")
# For the Tab key, and for help.
USUAL = ("slower", OPEN, DIED, "first:slower", "memory:more", "output:differs")
FORM = "[METRIC:]VERDICT[>PERCENT], e.g. slower, memory:more>10%, output:differs or died"


class Judged(Protocol):
    @property
    def pair(self) -> Pair: ...
    @property
    def verdict(self) -> str: ...
    @property
    def ratio(self) -> float | None: ...


@dataclass(frozen=True)
class Gate:
    """One outcome that is an error; without a metric it is one of the comparisons that a run was planned for."""

    text: str
    metric: str | None
    # As contrasts have it.
    verdict: str
    above: float = 0.0

    def matches(self, judged: Judged) -> bool:
        if judged.verdict != self.verdict or (self.metric and judged.pair.metric != self.metric):
            return False
        if self.verdict == OPEN or not self.above:
            return True
        ratio = judged.ratio or 1.0
        return (ratio if self.verdict == "slower" else 1 / ratio) - 1 > self.above

    def matches_output(self, output: OutputContrast) -> bool:
        if self.verdict == OPEN:
            return output.verdict == "not comparable"
        return output.verdict == "differs" and (output.difference is None or output.difference > self.above)


def parse_gates(text: str) -> tuple[Gate, ...]:
    """Return the outcomes in a list with commas; raise UsageError for one that is none."""
    return tuple(_parse(part) for part in filter(None, re.split(r"[,\s]+", text)))


def _parse(text: str) -> Gate:
    found = GATE.fullmatch(text)
    if found is None:
        raise UsageError(f"--fail-on {text!r}: it is {FORM}")
    metric, verdict, above = found["metric"], found["verdict"], float(found["percent"] or 0) / 100
    if metric is not None and metric not in (*KEYS, OUTPUT):
        raise UsageError(f"--fail-on {text!r}: there is no metric {metric!r}; they are {', '.join(NAMES)}")
    key = OUTPUT if metric == OUTPUT else KEYS[metric] if metric else None
    allowed = _words(key)
    if verdict not in allowed:
        of = f" of {metric}" if metric else ""
        raise UsageError(f"--fail-on {text!r}: unknown outcome{of} {verdict!r}; it is {', '.join(allowed)}")
    if found["percent"] and verdict in (DIED, OPEN):
        raise UsageError(f"--fail-on {text!r}: {verdict} has no percentage")
    as_contrasts = {"more": "slower", "less": "faster"}
    return Gate(text, key, as_contrasts.get(verdict, verdict), above)


def _words(metric: str | None) -> tuple[str, ...]:
    if metric == OUTPUT:
        return OF_OUTPUTS
    spec = METRICS[KEYS[metric or "steady"]]
    return spec.worse, spec.better, OPEN, *(() if metric else (DIED,))


def find_gate_error(
    gates: Sequence[Gate],
    planned: Collection[Judged],
    others: Collection[Judged] = (),
    outputs: Collection[OutputContrast] = (),
    *,
    died: int = 0,
) -> TfCompareError | None:
    """Return the error for the outcomes that were asked for, if there are any.

    `others` are the contrasts of metrics for which no rounds were planned.
    """
    asked = ",".join(gate.text for gate in gates)
    if died and any(gate.verdict == DIED for gate in gates):
        return ArmsDied(f"{died} arms died (--fail-on {asked})")
    found, compared = [], 0
    for gate in gates:
        if gate.verdict == DIED:
            continue
        if gate.metric == OUTPUT:
            hits, of = sum(map(gate.matches_output, outputs)), len(outputs)
        else:
            own = [each for each in (*planned, *others) if each.pair.metric == gate.metric] if gate.metric else planned
            hits, of = sum(map(gate.matches, own)), len(own)
        found += [f"{hits} {gate.text}"] if hits else []
        compared = max(compared, of)
    return OutcomeFound(f"{', '.join(found)} of {compared} comparisons (--fail-on {asked})") if found else None
