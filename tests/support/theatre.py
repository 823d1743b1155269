"""Runs that go on: what takes the place of their engines, and a run that began."""

from orchestrator.catalog import workloads
from orchestrator.engines import Outlook
from orchestrator.machine.host import host_facts
from orchestrator.results.run_folder import RunFolder
from tests.support.actors import Dressing, Part, Stage
from tests.support.builders import case, environment_facts, manifest, target

OPEN, DECIDED = case("power", style="eager"), case("power", style="function")


def noisy(number: int) -> float:
    return 10.0 * (2.5 if max(number, 1) % 2 else 0.4)


class Theatre:
    """An engine whose environments are played; its versions are the real ones of the plan."""

    def __init__(self, stage: Stage, identity: str = "") -> None:
        self.stage, self.identity, self.options = stage, identity, None

    def __call__(self, options) -> "Theatre":
        self.options = options
        return self

    def check(self) -> str:
        return "a theatre"

    def sweep(self) -> list[str]:
        return []

    def prepare(self, version, log) -> Dressing:
        facts = environment_facts(version=version.number, kind="venv", identity=self.identity, lock="", python="")
        return Dressing(self.stage, facts)

    def outlook(self, version) -> Outlook:
        return Outlook("ready", "ready")

    def close(self) -> None:
        pass


VERSIONS = ("1.14.0", "2.0.0")
STAGE = {(OPEN.label, "2.0.0"): Part(noisy)}


def dressed(run: RunFolder, sources: dict[str, str] | None = None, **host: str) -> RunFolder:
    """With the manifest of a run of this machine and these sources."""
    environments = {target(version): environment_facts(version, identity="") for version in VERSIONS}
    own = sources or workloads.source_hashes([workloads.all_workloads()["power"]])
    run.write_manifest(manifest(VERSIONS, host={**host_facts(), **host}, sources=own, environments=environments))
    return run
