"""Looks for the causes of alarms once a nightly run is judged, within a time limit.

`tfcompare why` tests what differs between both versions, one change after another. If each night has another build,
`tfcompare bisect` measures the builds between the last good and the first bad one that no nightly run measured. If it
runs out of time, it continues the next night. Both are separate processes, like the measurement itself.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from math import log
from pathlib import Path
from time import monotonic

from orchestrator.bisect import state as searches
from orchestrator.bisect.candidates import nightlies_between
from orchestrator.bisect.search import PathPart
from orchestrator.catalog import lock_on_demand
from orchestrator.errors import TfCompareError
from orchestrator.history.alarms import state
from orchestrator.history.alarms.opened import compare_link
from orchestrator.history.model import Alarm, CauseFound, Key
from orchestrator.history.points import commit_of
from orchestrator.metrics.followed import TIME
from orchestrator.model import Target
from orchestrator.nightly.options import NightContext, NightOptions, list_flags
from orchestrator.nightly.stages import make_child
from orchestrator.nightly.subprocess_run import ChildEnd
from orchestrator.nightly.versions import is_nightly
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.view import View
from orchestrator.why.report import WhyAnswer, describe_findings
from orchestrator.why.run import read_outcome

# An alarm has this long for its question, with all installs, and half of it to measure.
WHY_LIMIT_S = 600.0
MOST_EXPLAINED = 3
ID = re.compile(r"[0-9a-f]{6}")
# These flags mean something else for a single case, are in the commands already, or do not exist in another command.
FLAGS_NOT_IN_SEARCHES = frozenset(("--budget",))
IN_COMMANDS = frozenset(("--engine", "--gpu", "--judge"))
PATH_FLAGS = frozenset(("--workload-folder", "--data", "--wheelhouse", "--ca-bundle"))
FLEET_FLAGS = frozenset(("--on", "--where"))
NOT_FOR_QUESTIONS = FLAGS_NOT_IN_SEARCHES | FLEET_FLAGS


def look_for_causes(
    options: NightOptions, night: NightContext, keys: Collection[Key], most_s: float, view: View
) -> tuple[str, ...]:
    """Ask why the largest cases of tonight changed, search the builds that no night measured, and record the answers.

    `keys` are the series that tonight's suite measured; for other series, tonight's flags may be wrong. An error or an
    interrupt ends only the search, since the nightly run is judged already and has to be reported.
    """
    try:
        _look(options, night, keys, most_s, view)
    except KeyboardInterrupt:
        return ("the search for the causes of alarms was not finished: interrupted",)
    except Exception as error:
        said = str(error) if isinstance(error, TfCompareError) else f"{type(error).__name__}: {error}"
        return (f"the search for the causes of alarms was not finished: {said}",)
    return ()


def _look(options: NightOptions, night: NightContext, keys: Collection[Key], most_s: float, view: View) -> None:
    limit_s = min(options.backfill_s, most_s)
    alarms = [
        alarm
        for alarm in state.current(night.store.events()[0])
        if alarm.key in keys and alarm.state in ("new", "confirmed") and not state.is_by_machine(alarm)
        # The file may come from elsewhere, and these texts become names of folders and of versions to install.
        if ID.fullmatch(alarm.id) and all(is_nightly(build) for build in (alarm.good, alarm.bad) if build)
    ]
    if not alarms or limit_s <= 0:
        return
    work = _CauseSearch(options, night, monotonic() + limit_s, view)
    tonight = [alarm for alarm in alarms if alarm.night == night.date and alarm.why and not alarm.findings]
    # Questions are answered only on this machine.
    tonight = tonight if options.fleet.is_local else []
    for alarm in sorted(tonight, key=lambda alarm: -abs(log(alarm.change.ratio)))[:MOST_EXPLAINED]:
        work.explain(alarm)
    for alarm in sorted(alarms, key=lambda alarm: alarm.opened):
        if not alarm.searched and not alarm.is_provisional and alarm.good and alarm.bad:
            work.search(alarm)


def add_flags(alarm: Alarm, options: NightOptions) -> Alarm:
    """Return an alarm whose commands have the flags of the nightly run, and work in any folder."""
    flags = []
    for flag, value in list_flags(options.flags):
        if flag in PATH_FLAGS:
            # The value of --data is NAME=PATH.
            name, equals, path = value.rpartition("=")
            value = f"{name}{equals}{Path(path).absolute()}"
        if flag not in IN_COMMANDS:
            flags.append((flag, value))

    def add(command: str, others: Collection[str] = FLAGS_NOT_IN_SEARCHES) -> str:
        words = [word for flag, value in flags if flag not in others for word in (flag, value) if word]
        return shlex.join([*shlex.split(command), *words]) if command else ""

    return replace(
        alarm,
        reproduce=add(alarm.reproduce),
        why=add(alarm.why, NOT_FOR_QUESTIONS),
        # If the build is the same, the command compares two runs instead.
        bisect=add(alarm.bisect) if alarm.bisect.startswith("tfcompare bisect") else alarm.bisect,
    )


@dataclass(frozen=True)
class _CauseSearch:
    options: NightOptions
    night: NightContext
    until: float
    view: View

    def explain(self, alarm: Alarm) -> None:
        path = self.night.store.runs / f"why-{alarm.id}"
        target = str(alarm.key.target)
        builds = {name: build for build, name in self.night.resolved.names.items()}
        # The builds before and after the change are the ends or, if the build is the same, the reference and the build.
        before, after = alarm.good or str(alarm.key.reference), alarm.bad or builds.get(target, target)
        # A night searches the nightlies between both builds by itself.
        words = ["why", before, after, *self._list_series_flags(alarm), "--no-search"]
        limit_s = min(WHY_LIMIT_S, self.until - monotonic())
        words += ["--budget", f"{max(limit_s / 2, 1.0):.0f}s", "--output", str(path), *self._flags(NOT_FOR_QUESTIONS)]
        self.view.say(f"alarm {alarm.id}: finding out why {after} differs from {before}")
        ended = self._run("a question", limit_s, [*words, "--format", "json"])
        try:
            findings = describe_findings(WhyAnswer(read_outcome(path)))
        except TfCompareError:
            self.view.say(f"alarm {alarm.id}: nothing was found out: {ended.last_line}")
            return
        if findings:
            self.night.store.record(CauseFound(at=datetime.now(UTC), alarm=alarm.id, findings=findings))

    def search(self, alarm: Alarm) -> None:
        if self._nightlies is None:
            return
        if not nightlies_between(alarm.good, alarm.bad, self._nightlies):
            # No nightly is between the good one and the bad one, so the range cannot become smaller.
            self.night.store.record(CauseFound(at=datetime.now(UTC), alarm=alarm.id, searched=True))
            return
        # Each range has a separate search: if one is not finished, the next night begins with the range it has left.
        path = self.night.store.runs / f"bisect-{alarm.id}-{alarm.good[-8:]}-{alarm.bad[-8:]}"
        words = [f"--good={alarm.good}", f"--bad={alarm.bad}", *self._list_series_flags(alarm)]
        # An existing search is continued if it was started with the same arguments.
        words += ["--output", str(path), *self._flags(FLAGS_NOT_IN_SEARCHES)]
        self.view.say(f"alarm {alarm.id}: searching the nightlies between {alarm.good} and {alarm.bad}")
        ended = self._run("a search", self.until - monotonic(), ["bisect", *words, "--format", "json"])
        try:
            self.night.store.record(_learn(alarm, path))
        except TfCompareError:
            self.view.say(f"alarm {alarm.id}: nothing was searched: {ended.last_line}")

    @cached_property
    def _nightlies(self) -> Sequence[str] | None:
        """The nightlies that the index has, or None if it does not answer."""
        try:
            return tuple(lock_on_demand.nightlies(self.options.device))
        except TfCompareError as error:
            self.view.say(f"no nightlies are searched: {error}")
            return None

    def _list_series_flags(self, alarm: Alarm) -> Iterable[str]:
        key = alarm.key
        engine = [] if "--engine" in dict(list_flags(self.options.flags)) else [f"--engine={key.engine}"]
        return [f"--case={key.case}", *engine, *([] if key.metric == TIME else ["--metric", key.metric])]

    def _flags(self, others: Collection[str]) -> list[str]:
        kept = ((flag, value) for flag, value in list_flags(self.options.flags) if flag not in others)
        return [word for flag, value in kept for word in (flag, value) if word]

    def _run(self, what: str, most_s: float, words: Sequence[str]) -> ChildEnd:
        limit_s = max(0.0, min(most_s, self.until - monotonic()))
        return make_child(self.options, self.night, limit_s, self.view, what).run(words)


def _learn(alarm: Alarm, path: Path) -> CauseFound:
    """Return what a search has found so far."""
    found = searches.read_state(path)
    result = found.search_result
    part = result.main or result.narrowest
    findings: tuple[str, ...] = ()
    if part is None and result.overall and not result.wanted:
        findings = (f"measured side by side, {alarm.bad} and {alarm.good} are not shown to differ",)
    return CauseFound(
        at=datetime.now(UTC),
        alarm=alarm.id,
        good=part.earlier if part else "",
        bad=part.later if part else "",
        commits=_compare_commits(path, found, part) if part else "",
        findings=findings,
        bisect=shlex.join(["tfcompare", "bisect", "--resume", str(path)]),
        searched=result.main is not None or not result.wanted,
    )


def _compare_commits(path: Path, found: searches.State, part: PathPart) -> str:
    """Return the address of a page with the commits between two versions that a search measured, or ''."""
    commits: dict[str, str] = {}
    for step in found.measured:
        # A damaged run is skipped, with the commits that only it names.
        with suppress(TfCompareError):
            manifest = RunFolder(path / str(step.run)).read_manifest()
            commits |= {version: commit_of(manifest, Target.parse(version)) for version in step.versions}
    return compare_link(commits.get(part.earlier, ""), commits.get(part.later, ""))
