"""Short names of cases and of pairs of cases, which distinguish them from the others of their workload."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from orchestrator.model import Case, CasePair, Comparison, Params, params_text
from orchestrator.terminal.text import clip

# A name is clipped to this many characters, because a parameter of a workload may hold a long text.
LONGEST = 240
# A longer name leaves too little room for figures on a usual screen.
LONGEST_NAME = 30


def short_names(cases: Iterable[Case]) -> Mapping[str, str]:
    """Return the short name of each case by label.

    It consists of the workload and those parameter values that the workload's cases do not share. Where that is long,
    the values alone say enough if there are several, and no other case is named so.
    """
    names: dict[str, str] = {}
    shorter: dict[str, str] = {}
    for workload, of_workload in by_workload(cases).items():
        values = split_params(of_workload)[2]
        of_cases = {case.label: " ".join(part for part in (workload, own) if part) for case, own in values.items()}
        names |= of_cases
        if max(map(len, of_cases.values())) > LONGEST_NAME and all(" " in own for own in values.values()):
            shorter |= {case.label: own for case, own in values.items()}
    found = names | shorter
    return found if len(set(found.values())) == len(set(names.values())) else names


def by_workload(cases: Iterable[Case]) -> Mapping[str, Sequence[Case]]:
    """Return the cases of each workload, each case once."""
    groups: dict[str, list[Case]] = {}
    for case in dict.fromkeys(cases):
        groups.setdefault(case.workload, []).append(case)
    return groups


def split_params(cases: Iterable[Case]) -> tuple[str, str, dict[Case, str]]:
    """Return the parameters that all cases share, the names of the others, and each case's own values, all as text."""
    shared, own = separate_params(cases)
    names = " ".join(name for name, _ in next(iter(own.values())))
    values = {case: clip(" ".join(value for _, value in params), LONGEST) for case, params in own.items()}
    return clip(params_text(shared), LONGEST), clip(names, LONGEST), values


def separate_params(cases: Iterable[Case]) -> tuple[Params, Mapping[Case, Params]]:
    """Return the parameters that all cases of a workload share, and each case's own parameters."""
    distinct = tuple(dict.fromkeys(cases))
    common = set(distinct[0].params).intersection(*(case.params for case in distinct))
    shared = tuple(param for param in distinct[0].params if param in common)
    return shared, {case: tuple(param for param in case.params if param not in common) for case in distinct}


def set_against(pair: CasePair) -> str:
    """Return the values by which two cases differ, the candidate's first."""
    base, own = (" ".join(value for _, value in params) for params in pair.differing_params)
    return f"{own} v {base}"


def make_pair_namer(comparisons: Iterable[Comparison]) -> Callable[[Comparison], str]:
    """Return a function that names pairs of cases.

    A name says what distinguishes the two cases, and what distinguishes the pair from the others of its workload.
    """
    alike: dict[str, set[tuple[str, str]]] = {}
    for comparison in comparisons:
        params = set(comparison.pair.params)
        alike[comparison.pair.workload] = alike.get(comparison.pair.workload, params) & params

    def format_difference(comparison: Comparison) -> str:
        pair = comparison.pair
        own = [item[1] for item in pair.params if item not in alike[pair.workload]]
        apart = [set_against(pair)] if isinstance(pair, CasePair) else []
        return clip(" ".join([pair.workload, *own, *apart]), LONGEST)

    return format_difference
