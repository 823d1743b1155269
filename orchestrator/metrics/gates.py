"""Gates: the verdicts `[METRIC:]VERDICT[>AMOUNT]` of `--fail-on` that end a command with an error."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from orchestrator.errors import ArmsDied, NothingSelected, OutcomeFound, TfCompareError, UsageError
from orchestrator.metrics import METRICS, NAMES, NOT_BY_CPU, OF_ALL_PROGRAMS, OF_GPUS, OUTPUT, PLANNED, scale_of
from orchestrator.model import Judge, Metric, OutputComparison, Pair
from orchestrator.terminal.counts import format_count

DIED, OPEN = "died", "inconclusive"
# This word in a list makes all its gates count exploratory verdicts.
EXPLORATORY = "exploratory"
OF_OUTPUTS = ("differs", OPEN)
GATE = re.compile(r"(?:(?P<metric>\w+):)?(?P<verdict>\w+)(?:>(?P<amount>[\w.%]+))?")
# The Tab key and help offer these.
USUAL = ("slower", OPEN, DIED, EXPLORATORY, "first:slower", "memory:more", "output:differs")
FORM = "[METRIC:]VERDICT[>AMOUNT], e.g. slower, memory:more>10%, leak:more>4KiB, output:differs or died"


class JudgedComparison(Protocol):
    @property
    def pair(self) -> Pair: ...
    @property
    def verdict(self) -> str: ...
    @property
    def report_verdict(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def distance(self) -> float: ...
    @property
    def has_interval(self) -> bool: ...
    @property
    def exploratory(self) -> bool: ...
    @property
    def row_only(self) -> bool: ...


@dataclass(frozen=True)
class Gate:
    """One outcome that is an error. Without a metric, it is about the comparisons that a run was planned for."""

    text: str
    metric: Metric | Literal["output"] | None
    # This is the verdict as comparisons have it: `slower` also means `more`.
    verdict: str
    # The limit is a share or, for a metric of differences, an amount.
    above: float = 0.0
    # If set, verdicts of exploratory rounds also count.
    exploratory: bool = False

    @property
    def name(self) -> str:
        return self.metric or "time"

    @property
    def least_calls(self) -> int:
        """The fewest calls of a replicate that say anything about its metric."""
        return 0 if self.metric == OUTPUT else METRICS[self.metric or "time"].least_calls

    def matches(self, judged: JudgedComparison) -> bool:
        return self._is_about(judged, judged.report_verdict)

    def matches_row(self, judged: JudgedComparison) -> bool:
        """Return whether it would match if the row were the whole report."""
        return judged.row_only and self.verdict != OPEN and self._is_about(judged, judged.verdict)

    def _is_about(self, judged: JudgedComparison, verdict: str) -> bool:
        if judged.exploratory and not self.exploratory:
            # The comparison was undecided at the last look that had some of the allowed error left.
            verdict = OPEN
        if verdict != self.verdict:
            return False
        if self.verdict == OPEN or not self.above:
            return True
        return scale_of(judged.pair.metric).from_scale(judged.distance) > self.above

    def matches_output(self, output: OutputComparison) -> bool:
        if self.verdict == OPEN:
            return output.verdict == "not comparable"
        return output.verdict == "differs" and (output.difference is None or output.difference > self.above)


@dataclass(frozen=True, kw_only=True)
class GatedComparisons:
    """The comparisons that gates are about.

    `planned` are those that rounds were planned for, and `others` those of other metrics. `missing` is the number of
    comparisons of each metric that could not be made, because an arm was refused, died or is not in both runs. The key
    of the planned comparisons is None.
    """

    planned: Collection[JudgedComparison] = ()
    others: Collection[JudgedComparison] = ()
    outputs: Collection[OutputComparison] = ()
    missing: Mapping[str | None, int] = field(default_factory=dict)
    # The first missing comparison could not be made for this reason.
    why_missing: str = ""
    died: int = 0
    # The verdicts of the report are corrected for this many comparisons.
    judged_together: int = 0

    def find_rows(self, gate: Gate) -> Collection[JudgedComparison]:
        """Return the comparisons that a gate is about, unless it is about results."""
        if gate.metric is None:
            return self.planned
        return [each for each in (*self.planned, *self.others) if each.pair.metric == gate.metric]


def parse_gates(text: str) -> tuple[Gate, ...]:
    """Return the gates in a comma-separated list; raise UsageError for an invalid one."""
    parts = list(filter(None, re.split(r"[,\s]+", text)))
    gates = [_parse(part) for part in parts if part != EXPLORATORY]
    if EXPLORATORY not in parts:
        return tuple(gates)
    if all(gate.verdict == DIED for gate in gates):
        raise UsageError(f"--fail-on {text!r}: combine {EXPLORATORY} with a verdict, e.g. slower,{EXPLORATORY}")
    return tuple(replace(gate, exploratory=True) for gate in gates)


def _parse(text: str) -> Gate:
    found = GATE.fullmatch(text)
    if found is None:
        raise UsageError(f"--fail-on {text!r}: expected {FORM}")
    metric, verdict, amount = found["metric"], found["verdict"], found["amount"]
    if metric is not None and metric not in (*METRICS, OUTPUT):
        raise UsageError(f"--fail-on {text!r}: unknown metric {metric!r}; choose from {', '.join(NAMES)}")
    key: Metric | Literal["output"] | None = OUTPUT if metric == OUTPUT else METRICS[metric].name if metric else None
    # The share by which results differ is a percentage, like that of times.
    spec = METRICS["time" if key is None or key == OUTPUT else key]
    allowed = OF_OUTPUTS if key == OUTPUT else (spec.worse, spec.better, OPEN, *(() if key else (DIED, EXPLORATORY)))
    if verdict not in allowed:
        of = f" of {metric}" if metric else ""
        raise UsageError(f"--fail-on {text!r}: unknown outcome{of} {verdict!r}; choose from {', '.join(allowed)}")
    if amount and verdict in (DIED, OPEN, EXPLORATORY):
        raise UsageError(f"--fail-on {text!r}: {verdict} has no amount")
    above = spec.parse_amount(amount) if amount else 0.0
    if above is None:
        wanted = f"an amount such as {spec.units.example}" if spec.units else "a percentage such as 10%"
        raise UsageError(f"--fail-on {text!r}: after > write {wanted}")
    as_comparisons = {"more": "slower", "less": "faster"}
    return Gate(text, key, as_comparisons.get(verdict, verdict), above)


def choose_for_gates(
    gates: Sequence[Gate],
    usual: Sequence[str],
    named: Sequence[str] | None,
    *,
    program: bool,
    gpu: bool,
    judge: Judge = "wall",
) -> tuple[str, ...]:
    """Return the metrics, by name, that a run has to compare in addition to the `usual` ones for these gates.

    `named` are those that the user chose instead of the usual ones, to which nothing is added. A metric for which a run
    would make more calls is not added either. If a gate needs one of these, or a metric that such a run cannot have,
    UsageError is raised.
    """
    compared = tuple(usual if named is None else named)
    added: list[str] = []
    for gate in gates:
        if why := _find_obstacle(gate, program=program, gpu=gpu, judge=judge):
            raise UsageError(f"--fail-on {gate.text}: {why}; leave it out")
        if gate.metric in (None, *PLANNED) or gate.name in (*compared, *added):
            continue
        if named is not None or gate.least_calls:
            needs = ", which takes more calls" if gate.least_calls else ""
            check_compared([gate], compared, "the run does not compare", f"name it{needs}: --metric {{metrics}}")
        added.append(gate.name)
    return tuple(added)


def _find_obstacle(gate: Gate, *, program: bool, gpu: bool, judge: Judge) -> str:
    """Return why a run of this kind cannot have the metric of a gate, or ''."""
    if program and gate.metric not in (None, *OF_ALL_PROGRAMS):
        return f"a program after -- has no {gate.name}"
    if gate.metric == "step" and not program:
        return "only a program after -- has steps of fit"
    if judge == "cpu" and gate.metric in NOT_BY_CPU:
        return f"with --judge cpu a run does not compare {gate.name}, and a gate without a metric is about CPU time"
    if gate.metric in OF_GPUS and not gpu:
        return f"a run on a CPU has no {gate.name}"
    return ""


def check_compared(gates: Sequence[Gate], compared: Sequence[str], what: str, advice: str) -> None:
    """Raise UsageError for a gate about a metric that is not among these names.

    `{metrics}` in the advice stands for the names with that metric added.
    """
    for gate in gates:
        if gate.metric not in (None, *PLANNED) and gate.name not in compared:
            names = ",".join(name for name in (*compared, gate.name) if name not in PLANNED)
            raise UsageError(f"--fail-on {gate.text}: {what} {gate.name}; {advice.replace('{metrics}', names)}")


def find_gate_error(gates: Sequence[Gate], gated: GatedComparisons) -> TfCompareError | None:
    """Return the error for the requested outcomes that occurred, or None.

    Outcomes that make the answer incomplete come first: arms that died, if requested, and gates that had nothing to
    judge.
    """
    asked = ",".join([gate.text for gate in gates] + [EXPLORATORY] * any(gate.exploratory for gate in gates))
    if gated.died and any(gate.verdict == DIED for gate in gates):
        return ArmsDied(f"{format_count(gated.died, 'arm')} died (--fail-on {asked})")
    found, idle, compared = [], [], 0
    for gate in gates:
        if gate.verdict == DIED:
            continue
        missing = gated.missing.get(gate.metric, 0)
        if gate.metric == OUTPUT:
            made = sum(each.verdict != "not comparable" for each in gated.outputs)
            hits, of = sum(map(gate.matches_output, gated.outputs)), len(gated.outputs) + missing
            reasons = [each.reason for each in gated.outputs if each.reason]
        else:
            own = gated.find_rows(gate)
            made = sum(each.has_interval for each in own)
            hits, of = sum(map(gate.matches, own)), len(own) + missing
            reasons = [each.reason for each in own if each.reason]
        hits += missing if gate.verdict == OPEN else 0
        found += [f"{hits} {gate.text}"] if hits else []
        if not made and not hits:
            why = _explain_no_comparison(gate, of, [*reasons, gated.why_missing])
            idle.append(f"--fail-on {gate.text} had nothing to judge: {why}")
        compared = max(compared, of)
    matched = f"{', '.join(found)} of {format_count(compared, 'comparison')} (--fail-on {asked})"
    if idle:
        return NothingSelected("\n".join([*idle, *([matched] if found else [])]))
    return OutcomeFound(matched) if found else None


def describe_uncounted(gates: Sequence[Gate], gated: GatedComparisons) -> str:
    """Return a line about rows that have the outcome of a gate and are not certain enough to count, or ''."""
    counts = {gate.text: sum(map(gate.matches_row, gated.find_rows(gate))) for gate in gates}
    rows = ", ".join(f"{count} {text}" for text, count in counts.items() if count)
    if not rows:
        return ""
    return (
        f"--fail-on does not count {rows}: each is certain in its row, but not among all {gated.judged_together} "
        "comparisons of this report; a new run of its case alone, or with --rounds 20, can decide it"
    )


def _explain_no_comparison(gate: Gate, of: int, reasons: Sequence[str]) -> str:
    if not of:
        return f"no comparison by {gate.name} was planned"
    none = f"none of {format_count(of, 'comparison')} could be made"
    if reason := next(filter(None, reasons), ""):
        return f"{none}: {reason}"
    return f"{none}: cases whose calls take 0.1 s or more make too few calls" if gate.least_calls else none
