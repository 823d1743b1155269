"""The course of a run that a fleet measures, from top to bottom: hosts, units, the measurement, the verdicts."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path

from pydantic import TypeAdapter

from orchestrator import contract, files
from orchestrator.bundled import find_own_number
from orchestrator.catalog import pinned
from orchestrator.catalog import workloads as suites
from orchestrator.errors import (
    ArmsDied,
    ContractBroken,
    EngineUnavailable,
    EnvironmentFailed,
    Interrupted,
    NothingSelected,
    TfCompareError,
    UsageError,
)
from orchestrator.fleet.arrive import Arrivals, find_hosts
from orchestrator.fleet.cluster import SLOT, connect_cluster
from orchestrator.fleet.dispatch import Dispatch
from orchestrator.fleet.machines import open_machines, read_fleet
from orchestrator.fleet.model import (
    EXISTING,
    Contents,
    Fleet,
    FleetNode,
    FleetOptions,
    HostReport,
    MeasureUnit,
    SentFolder,
    UnitAnswer,
    UnitTask,
)
from orchestrator.fleet.place import choose_fleet_engine, find_host_obstacle, find_misfit, find_mismatch
from orchestrator.fleet.replicas import REPLICA_LINE_STARTS, describe_replicas
from orchestrator.fleet.roster import ASKING_S, PATIENCE_S, Roster, UnitJob
from orchestrator.fleet.units import Unit, divide_run, find_sending_s, request
from orchestrator.measure.forecast import list_outside
from orchestrator.measure.run import Done
from orchestrator.measure.session import make_manifest, open_session, pin_workloads
from orchestrator.model import Finished, LargeFile, list_arms
from orchestrator.plan.planning import plan_elsewhere
from orchestrator.plan.request import PlannedRun, RunOptions
from orchestrator.results.evaluation import judge_run
from orchestrator.results.exit_error import find_error
from orchestrator.results.find_runs import RUNS
from orchestrator.results.run_folder import RunFolder
from orchestrator.results.sealed import require_seal
from orchestrator.terminal.counts import format_count, name_some
from orchestrator.terminal.view import View

TASK = TypeAdapter(UnitTask)
REPLICAS = "replicas"
# Units with these exit codes measured what they could; the rest would also fail on another host.
MEASURED = (
    0,
    NothingSelected.exit_code,
    EnvironmentFailed.exit_code,
    ArmsDied.exit_code,
    ContractBroken.exit_code,
)
# These texts say how the work of the fleet ended, and nothing about rounds.
OF_FLEET = re.compile(r"interrupted|an error ended the run|.* could not be measured")
# A line names at most this many hosts.
MOST_HOSTS = 20
OpenFleet = Callable[[str, View], AbstractContextManager[Fleet]]
NO_SLOTS = (
    f"no machine of the cluster takes units: start nodes with --resources='{{\"{SLOT}\": 1}}', "
    "or with `tfcompare fleet up`"
)


@dataclass(frozen=True, kw_only=True)
class FleetRequest:
    """The options of a run on a fleet: all that is needed to continue it."""

    options: RunOptions
    fleet: FleetOptions


REQUEST = TypeAdapter(FleetRequest)
# The address of an index may contain a login, so it is never stored.
SECRET = {"options": {"environments": {"index_url"}}}


@contextmanager
def join(on: str, view: View, work: MeasureUnit | None = None) -> Iterator[Fleet]:
    """Join the machines that `tfcompare fleet up` named, or the cluster that `on` names.

    `work` replaces what a host of a cluster does with a unit, so that a benchmark can measure everything around it.
    """
    named = read_fleet() if on == EXISTING and not os.environ.get("RAY_ADDRESS") else None
    if named:
        with open_machines(named) as machines:
            yield machines
    else:
        with connect_cluster(on, view, work) as cluster:
            yield cluster


class HostRules:
    """The rules that decide which machines belong to a fleet."""

    def __init__(self, fleet: FleetOptions, engine: str) -> None:
        self._fleet = fleet
        self._tool = find_own_number()
        self.engine = engine

    def admit(self, node: FleetNode, report: HostReport) -> str:
        if lacking := find_mismatch(node, self._fleet.where):
            return f"--where: it lacks {lacking}"
        if obstacle := find_host_obstacle(report, self._tool, contract.FINGERPRINT):
            return obstacle
        if self.engine != "auto" and (silent := report.engines.get(self.engine, "it is unknown there")):
            return f"--engine {self.engine}: {silent}"
        return ""


class RunRules(HostRules):
    """The rules that decide which hosts get which units of a run, and which of their answers are accepted."""

    def __init__(self, planned: PlannedRun, fleet: FleetOptions) -> None:
        super().__init__(fleet, planned.options.engine)
        self._planned = planned
        self.hosts = 1
        self.workloads: tuple[Contents, SentFolder] = {}, SentFolder()
        # The keys are the numbers of the copies. If two hosts measure each case, each copy is a separate run.
        self.arrivals: dict[int, Arrivals] = {}

    def suits(self, unit: Unit, report: HostReport) -> str:
        options = self._planned.options
        selection, environments = self._planned.selection, options.environments
        arms = list_arms(unit.cases, selection.targets, unit.claims, environments.device)
        named = {arm.target.name for arm in arms}
        versions = [version for version in selection.versions if version.name in named]
        return find_misfit(versions, report, gpu=environments.gpu, force=environments.force)

    def request(self, job: UnitJob) -> tuple[bytes, Contents]:
        options = request(job.unit, self._planned, self.engine, self.hosts / self._fleet.replicate_hosts)
        contents, folder = self.workloads
        task = UnitTask(
            unit=job.unit.number,
            copy=job.copy,
            attempt=job.attempt,
            sent_every_s=find_sending_s(self.hosts),
            options=options,
            workloads=folder,
        )
        return TASK.dump_json(task), contents

    def keep(self, job: UnitJob, files: Contents) -> None:
        # An error in them is reported when the answer of the unit has arrived.
        with suppress(ContractBroken):
            self.arrivals[job.copy].keep(job.unit, job.copy, job.attempt, files)

    def accept(self, job: UnitJob, report: HostReport, answer: UnitAnswer) -> str:
        if "manifest.json" not in answer.files or answer.end.exit_code not in MEASURED:
            return answer.end.error or "it sent no result"
        try:
            self.arrivals[job.copy].accept(job.unit, job.copy, job.attempt, report, answer.files)
        except ContractBroken as error:
            # An error in a result often follows from the error that ended the unit.
            return answer.end.error or error.headline
        return ""


def measure_on_fleet(planned: PlannedRun, options: FleetOptions, view: View, open_fleet: OpenFleet = join) -> Done:
    """Measure a planned run on a fleet, and judge what was measured."""
    path = planned.options.out or RUNS / planned.run
    RunFolder.refuse_taken(path)
    with open_fleet(options.on, view) as fleet:
        rules, roster = _choose_hosts(planned, options, fleet, view)
        with open_session(planned, path, view, of_fleet=rules.engine) as session:
            session = pin_workloads(session)
            run, plan = session.folder, session.plan
            rules.workloads = _read_workloads(run, plan.large)
            with files.writing(run.fleet, "choose another --output"):
                asked = FleetRequest(options=planned.options, fleet=options)
                files.replace(run.path, run.fleet, REQUEST.dump_json(asked, indent=1, exclude=SECRET) + b"\n", 0o600)
            session.begin()
            run.write_plan(plan)
            run.write_manifest(make_manifest(session.planned, {}, plan.large))
            return _measure(run, session.planned, options, rules, Dispatch(fleet, roster, rules, view), view)


def forecast_fleet(planned: PlannedRun, options: FleetOptions, view: View) -> list[str]:
    """Return what a run on a fleet would measure, and where, for `--dry-run`."""
    with join(options.on, view) as fleet:
        # The forecast must not depend on which machine answers first.
        rules, roster = _choose_hosts(planned, options, fleet, view, PATIENCE_S)
        units = divide_run(planned)
        lines = [_outline(planned, len(units), options.replicate_hosts)]
        for host in roster.members:
            assert host.report
            fitting = sum(not rules.suits(unit, host.report) for unit in units)
            labels = " ".join(f"{name}={value}" for name, value in sorted(host.node.labels.items()))
            what = f"{host.report.facts.get('cpu')}, {host.report.facts.get('usable_cores')} cores"
            gpus = ", ".join(gpu.title for gpu in host.report.gpus)
            lines.append(f"  {host.name}: {'; '.join(filter(None, (what, gpus, labels)))}; can measure {fitting} units")
        lines += [f"  {case.label}" for case in planned.selection.cases]
        return [*lines, *(f"  {line}" for line in list_outside(planned))]


def _outline(planned: PlannedRun, units: int, copies: int) -> str:
    cases, versions = len(planned.selection.cases), len(planned.selection.targets)
    each = "one host" if copies == 1 else "two hosts"
    return f"plan: {format_count(cases, 'case')} x {versions} versions in {format_count(units, 'unit')}, each on {each}"


def continue_on_fleet(path: Path, options: FleetOptions, view: View, open_fleet: OpenFleet = join) -> Done:
    """Measure what a run on a fleet still lacks: the cases that no host has measured."""
    run = RunFolder.open(path)
    asked = read_fleet_request(run)
    if asked is None:
        raise UsageError(f"{path} was measured on one machine: leave --on out to continue it there")
    require_seal(run, run.read_plan(), run.read_manifest())
    options = replace(asked.fleet, on=options.on, where=options.where or asked.fleet.where)
    with open_fleet(options.on, view) as fleet, run.hold():
        planned = _plan_again(run, asked.options, view)
        rules, roster = _choose_hosts(planned, options, fleet, view)
        if rules.engine != run.read_plan().engine:
            raise UsageError(f"{path} was measured on the engine {run.read_plan().engine}, which no host has now")
        rules.workloads = _read_workloads(run, run.read_plan().large)
        return _measure(run, planned, options, rules, Dispatch(fleet, roster, rules, view), view)


def _plan_again(run: RunFolder, options: RunOptions, view: View) -> PlannedRun:
    """Return the run as it was planned; raise UsageError if that can no longer be measured."""
    plan = run.read_plan()
    own = run.workloads if run.workloads.is_dir() else None
    planned = plan_elsewhere(replace(options, own_workloads=own, out=run.path), view)
    planned = replace(planned, run=plan.run, created=plan.created, seed=plan.seed)
    manifest = run.read_manifest()
    now = make_manifest(planned, {})
    if (planned.selection.cases, planned.selection.targets) != (plan.cases, plan.targets):
        raise UsageError(f"this tfcompare plans other cases or targets than {run.path} has; start a new run")
    if now.contract != manifest.contract or any(
        now.sources[name] != manifest.sources.get(name) for name in now.sources
    ):
        raise UsageError(f"workloads or tfcompare have changed since {run.path} was begun; start a new run")
    return planned


def list_hosts(options: FleetOptions, engine: str, view: View) -> list[tuple[str, HostReport]]:
    """Return the machines of a fleet that can measure on an engine, by name."""
    with join(options.on, view) as fleet:
        roster = Roster(fleet, HostRules(options, engine), view)
        # The choice of a machine must not depend on which one answers first.
        _ask(roster, options, PATIENCE_S)
        return sorted(((host.name, host.report) for host in roster.members if host.report), key=itemgetter(0))


def _ask(roster: Roster, options: FleetOptions, patience_s: float) -> tuple[HostReport, ...]:
    """Ask all machines to describe themselves; raise EngineUnavailable if none can measure."""
    roster.ask(patience_s)
    if not roster.reports:
        what = "no machine of the cluster can measure; see above" if roster.hosts else NO_SLOTS
        raise EngineUnavailable(f"--on {options.on}: {what}")
    return roster.reports


def _choose_hosts(
    planned: PlannedRun, options: FleetOptions, fleet: Fleet, view: View, patience_s: float = ASKING_S
) -> tuple[RunRules, Roster]:
    """Find the hosts of a run, and the engine that they measure on."""
    rules = RunRules(planned, options)
    roster = Roster(fleet, rules, view)
    reports = _ask(roster, options, patience_s)
    rules.engine = choose_fleet_engine(rules.engine, reports)
    for host in roster.members:
        if silent := host.report and host.report.engines.get(rules.engine):
            roster.leave_out(host, f"engine {rules.engine}: {silent}")
    rules.hosts = len(roster.members)
    names = name_some(sorted(host.name for host in roster.members), MOST_HOSTS)
    view.say(f"fleet: {format_count(rules.hosts, 'host')} ({names}), engine {rules.engine}")
    return rules, roster


def _read_workloads(run: RunFolder, large: Sequence[LargeFile]) -> tuple[Contents, SentFolder]:
    """Return the user's own workloads, which are sent with every unit; their data must be on the hosts already."""
    if not run.workloads.is_dir():
        return {}, SentFolder()
    if big := [file.name for file in large if not pinned.find_data_name(file)]:
        raise UsageError(
            f"{name_some(big)}: too large to be sent to other machines. Put it where all of them see it, "
            "and name that place in DATA"
        )

    def is_sent(name: str) -> bool:
        first, _, rest = name.partition("/")
        # A revision of the code has a place for the data as well.
        return (rest.partition("/")[0] if suites.REVISION.fullmatch(first) else first) != contract.DATA

    paths = {name: path for name, path in pinned.files(run.workloads) if is_sent(name)}
    return {name: path.read_bytes() for name, path in paths.items()}, SentFolder(
        folders=tuple(filter(is_sent, pinned.folders(run.workloads))),
        executable=tuple(name for name, path in paths.items() if path.stat().st_mode & 0o100),
    )


def _measure(
    run: RunFolder, planned: PlannedRun, options: FleetOptions, rules: RunRules, dispatch: Dispatch, view: View
) -> Done:
    copies = {number: _open_copy(run, number) for number in range(1, options.replicate_hosts + 1)}
    rules.arrivals = {number: Arrivals(copy, copy.read_plan(), copy.read_manifest()) for number, copy in copies.items()}
    measured = {number: find_hosts(copy) for number, copy in copies.items()}
    units = divide_run(planned)
    jobs = [
        UnitJob(
            unit,
            number,
            rules.arrivals[number].count_attempts(unit, number),
            measured_by=frozenset(
                hosts[case.label]
                for other, hosts in measured.items()
                for case in unit.cases
                if other != number and case.label in hosts
            ),
        )
        for unit in units
        for number in copies
        if not {case.label for case in unit.cases} <= measured[number].keys()
    ]
    if not jobs:
        raise NothingSelected(f"every case of {run.path} is measured; to confirm what it found, start a new run")
    view.say(_outline(planned, len(units), options.replicate_hosts))
    begun = time.monotonic()
    error: TfCompareError | None = None
    how, cut = "an error ended the run", True
    try:
        dispatch.measure(jobs)
        how, error = _describe_end(run, jobs, options)
        cut = False
    except EngineUnavailable as gone:
        how, error = str(gone), gone
    except KeyboardInterrupt:
        how, error = "interrupted", Interrupted(f"interrupted; to continue: {_resume(run, options)}")
    finally:
        for copy in copies.values():
            at_budget = bool(how) and error is None and not cut
            copy.record(Finished(how=how, seconds=time.monotonic() - begun, start_s=0.0, cut=cut, at_budget=at_budget))
            copy.sync_journal()
    if len(copies) > 1:
        _add_replica_notes(run, copies)
    evaluation = judge_run(run)
    return Done(evaluation, run.path, error or find_error(evaluation.arms, (), evaluation.broken))


def _open_copy(run: RunFolder, number: int) -> RunFolder:
    """Return the run of one copy of all cases; the first one is the run itself."""
    if number == 1:
        return run
    path = run.path / REPLICAS / str(number)
    if (path / "plan.json").exists():
        return RunFolder.open(path)
    copy = RunFolder.create(path)
    copy.write_plan(run.read_plan())
    copy.write_manifest(replace(run.read_manifest(), hosts=(), environments={}, workers={}))
    return copy


def _describe_end(run: RunFolder, jobs: Sequence[UnitJob], options: FleetOptions) -> tuple[str, TfCompareError | None]:
    """Return how a run ended, and the error if some units were not measured."""
    lacking = [job for job in jobs if not job.is_done]
    ends = [entry.how for entry in run.entries() if isinstance(entry, Finished)]
    hows = dict.fromkeys(how for how in ends if how and not OF_FLEET.fullmatch(how))
    if not lacking:
        return "; ".join(hows), None
    reasons: dict[str, list[str]] = {}
    for job in lacking:
        reasons.setdefault(job.reason, []).append(job.unit.title)
    told = [f"{name_some(names)}: {reason}" for reason, names in reasons.items()]
    count = f"{len(lacking)} of {format_count(len(jobs), 'unit')} could not be measured"
    error = EngineUnavailable(count, f"`{_resume(run, options)}` tries them again", detail="\n".join(told))
    return "; ".join((*hows, count)), error


def _resume(run: RunFolder, options: FleetOptions) -> str:
    return f"tfcompare run --resume {run.path} --on {options.on}"


def _add_replica_notes(run: RunFolder, copies: Mapping[int, RunFolder]) -> None:
    """Compare what the two hosts of each case found, and add it to the notes of the run, which every report shows."""
    manifest = run.read_manifest()
    # The new notes replace those from before the run was continued, and any that a host has made up.
    others = (note for note in manifest.notes if not note.startswith(REPLICA_LINE_STARTS))
    run.write_manifest(replace(manifest, notes=(*others, *describe_replicas(*copies.values()))))


def read_fleet_request(run: RunFolder) -> FleetRequest | None:
    """Return the options of a run that a fleet measured, or None if no fleet did."""
    try:
        data = files.read(run.path, run.fleet, 2**26, names=None)
        return REQUEST.validate_json(data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{run.fleet} cannot be used: {str(error).splitlines()[0]}") from error
