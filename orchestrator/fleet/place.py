"""Rules that decide which hosts belong to a fleet, and which of them may measure a unit. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.catalog.gpu_support import match_gpu
from orchestrator.catalog.version import Version
from orchestrator.errors import EngineUnavailable
from orchestrator.fleet.model import NAME_LABEL, FleetNode, HostReport

# A run needs at least this much free space, in addition to environments that already exist.
LEAST_FREE_MB = 500

Where = Sequence[tuple[str, str]]


def find_mismatch(node: FleetNode, where: Where) -> str:
    """Return the requested labels that a machine does not have, or ''."""
    labels = {**node.labels, NAME_LABEL: node.name}
    return ", ".join(f"{name}={value}" for name, value in where if labels.get(name) != value)


def find_host_obstacle(report: HostReport, tool: str, contract: str) -> str:
    """Return why a machine cannot belong to this fleet, or ''."""
    if report.contract != contract or report.tool != tool:
        theirs = f"it has tfcompare {report.tool} (contract {report.contract})"
        return f"{theirs}, this is {tool} ({contract}): install this one there"
    if report.free_mb < LEAST_FREE_MB:
        return f"its disk has {report.free_mb} MB left, and a run needs {LEAST_FREE_MB} MB: make room there"
    return ""


def find_duplicate(report: HostReport, others: Mapping[str, HostReport]) -> str:
    """Return what is wrong if another host has the same id, or ''; the keys of `others` are names."""
    for name, other in others.items():
        if other.id == report.id:
            return (
                f"it has the same id as {name} ({report.id}). One machine measures one thing at a time: start one node "
                "on it. If they are two, give each its own /etc/machine-id"
            )
    return ""


def choose_fleet_engine(wanted: str, reports: Iterable[HostReport]) -> str:
    """Return the engine that measures on all hosts: the one asked for, or the one that most of them have.

    Raise EngineUnavailable if no host has it.
    """
    reports = tuple(reports)
    names = [name for name in reports[0].engines if wanted in ("auto", name)] if reports else []
    counts = {name: sum(report.engines.get(name) == "" for report in reports) for name in names}
    if any(counts.values()):
        return max(names, key=lambda name: counts[name])
    told = "; ".join(dict.fromkeys(report.engines.get(name, "") for name in names for report in reports))
    raise EngineUnavailable(f"no host of the fleet can measure with --engine {wanted}: {told}")


def find_misfit(versions: Iterable[Version], report: HostReport, *, gpu: bool, force: bool) -> str:
    """Return why versions cannot be measured on a machine, or ''."""
    if not gpu:
        return ""
    if not report.gpus:
        return "it has no GPU"
    matches = (match_gpu(version, report.gpus[0], ()) for version in versions)
    failing = [str(match) for match in matches if match.fit == "unsupported"]
    return "" if force or not failing else failing[0]
