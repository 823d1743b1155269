"""Where the golden files are, and what was written to some of them."""

from pathlib import Path

from orchestrator.catalog.trust import Trust
from orchestrator.fleet.machines import FleetMachine, NamedFleet
from tests.support.builders import NEW, OLD, case
from tests.support.profiled import arm, function, profile, profiled

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
POWER = case("power", style="eager")
PROFILED = profiled(
    [arm(POWER, OLD, profile(function("call", own=8.0))), arm(POWER, NEW, None, "refused", "no such op")]
)
NAMED = NamedFleet(
    ssh=("ssh", "-p", "2222"),
    python="/opt/tfcompare/bin/python",
    machines=(FleetMachine(host="me@a", labels={"host": "a", "gpu": "a100"}),),
)
TRUSTED = {Path("/mine"): Trust(settings="0a1b", outside={"images": "/data/images"})}


def stream(name: str) -> Path:
    return GOLDEN / f"{name}.arrow"
