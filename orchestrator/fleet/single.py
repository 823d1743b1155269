"""Measures one run after another on the same host of a fleet, as searches and nightly runs need."""

from dataclasses import dataclass, replace

from orchestrator.errors import EngineUnavailable, UsageError
from orchestrator.fleet.conduct import list_hosts, measure_on_fleet
from orchestrator.fleet.model import NAME_LABEL, FleetOptions
from orchestrator.machine.host import Facts
from orchestrator.measure.run import Done
from orchestrator.plan.planning import plan_elsewhere
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.view import View


@dataclass(frozen=True)
class SingleHost:
    """The only host of a fleet that measures."""

    fleet: FleetOptions
    facts: Facts

    def measure(self, options: RunOptions, view: View) -> Done:
        return measure_on_fleet(plan_elsewhere(options, view), self.fleet, view)


def find_single(options: FleetOptions, engine: str, view: View, id: object = None, *, only: bool = False) -> SingleHost:
    """Return the host with this id, or else the first; with `only`, raise UsageError if there are several."""
    found = list_hosts(options, engine, view)
    if id is not None:
        found = [(name, report) for name, report in found if report.id == id]
        if not found:
            raise EngineUnavailable(f"--on {options.on}: the host that measured before ({id}) is not in the fleet now")
    if only and len(found) > 1:
        names = ", ".join(name for name, _ in found)
        raise UsageError(
            f"a night is of one machine, and the fleet has {names}: choose one, e.g. --where host={found[0][0]}"
        )
    name, report = found[0]
    where = (*(pair for pair in options.where if pair[0] != NAME_LABEL), (NAME_LABEL, name))
    return SingleHost(replace(options, where=where), {**report.facts, "id": report.id})
