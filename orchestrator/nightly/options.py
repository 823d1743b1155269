"""The options of a nightly run, and the facts that are fixed when it begins."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from orchestrator.catalog.version import FlavourName
from orchestrator.fleet.model import FleetOptions
from orchestrator.history.store import Store
from orchestrator.nightly import versions
from orchestrator.options import NIGHT_ROUNDS
from orchestrator.plan.request import suite_name

# These flags change what is measured or in which environment, in addition to device and engine.
DECISIVE = frozenset(
    (
        "--workload-folder", "--gpus", "--gpu-exclusive", "--lock-clocks", "--base", "--threads", "--cpuset",
        "--memory", "--judge", "--untuned-datasets", "--keep-xla-code",
    )
)  # fmt: skip
NOTHING = versions.ResolvedVersions(versions=(), names={})


@dataclass(frozen=True, kw_only=True)
class NightOptions:
    """The options given on the command line.

    `tfcompare run` receives `flags` as arguments and `variables` as environment variables.
    """

    history: Path
    names: tuple[str, ...]
    suite: str | None = None
    selected: tuple[str, ...] = ()
    own_workloads: Path | None = None
    flags: tuple[str, ...] = ()
    fleet: FleetOptions = field(default_factory=FleetOptions)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    rounds: int = NIGHT_ROUNDS
    limit_s: float = 6 * 3600.0
    again: bool = False
    # This is the date of a nightly run that a schedule began; otherwise its start gives the date.
    night: date | None = None
    # This is the time to find out why cases changed, and for nightlies that were not measured; 0 turns both off.
    backfill_s: float = 0.0
    keep_nightlies: int = 3
    # With these flags `tfcompare models` makes the table of saved models; without any, there is none.
    models: tuple[str, ...] = ()

    @property
    def suite_name(self) -> str:
        return suite_name(self.suite, self.own_workloads)

    def find_date(self, start: datetime) -> date:
        """Return the day of a nightly run that started then; one that is caught up belongs to the day it was due."""
        return self.night or start.astimezone().date()

    @property
    def device(self) -> FlavourName:
        flags = dict(list_flags(self.flags))
        return "gpu" if flags.keys() & {"--gpu", "--gpus", "--gpu-exclusive"} else "cpu"

    @property
    def identity(self) -> dict[str, Any]:
        """The options that make two nightly runs the same, as a Night records them."""
        flags = dict(list_flags(self.flags))
        return {
            "suite": self.suite_name,
            "targets": self.names,
            "device": self.device,
            "engine": flags.get("--engine", "auto"),
            "selected": self.selected,
            "flags": tuple(sorted(f"{flag} {value}".strip() for flag, value in flags.items() if flag in DECISIVE)),
        }


@dataclass(frozen=True, kw_only=True)
class NightContext:
    """The facts that are fixed when a nightly run begins."""

    store: Store
    host: str
    date: date
    started: datetime
    # If another machine measures, this is the id of the one that starts it.
    starter: str = ""
    # The processes that measure inherit this descriptor of the lock.
    lock: int | None = None
    # This identifies the boot of the machine.
    boot: str = ""
    warnings: tuple[str, ...] = ()
    # A nightly run is not judged if the history of this host cannot be that of one machine.
    is_judged: bool = True
    resolved: versions.ResolvedVersions = NOTHING


def list_flags(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each flag with its value, or with '' if it has none."""
    for index, word in enumerate(words):
        if word.startswith("--"):
            value = words[index + 1] if index + 1 < len(words) else ""
            yield word, "" if value.startswith("--") else value
