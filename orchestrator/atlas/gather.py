"""Makes the figures of an atlas from the runs of its units, judged as one report."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import InvalidVersion, Version

from orchestrator.atlas.figures import (
    AtlasCase,
    AtlasCell,
    AtlasClaim,
    AtlasFigures,
    AtlasRatio,
    AtlasRelease,
    AtlasResult,
    cut,
)
from orchestrator.atlas.state import UNITS, AtlasState
from orchestrator.atlas.units import AtlasUnit
from orchestrator.catalog.claims import all_claims
from orchestrator.catalog.workloads import all_workloads
from orchestrator.errors import TfCompareError
from orchestrator.metrics import METRICS
from orchestrator.model import Comparison, Evaluation, Expectation, ReportRow, Target, TargetPair, VerdictName
from orchestrator.results.evaluation import judge_run
from orchestrator.results.find_runs import PLAN
from orchestrator.results.run_folder import RunFolder
from orchestrator.stats.report_error import find_limit, mark_row_only
from orchestrator.terminal.text import escape_unprintable

MACHINE = ("cpu", "usable_cores", "smt", "virtual", "memory_mb", "kernel")
MAGNITUDE = tuple(field.name for field in fields(ReportRow))
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class MeasuredUnit:
    """A unit with its judged run; the targets have the names that the run gave them."""

    unit: AtlasUnit
    evaluation: Evaluation

    @property
    def targets(self) -> tuple[Target, ...]:
        return self.evaluation.plan.targets


def gather_figures(
    folder: Path, state: AtlasState, judge: Callable[[RunFolder], Evaluation] = judge_run
) -> AtlasFigures:
    """Return the figures of all units that have been measured so far."""
    measured = []
    notes = [cut(f"{escape_unprintable(text)} is left out: {reason}") for text, reason in state.left_out.items()]
    for unit in state.units:
        path = folder / UNITS / unit.name
        if path.is_symlink() or not (path / PLAN).is_file():
            continue
        try:
            measured.append(MeasuredUnit(unit, judge(RunFolder.open(path))))
        except TfCompareError as error:
            notes.append(cut(f"unit {unit.name} cannot be used: {escape_unprintable(error.headline)}"))
    releases = _list_releases(state, measured)
    steps, levels, judged = _list_ratios(measured)
    labels = dict.fromkeys(case for each in measured for case in each.evaluation.plan.cases)
    of_levels = (str(each.targets[-1]) for each in measured if each.unit.has_level)
    workloads = all_workloads(state.question.run.own_workloads)
    return AtlasFigures(
        title=state.question.title,
        built=f"{datetime.now(UTC):%Y-%m-%d}",
        tool=state.tool,
        margin=state.question.run.margin,
        reference=next(of_levels, state.question.against or state.question.releases[-1]),
        machine=_describe_machine(state, measured),
        releases=tuple(releases.values()),
        cases=tuple(
            AtlasCase(
                label=case.label,
                workload=case.workload,
                params=dict(case.params),
                summary=workloads[case.workload].summary if case.workload in workloads else "",
            )
            for case in labels
        ),
        cells=tuple(_list_cells(state, measured, releases)),
        steps=steps,
        levels=levels,
        results=tuple(_list_results(measured)),
        causes=state.causes,
        claims=tuple(_list_claims(steps)),
        notes=tuple(notes),
        judged_together=judged,
    )


def _list_releases(state: AtlasState, measured: Iterable[MeasuredUnit]) -> dict[str, AtlasRelease]:
    """Return the releases by the texts of their targets, with the day of the unit that compares each with the last."""
    found: dict[str, AtlasRelease] = {
        text: AtlasRelease(name=text, python="", keras="", measured="") for text in state.question.releases
    }
    for each in measured:
        manifest, plan = each.evaluation.manifest, each.evaluation.plan
        both = manifest.environments.keys() >= set(each.targets[:2])
        for place, (text, target) in enumerate(zip(each.unit.targets, each.targets, strict=False)):
            if text not in found:
                continue
            facts = manifest.environments.get(target)
            is_step = place == 1 and each.unit.has_step and both
            day = f"{plan.created:%Y-%m-%d}" if is_step else found[text].measured
            found[text] = AtlasRelease(
                name=str(target),
                python=facts.python if facts else found[text].python,
                keras=_find_keras(facts.packages) if facts else found[text].keras,
                measured=day,
            )
    return found


def _find_keras(packages: Mapping[str, str]) -> str:
    """Return the Keras of a release; in those before it was a package, it is part of TensorFlow."""
    return packages.get("keras") or packages.get("tf-keras") or ""


def _list_ratios(
    measured: Iterable[MeasuredUnit],
) -> tuple[tuple[AtlasRatio, ...], tuple[AtlasRatio, ...], int]:
    """Return the steps and the levels, and how many of them were corrected together.

    A sentence about the atlas may be wrong because of any of them, so all are corrected as those of one report are.
    """
    steps, levels = [], []
    for each in measured:
        evaluation, targets = each.evaluation, each.targets
        for comparison in (*evaluation.comparisons, *evaluation.of_metrics):
            pair = comparison.pair
            if pair.kind != "target":
                continue
            old, new = (arm.target for arm in pair.arms)
            if each.unit.has_step and (old, new) == targets[:2]:
                steps.append(comparison)
            if each.unit.has_level and (old, new) == targets[-2:]:
                levels.append(comparison)
    # With two releases, the step is also the level.
    distinct = {id(comparison): comparison for comparison in (*steps, *levels)}
    ps = [comparison.p for comparison in distinct.values() if comparison.p is not None]
    limit = find_limit(ps)

    def correct(comparisons: Iterable[Comparison]) -> Iterator[Comparison]:
        return (mark_row_only(comparison, limit, len(ps)) for comparison in comparisons)

    return (
        tuple(_make_ratio(each) for each in correct(steps)),
        tuple(_turn(_make_ratio(each)) for each in correct(levels)),
        len(ps),
    )


def _make_ratio(comparison: Comparison) -> AtlasRatio:
    pair = comparison.pair
    (case, older), (_, newer) = pair.arms
    return AtlasRatio(
        case=case,
        metric=pair.metric,
        older=str(older),
        newer=str(newer),
        rounds=comparison.rounds,
        **{
            **{name: getattr(comparison, name) for name in MAGNITUDE},
            "reason": cut(comparison.reason),
            # Rounds after the planned ones decide nothing for certain.
            "row_only": comparison.row_only or comparison.exploratory,
        },
    )


def _turn(ratio: AtlasRatio) -> AtlasRatio:
    """Return the reference against a release as that release against the reference."""
    turned: dict[VerdictName, VerdictName] = {"slower": "faster", "faster": "slower"}
    low, high = ratio.ci_low, ratio.ci_high
    difference, least, most = ratio.difference, ratio.difference_low, ratio.difference_high
    return replace(
        ratio,
        older=ratio.newer,
        newer=ratio.older,
        verdict=turned.get(ratio.verdict, ratio.verdict),
        ratio=1 / ratio.ratio if ratio.ratio else None,
        ci_low=1 / high if high else None,
        ci_high=1 / low if low else None,
        difference=None if difference is None else -difference,
        difference_low=None if most is None else -most,
        difference_high=None if least is None else -least,
    )


def _list_cells(
    state: AtlasState, measured: Iterable[MeasuredUnit], releases: Mapping[str, AtlasRelease]
) -> Iterator[AtlasCell]:
    """Yield one cell per case and release: that of the unit in which the release is compared with its predecessor."""
    best: dict[tuple[str, str], AtlasCell] = {}
    names = {release.name for release in releases.values()}
    for each in measured:
        second = each.targets[1]
        for arm in each.evaluation.arms:
            key = arm.case.label, str(arm.target)
            if key[1] not in names:
                continue
            figures = {
                metric: METRICS[metric].export(figure)
                for metric, figure in arm.figures.items()
                if math.isfinite(figure)
            }
            # A run counts what was lost before it began as dead.
            is_here = arm.target in each.evaluation.manifest.environments
            outcome = arm.outcome if is_here else NOT_MEASURED
            cell = AtlasCell(case=key[0], release=key[1], outcome=outcome, reason=cut(arm.reason), figures=figures)
            if key not in best or (each.unit.has_step and arm.target == second) or best[key].outcome == NOT_MEASURED:
                best[key] = cell
    yield from best.values()
    failures = {
        unit.targets[1]: state.runs[unit.name].failure
        for unit in state.units
        if unit.has_step and unit.name in state.runs and state.runs[unit.name].failure
    }
    labels = dict.fromkeys(label for label, _ in best)
    for text, reason in failures.items():
        for label in labels:
            if (label, releases[text].name) not in best:
                yield AtlasCell(
                    case=label, release=releases[text].name, outcome=NOT_MEASURED, reason=cut(reason), figures={}
                )


def _list_results(measured: Iterable[MeasuredUnit]) -> Iterator[AtlasResult]:
    for each in measured:
        for output in each.evaluation.outputs:
            if each.unit.has_step and (output.baseline, output.candidate) == each.targets[:2]:
                yield AtlasResult(
                    case=output.case.label,
                    older=str(output.baseline),
                    newer=str(output.candidate),
                    verdict=output.verdict,
                    difference=output.difference,
                    reason=cut(output.reason),
                )


def _list_claims(steps: Iterable[AtlasRatio]) -> Iterator[AtlasClaim]:
    """Yield the published claims that report the effect that was measured in a step."""
    claims = all_claims(all_workloads()).values()
    for step in steps:
        if step.is_named:
            yield from (
                AtlasClaim(
                    case=step.case, metric=step.metric, older=step.older, newer=step.newer,
                    name=claim.name, title=claim.title, source=claim.source,
                )
                for claim in claims
                if any(_says(expected, step) for expected in claim.expectations)
            )  # fmt: skip


def _says(expected: Expectation, step: AtlasRatio) -> bool:
    """Return whether a claim expects this effect of the same case, between releases that enclose the step."""
    pair = expected.pair
    worse = expected.effect in ("slower", "more")
    if not isinstance(pair, TargetPair) or (pair.case.label, pair.metric) != (step.case, step.metric):
        return False
    if expected.effect not in ("slower", "more", "faster", "less") or worse != (step.verdict == "slower"):
        return False
    try:
        older, newer = Version(step.older), Version(step.newer)
        return Version(pair.baseline.name) <= older and newer <= Version(pair.candidate.name)
    except InvalidVersion:
        return False


def _describe_machine(state: AtlasState, measured: Iterable[MeasuredUnit]) -> dict[str, str]:
    device = next((each.evaluation.plan.device for each in measured), state.question.run.environments.device)
    facts = {name: str(state.host[name]) for name in MACHINE if state.host.get(name) is not None}
    return {**facts, "engine": state.engine or state.question.run.engine, "device": device}
