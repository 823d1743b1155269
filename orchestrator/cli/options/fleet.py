"""Flags for the machines that measure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options.declare import Group, number
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.fleet.model import FleetOptions

# In orchestrator/fleet, this name stands for this machine alone.
LOCAL = "local"


@dataclass(frozen=True, kw_only=True)
class PlaceFlags(Group):
    panel = "Fleet"

    on: Annotated[
        str,
        typer.Option(
            "--on",
            help="Machines to measure on: local; auto (those registered with `fleet up`, or else the Ray cluster of "
            "this machine); or ray://HEAD:PORT.",
            metavar="FLEET",
        ),
    ] = LOCAL
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            help="Only machines of the fleet with this label, e.g. gpu=a100 or host=NAME; repeatable.",
            metavar="LABEL=VALUE",
        ),
    ] = None

    def fleet(self, replicate_hosts: int = 1) -> "FleetOptions":
        """Return the requested fleet; raise UsageError for flags that go only with a fleet."""
        from orchestrator.fleet.model import FleetOptions

        if self.on == LOCAL and (self.where or replicate_hosts > 1):
            raise UsageError("--where and --replicate-hosts choose among the machines of a fleet: they go with --on")
        pairs = [text.partition("=") for text in self.where or ()]
        if wrong := ["".join(parts) for parts in pairs if not (parts[0] and parts[2])]:
            raise UsageError(f"--where {wrong[0]}: expected a label and its value, e.g. gpu=a100")
        if self.on != LOCAL:
            from orchestrator.fleet.cluster import check_address

            check_address(self.on)
        where = tuple((name, value) for name, _, value in pairs)
        return FleetOptions(on=self.on, where=where, replicate_hosts=replicate_hosts)


@dataclass(frozen=True, kw_only=True)
class FleetFlags(PlaceFlags):
    """The flags of commands whose cases are distributed among machines."""

    replicate_hosts: Annotated[
        int,
        number(
            "--replicate-hosts",
            1,
            2,
            "Measure each case on this many machines, 1 (default) or 2, and report where they differ.",
            show_default=False,
        ),
    ] = 1

    @property
    def fleet_options(self) -> "FleetOptions":
        return self.fleet(self.replicate_hosts)
