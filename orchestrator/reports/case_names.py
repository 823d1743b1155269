"""Short names of cases, and of pairs of cases: what sets them apart from the others of their workload."""

from collections.abc import Callable, Iterable, Mapping

from orchestrator.model import Case, CasePair, Contrast, params_text
from orchestrator.terminal.text import clip

# Of a case's name, in characters: a workload may have a parameter that holds a whole text.
LONGEST = 240


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


def set_against(pair: CasePair) -> str:
    """Return the values by which two cases differ, the candidate's first."""
    base, own = (" ".join(value for _, value in params) for params in pair.apart)
    return f"{own} v {base}"


def differences(contrasts: Iterable[Contrast]) -> Callable[[Contrast], str]:
    """Return a function that names pairs of cases.

    A name says what distinguishes the two cases, and what distinguishes the pair from the others of its workload.
    """
    alike: dict[str, set[tuple[str, str]]] = {}
    for contrast in contrasts:
        params = set(contrast.pair.params)
        alike[contrast.pair.workload] = alike.get(contrast.pair.workload, params) & params

    def format_difference(contrast: Contrast) -> str:
        pair = contrast.pair
        own = [item[1] for item in pair.params if item not in alike[pair.workload]]
        apart = [set_against(pair)] if isinstance(pair, CasePair) else []
        return clip(" ".join([pair.workload, *own, *apart]), LONGEST)

    return format_difference
