"""The forecast of `--dry-run`: what a run would do, without doing it."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from orchestrator import files
from orchestrator.catalog import pinned
from orchestrator.catalog.version import Version
from orchestrator.catalog.workloads import is_inside
from orchestrator.engines import Engine, Outlook
from orchestrator.engines.choose import choose_engine
from orchestrator.measure.capacity import OpenAtOnce
from orchestrator.measure.outline import find_open_at_once, outline
from orchestrator.measure.resume import find_open_of_more, outline_more_rounds, plan_rounds
from orchestrator.measure.session import note_keras
from orchestrator.plan.request import PlannedRun
from orchestrator.results.find_runs import RUNS
from orchestrator.results.more_rounds import ResumeOptions
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.strict_json import pick
from orchestrator.terminal.view import View

SCHEMA = "tfcompare.forecast/1"


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The forecast of a run: what it would measure, in which environments, and for how long."""

    headline: str
    run: str
    folder: Path
    continues: bool
    engine: str
    device: str
    outlooks: Sequence[tuple[Version, Outlook]]
    cases: Sequence[str]
    looks: Sequence[int]
    budget_s: float | None
    open_at_once: OpenAtOnce
    notes: Sequence[str] = ()
    # These lines are about the GPUs, and how each version suits them.
    matches: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        yield self.headline
        yield from (f"  {match}" for match in self.matches)
        for text, versions in _group_by_text(self.outlooks).items():
            yield f"  {', '.join(versions)}: {text}"
        yield from (f"  {case}" for case in self.cases)
        yield from (f"  {note}" for note in self.notes)

    def as_object(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **pick(self, "run folder continues engine device cases looks budget_s"),
            "targets": [
                {"target": version.name, "state": outlook.state, "outlook": str(outlook)}
                for version, outlook in self.outlooks
            ],
            "open_at_once": pick(self.open_at_once, "arms compared most=capacity.arms limit=capacity.limit?"),
            "notes": [*self.matches, *self.notes],
        }


def forecast(planned: PlannedRun, view: View) -> Forecast:
    """Check what a new run would check before its first change, and return what it would do."""
    options, selection = planned.options, planned.selection
    name, engine = choose_engine(options.engine, options.isolation, options.environments, view)
    folder = options.out or RUNS / planned.run
    check_new_folder(folder)
    notes: list[str] = []
    if options.own_workloads and not all(workload.builtin for workload in planned.workloads.values()):
        notes = pinned.describe_large_files(pinned.divide_files(options.own_workloads, options.outside)[1])
        notes += [*list_outside(planned), *note_keras(planned)]
    return Forecast(
        headline=outline(planned, name),
        open_at_once=find_open_at_once(planned, name),
        run=planned.run,
        folder=folder,
        continues=False,
        engine=name,
        device=options.environments.device,
        outlooks=_outlooks(engine, selection.versions),
        cases=[case.label for case in selection.cases],
        looks=planned.looks,
        budget_s=selection.budget_s,
        notes=notes,
        matches=tuple(dict.fromkeys((*planned.fitting.notes, *map(str, planned.fitting.matches)))),
    )


def list_outside(planned: PlannedRun) -> list[str]:
    """Return one line per place outside of the user's workload folder that a run reads data from."""
    own = planned.options.own_workloads
    data = dict.fromkeys(place for workload in planned.workloads.values() for place in workload.data.values())
    return [f"reads {place}, which is outside of {own}" for place in data if own and not is_inside(place, own)]


def forecast_more(options: ResumeOptions, view: View) -> Forecast:
    """Check what continuing a run would check, and return what it would do."""
    with plan_rounds(options, view) as more:
        return Forecast(
            headline=outline_more_rounds(more),
            open_at_once=find_open_of_more(more),
            run=more.session.plan.run,
            folder=options.run,
            continues=True,
            engine=more.session.plan.engine,
            device=more.session.plan.device,
            outlooks=_outlooks(more.engine, more.versions),
            cases=[case.label for case in more.cases],
            looks=more.ahead.looks,
            budget_s=more.ahead.budget_s,
        )


def check_new_folder(path: Path) -> None:
    """Raise UsageError if no new run folder could be made here."""
    RunFolder.refuse_taken(path)
    parent = path if path.is_dir() else next(each for each in path.absolute().parents if each.exists())
    with files.writing(f"the run folder {path}", "choose another --output"):
        # Only an attempt shows it, because root may have permission to write where nothing can be created.
        os.rmdir(mkdtemp(prefix=".tfcompare-", dir=parent))


def _group_by_text(outlooks: Sequence[tuple[Version, Outlook]]) -> dict[str, list[str]]:
    """Return the numbers of the versions that have the same prospects, so that each reason is printed once."""
    versions: dict[str, list[str]] = {}
    for version, outlook in outlooks:
        versions.setdefault(str(outlook), []).append(version.name)
    return versions


def _outlooks(engine: Engine, versions: Sequence[Version]) -> list[tuple[Version, Outlook]]:
    return [(version, engine.outlook(version)) for version in versions]
