"""OpenMetrics text, for Prometheus and compatible programs: times, ratios and verdicts as they are in the run.

Every metric is a gauge: the textfile collector, and other programs that read the older text format, refuse a whole file
that has the types for facts and states.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import get_args

from orchestrator.metrics import METRICS
from orchestrator.model import ArmResult, Comparison, Metric, Outcome, Plan, VerdictName
from orchestrator.results.run import Run
from orchestrator.terminal.text import escape_unprintable

OUTCOMES = get_args(Outcome)

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Family:
    """A metric with its samples, stored by their labels as written, which must not occur twice."""

    name: str
    help: str
    unit: str = ""
    samples: dict[str, float] = field(default_factory=dict)

    def add(self, labels: Labels, value: float | None) -> None:
        if value is not None:
            texts = {name: escape_unprintable(text) for name, text in labels.items()}
            texts = {name: text.replace("\\", "\\\\").replace('"', '\\"') for name, text in texts.items()}
            self.samples.setdefault(",".join(f'{name}="{text}"' for name, text in texts.items()), value)

    def choose(self, labels: Labels, name: str, states: Iterable[str], state: str) -> None:
        """Add one sample per state, so that none vanishes when the state changes."""
        for choice in states:
            self.add({**labels, name: choice}, int(choice == state))

    def lines(self) -> list[str]:
        head = [f"# TYPE {self.name} gauge", f"# HELP {self.name} {self.help}"]
        head += [f"# UNIT {self.name} {self.unit}"] if self.unit else []
        named = ((f"{self.name}{{{labels}}}" if labels else self.name, value) for labels, value in self.samples.items())
        return [*head, *(f"{name} {value!r}" for name, value in named)]


def render(run: Run) -> str:
    families = [
        *_about(run),
        *_of_arms(run.arms),
        *_of_comparisons(run.plan, (*run.comparisons, *run.evaluation.of_metrics)),
    ]
    return "\n".join([line for family in families for line in family.lines()] + ["# EOF"])


def _about(run: Run) -> tuple[Family, ...]:
    """Return facts about the run without its name, since a label that changes each night creates endless series."""
    plan, manifest = run.plan, run.manifest
    about = Family("tfcompare_run_info", "Where and with what the other metrics were measured.")
    about.add(
        {
            "tool": manifest.tool, "engine": plan.engine, "device": plan.device, "suite": plan.suite,
            "judge": plan.judge, "machine": str(manifest.host.get("id", "")), "cpu": str(manifest.host.get("cpu", "")),
        },
        1,
    )  # fmt: skip
    created = Family("tfcompare_run_created_seconds", "When the run was planned, in Unix time.", "seconds")
    created.add({}, plan.created.timestamp())
    return about, created


def _of_arms(arms: Iterable[ArmResult]) -> tuple[Family, ...]:
    figures: dict[Metric, Family] = {}
    for metric, spec in METRICS.items():
        unit = {"ms": "seconds", "bytes": "bytes", "joules": "joules", "count": ""}[spec.unit]
        name = "_".join(filter(None, ("tfcompare", spec.name, unit)))
        about = f"Median of {spec.about}{f': {spec.meaning}' if spec.meaning else ''}."
        figures[metric] = Family(name, about, unit)
    rounds = Family("tfcompare_rounds", "Number of valid rounds.")
    outcome = Family("tfcompare_outcome", "Outcome of an arm.")
    for arm in arms:
        labels = {"workload": arm.case.workload, "case": arm.case.label, "target": str(arm.target)}
        for metric, figure in arm.figures.items():
            # If CPU time is judged, the figure of `time` is CPU time, which is not exported as wall time.
            if metric != "time" or arm.wall_ms is None:
                figures[metric].add(labels, METRICS[metric].export(figure))
        rounds.add(labels, arm.rounds)
        outcome.choose(labels, "outcome", OUTCOMES, arm.outcome)
    return *(family for family in figures.values() if family.samples), rounds, outcome


def _of_comparisons(plan: Plan, comparisons: Iterable[Comparison]) -> tuple[Family, ...]:
    ratio = Family("tfcompare_ratio", "Candidate over baseline, paired by round.")
    low = Family("tfcompare_ratio_low", "Lower end of the ratio's interval.")
    high = Family("tfcompare_ratio_high", "Upper end of the ratio's interval.")
    differences = [
        Family("tfcompare_difference", "Candidate minus baseline, paired by round: bytes or traces, not seconds."),
        Family("tfcompare_difference_low", "Lower end of the difference's interval."),
        Family("tfcompare_difference_high", "Upper end of the difference's interval."),
    ]
    late = Family("tfcompare_exploratory", "1 if rounds were added after the error was spent.")
    verdict = Family("tfcompare_verdict", "The verdict of tfcompare; do not compute verdicts from the other metrics.")
    for comparison in comparisons:
        pair = comparison.pair.flat
        labels = {
            "kind": pair.kind, "workload": pair.workload, "case": pair.case.label if pair.case else "",
            "target": pair.target or "", "baseline": pair.baseline, "candidate": pair.candidate,
            "metric": pair.metric, "margin": f"{plan.margin if pair.margin is None else pair.margin:g}",
        }  # fmt: skip
        if plan.judge == "cpu" and pair.metric == "time":
            labels["judge"] = plan.judge
        ratio.add(labels, comparison.ratio)
        low.add(labels, comparison.ci_low)
        high.add(labels, comparison.ci_high)
        ends = comparison.difference, comparison.difference_low, comparison.difference_high
        for family, amount in zip(differences, ends, strict=True):
            family.add(labels, amount)
        late.add(labels, int(comparison.exploratory))
        verdict.choose(labels, "verdict", get_args(VerdictName), comparison.verdict)
    return ratio, low, high, *differences, late, verdict
