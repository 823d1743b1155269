"""A summary with one sentence per version, and the short names that distinguish cases."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from orchestrator.model import ArmKey, Case, CasePair, Comparison, Contrast, VerdictName, is_control, params_text
from orchestrator.reports.columns import ratio
from orchestrator.terminal.text import clip

# Of a case's name, in characters: a workload may have a parameter that holds a whole text.
LONGEST = 240


def sentences(comparison: Comparison) -> tuple[str, ...]:
    """Return one sentence for each version that is compared with the baseline."""
    names = short_names(arm.case for arm in comparison.arms)
    return tuple(
        _sentence(version, comparison.plan.versions[0], of_version(comparison, version), names)
        for version in comparison.plan.versions[1:]
        if not is_control(version)
    )


def set_against(pair: CasePair) -> str:
    """Return the values by which two cases differ, the candidate's first."""
    base, own = (" ".join(value for _, value in params) for params in pair.apart)
    return f"{own} v {base}"


def of_version(comparison: Comparison, candidate: str) -> list[Contrast]:
    return [one for one in comparison.contrasts if one.pair.across and one.pair.arms[1].version == candidate]


def by_candidate(contrasts: Iterable[Contrast]) -> dict[ArmKey, Contrast]:
    """Return the contrast across versions of each arm that has one; if claims ask for several, the first."""
    found: dict[ArmKey, Contrast] = {}
    for one in contrasts:
        if one.pair.across:
            found.setdefault(one.pair.arms[1], one)
    return found


def short_names(cases: Iterable[Case]) -> Mapping[str, str]:
    """Return the short name of each case by label.

    It consists of the workload and those parameter values that the workload's cases do not share.
    """
    by_workload: dict[str, list[Case]] = {}
    for case in dict.fromkeys(cases):
        by_workload.setdefault(case.workload, []).append(case)
    return {
        case.label: " ".join(part for part in (workload, own) if part)
        for workload, of_workload in by_workload.items()
        for case, own in split_params(of_workload)[2].items()
    }


def split_params(cases: Iterable[Case]) -> tuple[str, str, dict[Case, str]]:
    """Return the parameters that all cases share, the names of the others, and each case's own values."""
    listed = list(dict.fromkeys(cases))
    shared = set(listed[0].params).intersection(*(case.params for case in listed))
    common = params_text(tuple(param for param in listed[0].params if param in shared))
    names = " ".join(name for name, value in listed[0].params if (name, value) not in shared)
    own = {case: " ".join(value for name, value in case.params if (name, value) not in shared) for case in listed}
    return clip(common, LONGEST), clip(names, LONGEST), {case: clip(one, LONGEST) for case, one in own.items()}


def _sentence(candidate: str, baseline: str, own: Sequence[Contrast], names: Mapping[str, str]) -> str:
    timed = [contrast for contrast in own if contrast.ratio is not None]
    if not timed:
        return f"{candidate} against {baseline}: nothing could be compared."
    of = f"{len(own)} case{'s' if len(own) > 1 else ''}"
    by_verdict = {verdict: [one for one in timed if one.verdict == verdict] for verdict in get_args(VerdictName)}
    same, missing = len(by_verdict["same"]), len(own) - len(timed)
    rest = [(same, "same"), (len(by_verdict["inconclusive"]), "inconclusive"), (missing, "without a time")]
    told = [f"{count} {what}" for count, what in rest if count]
    differing = [(verdict, by_verdict[verdict]) for verdict in ("slower", "faster") if by_verdict[verdict]]
    if not differing and not same:
        return f"{candidate} against {baseline}: nothing decided in {of}: {', '.join(told)}."
    if not differing:
        return "; ".join([f"{candidate} is the same as {baseline} in {same} of {of}", *_join_parts(told[1:])]) + "."
    (verdict, most), *others = differing
    lead = f"{candidate} is {verdict} than {baseline} in {len(most)} of {of} ({_worst(most, names)})"
    also = "".join(f" and {verdict} in {len(found)} ({_worst(found, names)})" for verdict, found in others)
    return "; ".join([lead + also, *_join_parts(told)]) + "."


def _join_parts(told: Sequence[str]) -> list[str]:
    return [", ".join(told)] if told else []


def _worst(found: Sequence[Contrast], names: Mapping[str, str]) -> str:
    """Return the name and ratio of the contrast that differs most."""
    worst = max(found, key=lambda contrast: abs(math.log(contrast.ratio or 1.0)))
    label = worst.pair.arms[1].case
    return f"{'most in ' if len(found) > 1 else ''}{names.get(label, label)}, {ratio(worst.ratio or 1.0)}"
