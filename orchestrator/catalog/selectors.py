"""The selection of cases by a text such as `predict[state=compiled]`."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.catalog import did_you_mean
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.model import Case, Workload

# Smaller differences do not count, unless a claim or the user names another margin.
MARGIN = 0.05


SELECTOR = re.compile(r"(?P<name>[\w.-]+)(\[(?P<params>[^\]]*)\])?")


@dataclass(frozen=True)
class Selector:
    """A workload and the values that some of its parameters may take; the other parameters are free."""

    workload: str
    values: dict[str, tuple[str, ...]]


def parse_selector(text: str, workloads: dict[str, Workload]) -> Selector:
    """Parse `name[param=v1|v2,param=v]` and check it against the workload's file."""
    match = SELECTOR.fullmatch(text.strip())
    if text.endswith(".py") or "/" in text.partition("[")[0]:
        path = Path(text)
        raise UsageError(
            f"{text!r} is a file; to measure your own file, name its folder and the workload in it: "
            f"--workload-folder {path.parent} --case {path.stem}"
        )
    if match is None:
        wrong = ": a ] is missing" if text.count("[") > text.count("]") else ""
        raise UsageError(
            f"invalid case {text!r}{wrong}; write name or name[param=value,...], e.g. predict[state=compiled]"
        )
    name = match["name"]
    if name not in workloads:
        raise UsageError(
            f"unknown workload {name!r}{did_you_mean(name, workloads)}; `tfcompare list workloads` shows all"
        )
    params = workloads[name].params
    values: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (match["params"] or "").split(",")):
        param, equals, choice = (piece.strip() for piece in part.partition("="))
        if not equals or param not in params:
            raise UsageError(
                f"{text}: {name} has no parameter {param!r}{did_you_mean(param, params)}; "
                f"it has {', '.join(params) or 'none'}"
            )
        values[param] = tuple(value.strip() for value in choice.split("|"))
        for value in values[param]:
            if value not in params[param]:
                raise UsageError(
                    f"{text}: {param} cannot be {value!r}{did_you_mean(value, params[param])}; "
                    f"it can be {', '.join(params[param])}"
                )
    return Selector(name, values)


def expand(selector: Selector, workload: Workload) -> list[Case]:
    """Return every combination that a selector allows and the workload does not exclude."""
    choices = [selector.values.get(param, values) for param, values in workload.params.items()]
    combinations = (dict(zip(workload.params, values, strict=True)) for values in itertools.product(*choices))
    return [
        Case(workload.name, tuple(params.items()))
        for params in combinations
        if not any(rule.items() <= params.items() for rule in workload.exclude)
    ]


def select_cases(selectors: Sequence[str], suite: Sequence[str], workloads: dict[str, Workload]) -> tuple[Case, ...]:
    """Return the requested cases, or those of the suite if none are requested, each once, in the order named.

    A parameter that a selector leaves free takes every value that it has in the suite's cases of that workload, or all
    its values if the suite lacks the workload.
    """
    defaults = [parse_selector(text, workloads) for text in suite]
    if not selectors:
        every = (case for selector in defaults for case in expand(selector, workloads[selector.workload]))
        return tuple(dict.fromkeys(every))
    cases: list[Case] = []
    for text in selectors:
        selector = parse_selector(text, workloads)
        workload = workloads[selector.workload]
        usual = [case for other in defaults if other.workload == workload.name for case in expand(other, workload)]
        bounds = {
            param: tuple(value for value in values if not usual or any((param, value) in case.params for case in usual))
            for param, values in workload.params.items()
        }
        chosen = expand(Selector(workload.name, {**bounds, **selector.values}), workload)
        if not chosen:
            raise NothingSelected(f"{text}: {workload.name} leaves that combination of parameters out; see its file")
        cases.extend(chosen)
    return tuple(dict.fromkeys(cases))
