"""The course of an atlas: one unit after another, within a time, and then the causes of its largest steps."""

import hashlib
import shlex
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import contract, files
from orchestrator.atlas.figures import AtlasCause, AtlasFigures, AtlasRatio, cut
from orchestrator.atlas.gather import gather_figures
from orchestrator.atlas.state import (
    CAUSES,
    EARLIER,
    UNITS,
    AtlasQuestion,
    AtlasState,
    InstalledTarget,
    UnitRun,
    holds_atlas,
    read_atlas,
    require_atlas_seal,
    write_atlas,
)
from orchestrator.atlas.units import AtlasUnit, make_units, order_units
from orchestrator.bisect.run import DeduplicatingView, find_obstacle, find_unused_folder, resolve_paths
from orchestrator.bundled import find_own_number
from orchestrator.catalog.selectors import select_cases
from orchestrator.catalog.version import Version
from orchestrator.catalog.workloads import all_workloads, source_hashes
from orchestrator.engines import CPU_GB, GPU_GB, Engine
from orchestrator.engines.choose import choose_engine
from orchestrator.errors import (
    ContractBroken,
    EngineUnavailable,
    EnvironmentFailed,
    Interrupted,
    NothingSelected,
    TfCompareError,
    UsageError,
)
from orchestrator.images.removal import remove_installed
from orchestrator.machine.host import host_facts, is_here
from orchestrator.measure.resume import add_rounds
from orchestrator.measure.run import Done, plan_and_measure
from orchestrator.metrics import METRICS
from orchestrator.model import EnvironmentFacts
from orchestrator.options import VENV
from orchestrator.plan.planning import plan_run
from orchestrator.plan.request import RunOptions, suite_of
from orchestrator.results.evaluation import judge_run
from orchestrator.results.find_runs import PLAN
from orchestrator.results.more_rounds import ResumeOptions
from orchestrator.results.run_folder import RunFolder, refuse_strangers
from orchestrator.terminal.counts import format_count
from orchestrator.terminal.view import View
from orchestrator.upgrade.run import ask_for_cause
from orchestrator.why.report import WhyAnswer, describe_findings
from orchestrator.why.state import WhyQuestion

# After one of these, nothing more can be measured.
STOPS = (Interrupted, EngineUnavailable)
# A unit or a question with less time than this shows nothing.
LEAST_S, LEAST_WHY_S = 30.0, 120.0
WHY_S = 900.0
# A question of `why` installs about as many targets between its ends.
MOST_OF_WHY = 2
# This much stays free for results, logs and whatever else uses the disk.
RESERVE_GB = 3.0
GB = 10**9


@dataclass(frozen=True)
class AtlasActions:
    """The functions through which an atlas acts on the outside world; a test can replace them."""

    measure: Callable[[RunOptions, View], Done] = plan_and_measure
    resume: Callable[[ResumeOptions, View], Done] = add_rounds
    ask: Callable[[WhyQuestion, Path, View], WhyAnswer] = ask_for_cause
    remove: Callable[[str, str], str] = remove_installed
    find_free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free


@dataclass(frozen=True)
class AtlasOutcome:
    """An atlas as far as it was measured, and the error that determines its exit code."""

    state: AtlasState
    path: Path
    figures: AtlasFigures
    error: TfCompareError | None = None

    @property
    def open_units(self) -> int:
        runs = (self.state.runs.get(unit.name, UnitRun()) for unit in self.state.units)
        return sum(not run.is_done or bool(run.lacks) for run in runs)


def begin_atlas(question: AtlasQuestion, folder: Path | None, view: View) -> tuple[Path, AtlasState]:
    """Check the question, and return its folder and state; a folder that already holds it is continued."""
    created = datetime.now(UTC).replace(microsecond=0)
    folder = folder or Path("runs") / f"atlas-{created:%Y%m%d-%H%M%S}"
    run = replace(resolve_paths(replace(question.run, command=())), pairing="neighbours")
    question = replace(question, run=run)
    if holds_atlas(folder):
        return folder, resume_atlas(folder, question)
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty, and holds no atlas to continue; choose another --output")
    errors: dict[str, UsageError] = {}
    for text in question.releases:
        try:
            _resolve(text, run, view)
        except UsageError as error:
            errors[text] = error
    left_out = {text: error.headline for text, error in errors.items()}
    releases = tuple(text for text in question.releases if text not in errors)
    if len(releases) < 2:
        # A wrong option is an error of every release.
        raise next(
            iter(errors.values()),
            UsageError("an atlas needs two releases or more: name them, e.g. --releases 1.14,2.0,2.13"),
        )
    if question.against:
        _resolve(question.against, run, view)
    for text, reason in left_out.items():
        view.say(f"{text} is left out: {reason}")
    return folder, AtlasState(
        created=created,
        tool=find_own_number(),
        contract=contract.FINGERPRINT,
        host=host_facts(),
        sources=_hash_sources(run),
        question=replace(question, releases=releases),
        left_out=left_out,
        units=make_units(releases, question.against),
    )


def resume_atlas(folder: Path, question: AtlasQuestion | None = None, index_url: str | None = None) -> AtlasState:
    """Return the state of an atlas to continue, unless something that it depends on has changed."""
    refuse_strangers(folder)
    state = read_atlas(folder)
    require_atlas_seal(folder, state)
    if question is not None:
        measurable = tuple(text for text in question.releases if text not in state.left_out)
        is_same = len(question.releases) == len(measurable) + len(state.left_out)
        if not is_same or replace(question, releases=measurable).with_index(None) != state.question:
            raise UsageError(f"{folder} holds an atlas with different options; --resume {folder} continues it")
    if state.contract != contract.FINGERPRINT:
        raise UsageError(
            f"{folder} was measured under contract {state.contract}, and this tfcompare has {contract.FINGERPRINT}; "
            f"use tfcompare {state.tool}, or start a new atlas"
        )
    if state.sources != _hash_sources(state.question.run):
        raise UsageError(
            f"the workloads have changed since the atlas in {folder} began, and old and new figures cannot be "
            "compared: start a new atlas"
        )
    if not is_here(state.host):
        raise UsageError(
            f"{folder} was measured on another machine ({state.host.get('cpu')}): continue it there, or start an "
            "atlas of this machine, and show both with --figures"
        )
    url = question.run.environments.index_url if question else index_url
    return replace(state, question=state.question.with_index(url))


def _hash_sources(run: RunOptions) -> dict[str, str]:
    workloads = all_workloads(run.own_workloads)
    cases = select_cases(run.selected, suite_of(run, workloads).cases, workloads)
    return source_hashes([workloads[name] for name in dict.fromkeys(case.workload for case in cases)])


def measure_atlas(
    folder: Path, state: AtlasState, view: View, budget_s: float | None, actions: AtlasActions | None = None
) -> AtlasOutcome:
    """Measure units until all are decided or the time is over, then ask for causes; everything is kept."""
    atlas = _Atlas(folder, state, DeduplicatingView(view), actions or AtlasActions(), time.monotonic(), budget_s)
    with files.writing(f"the folder {folder}", "choose another --output"):
        for part in (UNITS, CAUSES, "logs"):
            (folder / part).mkdir(parents=True, exist_ok=True)
    error: TfCompareError | None = None
    with RunFolder(folder).hold():
        atlas.keep()
        try:
            atlas.measure()
        except STOPS as stop:
            if not atlas.state.runs:
                raise
            command = shlex.join(["tfcompare", "atlas", "--resume", str(folder)])
            error = type(stop)(f"{stop}\ncontinue with: {command}")
    runs = atlas.state.runs.values()
    if not error and runs and not any(run.rounds for run in runs):
        reason = next((run.failure for run in runs if run.failure), "no worker measured anything")
        error = EnvironmentFailed(f"no unit could be measured: {reason}")
    return AtlasOutcome(atlas.state, folder, gather_figures(folder, atlas.state), error)


def plan_atlas(state: AtlasState, view: View, actions: AtlasActions | None = None) -> list[str]:
    """Return what an atlas is going to do, in lines: units, cases, and the disk that it needs at once."""
    question = state.question
    run = replace(question.run, engine=state.engine or question.run.engine)
    largest = max(state.units, key=lambda unit: len(unit.targets))
    planned = plan_run(replace(run, versions=largest.targets), view)
    budget = planned.selection.budget_s
    left = [unit for unit in state.units if not state.runs.get(unit.name, UnitRun()).is_done]
    wanted = dict.fromkeys(text for unit in left for text in unit.targets)
    hours = f"; at most {len(left) * budget / 3600:.1f} h" if budget else ""
    releases = question.releases
    lines = [
        f"plan: {format_count(len(releases), 'release')} from {releases[0]} to {releases[-1]}, "
        f"{format_count(len(planned.selection.cases), 'case')}; {len(left)} of {len(state.units)} units to measure, "
        f"each a release with the one before it and {question.against or 'the newest'}{hours}"
    ]
    _, engine = choose_engine(run.engine, run.isolation, run.environments, view)
    with closing(engine):
        missing = [text for text in wanted if _is_missing(engine, text, run, view)]
        storage = engine.storage()
    each_gb = _size_gb(run)
    if storage and missing:
        free = (actions or AtlasActions()).find_free(_existing(storage[1])) / GB
        all_gb = len(missing) * each_gb
        at_once = max(len(set(missing).intersection(unit.targets)) for unit in left) * each_gb
        # What this atlas has installed can be removed again.
        if free + len(state.installed) * each_gb < at_once + RESERVE_GB:
            raise UsageError(
                f"the releases that are measured at once take about {at_once + RESERVE_GB:.0f} GB, and {storage[1]} "
                f"has {free:.0f} GB free: make room"
            )
        how = "" if all_gb + RESERVE_GB < free else "; they are installed, measured and removed in turn"
        lines.append(
            f"disk: the {len(missing)} releases to install need about {all_gb:.0f} GB and {free:.0f} GB are free{how}"
        )
    return lines


def _size_gb(run: RunOptions) -> float:
    return GPU_GB if run.environments.gpu else CPU_GB


def _existing(path: Path) -> Path:
    return next(each for each in (path, *path.absolute().parents) if each.exists())


def _resolve(text: str, run: RunOptions, view: View) -> Version:
    (version,) = plan_run(replace(run, versions=(text,)), view, fewest=1).selection.versions
    return version


def _is_missing(engine: Engine, text: str, run: RunOptions, view: View) -> bool:
    try:
        return engine.outlook(_resolve(text, run, view)).state == "to build"
    except (UsageError, EnvironmentFailed):
        return False


@dataclass
class _Atlas:
    folder: Path
    state: AtlasState
    view: View
    actions: AtlasActions
    begun: float
    budget_s: float | None

    @property
    def left_s(self) -> float:
        return float("inf") if self.budget_s is None else self.begun + self.budget_s - time.monotonic()

    @property
    def run(self) -> RunOptions:
        options = self.state.question.run
        return replace(options, engine=self.state.engine or options.engine)

    def keep(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]
        write_atlas(self.folder, self.state)

    def measure(self) -> None:
        # What is ready by now may have been installed by the user, after an attempt of this atlas that failed.
        _, missing = self._find_missing(self.state.installing)
        self.keep(installing=missing)
        self._retry_lacking()
        # What is not decided gets more rounds once every unit has some. A unit that made no progress is left.
        stuck: set[str] = set()
        while units := [unit for unit in self._list_open() if unit.name not in stuck]:
            for unit in units:
                if self.left_s < LEAST_S:
                    self.view.say(f"time is up; {format_count(len(self._list_open()), 'unit')} remain")
                    return
                before = self._count_rounds(unit)
                self._measure_unit(unit)
                if self._count_rounds(unit) == before:
                    stuck.add(unit.name)
        self._explain()

    def _count_rounds(self, unit: AtlasUnit) -> int:
        return self.state.runs.get(unit.name, UnitRun()).rounds

    def _list_open(self) -> tuple[AtlasUnit, ...]:
        runs = self.state.runs
        done = {name for name, run in runs.items() if run.is_done}
        return order_units(self.state.units, {name: run.rounds for name, run in runs.items()}, done)

    def _retry_lacking(self) -> None:
        """Let units whose missing targets can be installed by now be measured again; the old run is kept."""
        obstacles: dict[str, TfCompareError | None] = {}
        for unit in self.state.units:
            lacks = self.state.runs.get(unit.name, UnitRun()).lacks
            for text in lacks:
                if text not in obstacles:
                    try:
                        self._make_room(unit.targets)
                        obstacles[text] = find_obstacle(self.run, text, RunFolder(self.folder), self.view)
                    except EnvironmentFailed as error:
                        obstacles[text] = error
            if lacks and not any(obstacles[text] for text in lacks):
                self.keep(runs={name: run for name, run in self.state.runs.items() if name != unit.name})
                self._set_aside(unit)

    def _set_aside(self, unit: AtlasUnit) -> None:
        path = self.folder / UNITS / unit.name
        if path.is_dir():
            earlier = path.parent / EARLIER
            earlier.mkdir(exist_ok=True)
            path.rename(find_unused_folder(earlier, int(unit.name)))

    def _measure_unit(self, unit: AtlasUnit) -> None:
        self.view.say(f"unit {unit.name}: {', '.join(unit.targets)}")
        path = self.folder / UNITS / unit.name
        known = self.state.runs.get(unit.name, UnitRun())
        try:
            left_s = min(self.left_s, self._find_unit_budget(unit))
            budget_s = None if left_s == float("inf") else left_s
            engine, missing = self._find_missing(unit.targets)
            if missing and engine != VENV and (path / PLAN).is_file():
                # An image that is built again is another one, and does not continue the rounds of the first.
                if known.rounds:
                    self.view.say(f"unit {unit.name} keeps its {known.rounds} rounds: {', '.join(missing)} was removed")
                    self._keep_run(unit, replace(known, is_done=True))
                    return
                self._set_aside(unit)
            self._make_room(unit.targets)
            done, is_over = self._measure_or_continue(unit, path, budget_s)
        except STOPS:
            raise
        except TfCompareError as error:
            # The other units do not need what is missing here.
            self.view.say(f"unit {unit.name} is left out: {error.headline}")
            self._keep_run(unit, replace(known, failure=cut(error.headline)))
            return
        evaluation = done.evaluation
        environments = evaluation.manifest.environments
        facts = dict(zip(unit.targets, map(environments.get, evaluation.plan.targets), strict=False))
        self._record_installed(facts)
        is_cut = isinstance(done.error, (*STOPS, ContractBroken))
        rounds = sum(each.rounds for each in evaluation.comparisons)
        self._keep_run(
            unit,
            UnitRun(
                rounds=rounds,
                seconds=evaluation.seconds,
                # A unit that the budget did not end is finished: every case is decided, or no look is left.
                is_done=is_over or (not is_cut and not evaluation.ended_by_budget),
                failure="" if rounds or done.error is None else cut(done.error.headline),
                lacks=tuple(text for text, found in facts.items() if found is None),
            ),
        )
        if self.state.engine is None:
            self.keep(engine=evaluation.plan.engine)
        if done.error and isinstance(done.error, STOPS):
            raise done.error

    def _measure_or_continue(self, unit: AtlasUnit, path: Path, budget_s: float | None) -> tuple[Done, bool]:
        """Return the run of a unit with more rounds, and whether all that could be decided had been decided."""
        if (path / PLAN).is_file():
            more = ResumeOptions(run=path, budget_s=budget_s, environments=self.run.environments)
            try:
                return self.actions.resume(more, self.view), False
            except NothingSelected:
                return Done(judge_run(RunFolder.open(path)), path, None), True
        # An attempt that measured nothing has left this folder.
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        options = replace(self.run, versions=unit.targets, out=path, budget_s=budget_s)
        return self.actions.measure(options, self.view), False

    def _find_unit_budget(self, unit: AtlasUnit) -> float:
        planned = plan_run(replace(self.run, versions=unit.targets), self.view)
        return planned.selection.budget_s or self.left_s

    def _keep_run(self, unit: AtlasUnit, run: UnitRun) -> None:
        self.keep(runs={**self.state.runs, unit.name: run})

    def _find_missing(self, targets: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """Return the name of the engine, and the targets that it would have to install."""
        options = self.run
        name, engine = choose_engine(options.engine, options.isolation, options.environments, self.view)
        with closing(engine):
            return name, tuple(text for text in targets if _is_missing(engine, text, options, self.view))

    def _make_room(self, targets: Sequence[str], others: int = 0) -> None:
        """Remove releases that this atlas has installed, if the next ones have no room; note those to be installed.

        The `others`, a number of targets, are not known yet and will be installed as well.
        """
        options, size = self.run, int(_size_gb(self.run) * GB)
        _, engine = choose_engine(options.engine, options.isolation, options.environments, self.view)
        with closing(engine):
            storage = engine.storage()
            # The oldest installation goes first, and never one that is needed now.
            removable = [text for text in self.state.installed if text not in targets]
            while True:
                missing = [text for text in targets if _is_missing(engine, text, options, self.view)]
                if not missing and not others:
                    break
                needed = (len(missing) + others) * size + int(RESERVE_GB * GB)
                free = self.actions.find_free(_existing(storage[1])) if storage else needed
                if free >= needed:
                    break
                if not removable:
                    raise EnvironmentFailed(
                        f"{' and '.join(missing or targets)}: no room; it takes {needed / GB:.0f} GB with a reserve, "
                        f"and {free / GB:.0f} GB are free"
                    )
                self._remove(removable.pop(0))
        self.keep(installing=tuple(dict.fromkeys((*self.state.installing, *missing))))

    def _remove(self, text: str) -> None:
        own = self.state.installed[text]
        if reason := self.actions.remove(own.engine, own.identity):
            self.view.say(f"{text} stays: {reason}")
            return
        self.view.say(f"{text} is removed to make room")
        self.keep(installed={each: found for each, found in self.state.installed.items() if each != text})

    def _record_installed(self, facts: Mapping[str, EnvironmentFacts | None]) -> None:
        """Remember which environments this atlas has made, so that it removes these and no others."""
        installed = dict(self.state.installed)
        for text, found in facts.items():
            if found and text in self.state.installing:
                identity = Path(found.details["path"]).name if found.kind == VENV else found.identity
                installed[text] = InstalledTarget(engine=found.kind, identity=identity)
        waiting = tuple(text for text in self.state.installing if text not in installed)
        self.keep(installed=installed, installing=waiting)

    def _explain(self) -> None:
        """Ask why the largest steps occurred, the largest first, as long as there is time."""
        question = self.state.question
        figures = gather_figures(self.folder, self.state)
        texts = {release.name: text for release, text in zip(figures.releases, question.releases, strict=True)}
        asked = {(each.case, each.metric, each.older, each.newer) for each in self.state.causes}
        # No profile says why an import takes longer.
        steps = [step for step in figures.largest if not METRICS[step.metric].of_targets]
        for step in steps[: question.explained]:
            key = (step.case, step.metric, step.older, step.newer)
            if key in asked:
                continue
            if self.left_s < LEAST_WHY_S:
                return
            case, metric, older, newer = key
            # The name says which step it is, so that an interrupted question continues.
            folder = self.folder / CAUSES / hashlib.sha256(" ".join(key).encode()).hexdigest()[:12]
            try:
                self._make_room((texts[older], texts[newer]), others=MOST_OF_WHY)
                findings = tuple(map(cut, self._ask(step, texts[older], texts[newer], folder)))
            except EnvironmentFailed as error:
                # The next call may have more room, or an index that answers.
                self.view.say(f"why: {step.case} in {texts[newer]} stays open: {error.headline}")
                continue
            cause = AtlasCause(case=case, metric=metric, older=older, newer=newer, findings=findings)
            self.keep(causes=(*self.state.causes, cause))

    def _ask(self, step: AtlasRatio, older: str, newer: str, folder: Path) -> tuple[str, ...]:
        self.view.say(f"why: {step.case} in {newer} against {older}")
        run = replace(self.run, selected=(step.case,), suite=None, metrics=None, pairing="first", budget_s=None)
        asked = WhyQuestion(
            old=older, new=newer, run=run, budget_s=min(WHY_S, self.left_s), metric=step.metric, search=False
        )
        try:
            return describe_findings(self.actions.ask(asked, folder, self.view))
        except (*STOPS, EnvironmentFailed):
            raise
        except TfCompareError as error:
            return (f"the cause was not found: {error.headline}",)


def list_lost(figures: AtlasFigures) -> Sequence[str]:
    """Return the releases that could not be measured at all."""
    seen = {cell.release for cell in figures.cells if cell.outcome == "measured"}
    return [release.name for release in figures.releases if release.name not in seen]
