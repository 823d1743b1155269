"""What `tfcompare list` shows: each thing as rows for people and as objects for programs."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator import catalog, suites


@dataclass(frozen=True)
class Listing:
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    objects: list[dict[str, object]]


def _versions() -> Listing:
    objects: list[dict[str, object]] = []
    rows = []
    for version in catalog.all_versions():
        flavours = list(dict.fromkeys(flavour.name for flavour in version.flavours))
        pythons = [flavour.python.number for flavour in version.on("cpu")]
        objects.append(
            {
                "version": version.number,
                "aliases": list(version.aliases),
                "python": pythons[0],
                "pythons": pythons,
                "keras": version.keras,
                "flavours": flavours,
            }
        )
        rows.append(
            (version.number, ", ".join(version.aliases), ", ".join(pythons), version.keras, ", ".join(flavours))
        )
    return Listing(("version", "aliases", "Python", "Keras", "flavours"), rows, objects)


def _workloads() -> Listing:
    found = suites.all_workloads().values()
    objects: list[dict[str, object]] = [
        {
            "workload": workload.name,
            "summary": workload.summary,
            "params": {name: list(values) for name, values in workload.params.items()},
            "contrasts": workload.contrasts,
        }
        for workload in found
    ]
    rows = [
        (
            workload.name,
            workload.summary + "".join(f"\n{name}={'|'.join(values)}" for name, values in workload.params.items()),
        )
        for workload in found
    ]
    return Listing(("workload", "what it does, and its parameters"), rows, objects)


def _suites() -> Listing:
    found = suites.all_suites()
    objects: list[dict[str, object]] = [
        {"suite": suite.name, "summary": suite.summary, "cases": list(suite.cases), "budget_s": suite.budget_s}
        for suite in found.values()
    ]
    rows = [(suite.name, "\n".join([suite.summary, *suite.cases])) for suite in found.values()]
    return Listing(("suite", "what it is for, and its cases"), rows, objects)


LISTINGS = {"versions": _versions, "workloads": _workloads, "suites": _suites}
