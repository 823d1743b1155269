"""What came out, in a sentence a version; and the short names by which cases are told apart."""

import math
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.model import CONTROL, Case, Comparison, Contrast, VerdictName
from orchestrator.plain import clipped
from orchestrator.reports.columns import ratio

# Of a case's name, in characters: a workload may have a parameter that holds a whole text.
LONGEST = 240


def sentences(comparison: Comparison) -> tuple[str, ...]:
    """One for each version that is compared with the baseline."""
    names = short_names(arm.case for arm in comparison.arms)
    return tuple(
        _sentence(version, comparison.plan.versions[0], of_version(comparison, version), names)
        for version in comparison.plan.versions[1:]
        if not version.endswith(CONTROL)
    )


def of_version(comparison: Comparison, candidate: str) -> list[Contrast]:
    return [one for one in comparison.contrasts if one.pair.across and one.pair.candidate == candidate]


def by_candidate(contrasts: Iterable[Contrast]) -> dict[tuple[str, str], Contrast]:
    """The contrast across versions of each arm that has one; where claims ask for several, the first."""
    found: dict[tuple[str, str], Contrast] = {}
    for one in contrasts:
        if one.pair.across:
            found.setdefault(one.pair.arms[1], one)
    return found


def short_names(cases: Iterable[Case]) -> Mapping[str, str]:
    """By label: the workload, and of the parameters those values that its cases do not share."""
    by_workload: dict[str, list[Case]] = {}
    for case in dict.fromkeys(cases):
        by_workload.setdefault(case.workload, []).append(case)
    return {
        case.label: " ".join(part for part in (workload, own) if part)
        for workload, of_workload in by_workload.items()
        for case, own in split_params(of_workload)[2].items()
    }


def split_params(cases: Iterable[Case]) -> tuple[str, str, dict[Case, str]]:
    """The parameters that all cases share, the names of the others, and each case's own values."""
    listed = list(dict.fromkeys(cases))
    shared = set(listed[0].params).intersection(*(case.params for case in listed))
    common = " ".join(f"{name}={value}" for name, value in listed[0].params if (name, value) in shared)
    names = " ".join(name for name, value in listed[0].params if (name, value) not in shared)
    own = {case: " ".join(value for name, value in case.params if (name, value) not in shared) for case in listed}
    return clipped(common, LONGEST), clipped(names, LONGEST), {case: clipped(one, LONGEST) for case, one in own.items()}


def _sentence(candidate: str, baseline: str, own: Sequence[Contrast], names: Mapping[str, str]) -> str:
    timed = [contrast for contrast in own if contrast.ratio is not None]
    if not timed:
        return f"{candidate} against {baseline}: nothing could be compared."
    told = [_differing(verdict, timed, names) for verdict in ("slower", "faster")]
    differing = [words for words in told if words]
    counts = {verdict: sum(one.verdict == verdict for one in timed) for verdict in ("same", "inconclusive")}
    rest = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    if missing := len(own) - len(timed):
        rest.append(f"{missing} without a time")
    of = f"{len(own)} case{'s' if len(own) > 1 else ''}"
    if not differing:
        if not counts["same"]:
            return f"{candidate} against {baseline}: nothing decided in {of}: {', '.join(rest)}."
        others = f"; {', '.join(rest[1:])}" if rest[1:] else ""
        return f"{candidate} is the same as {baseline} in {counts['same']} of {of}{others}."
    first, *second = differing
    verdict, where = first
    lead = f"{candidate} is {verdict} than {baseline} in {where.replace(' of all', f' of {of}', 1)}"
    also = f" and {second[0][0]} in {second[0][1].replace(' of all', '', 1)}" if second else ""
    return f"{lead}{also}" + (f"; {', '.join(rest)}." if rest else ".")


def _differing(verdict: VerdictName, timed: Sequence[Contrast], names: Mapping[str, str]) -> tuple[str, str] | None:
    """How many are, and which is most so."""
    own = [contrast for contrast in timed if contrast.verdict == verdict]
    if not own:
        return None
    worst = max(own, key=lambda contrast: abs(math.log(contrast.ratio or 1.0)))
    label = worst.pair.arms[1][0]
    most = "most in " if len(own) > 1 else ""
    return verdict, f"{len(own)} of all ({most}{names.get(label, label)}, {ratio(worst.ratio or 1.0)})"
