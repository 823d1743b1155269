"""The course of a run, from top to bottom: the request, what it requires, the measurement, the verdicts."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version as installed_version
from pathlib import Path

from orchestrator.catalog import pinned
from orchestrator.catalog import workloads as suites
from orchestrator.catalog.gpu_support import NO_CARDS, Fitting
from orchestrator.catalog.lock_on_demand import provide
from orchestrator.engines import Engine, Environment
from orchestrator.engines.choose import choose_engine
from orchestrator.errors import EngineUnavailable, Interrupted, TfCompareError
from orchestrator.machine.host import host_facts, moment
from orchestrator.measure import alternative
from orchestrator.measure.prepare_run import pin_workloads, prepare_somewhere, workload_folder
from orchestrator.measure.rounds import Ledger, Measurement, Stretch
from orchestrator.measure.workers import Crew
from orchestrator.model import Comparison, Ended, Finished, Machine, Manifest, Plan, control_of
from orchestrator.plan.gpus import fit
from orchestrator.plan.pairs import TREND_FROM
from orchestrator.plan.request import Options, PlannedRun, ask
from orchestrator.results.comparison import judge_run
from orchestrator.results.exit_error import verdict_on
from orchestrator.results.rundir import RunDir
from orchestrator.terminal.progress import View
from workloads import contract

# Half a second of building, warming up and calls; measured on two cores with the quick suite. A process or a container
# of its own imports TensorFlow first.
REPLICATE_S, ISOLATED_S = 0.6, 3.0
# A worker that has imported TensorFlow, and what its replicate adds: 0.22 to 0.36 and 0.1 to 0.2 were seen.
RESIDENT_GB = 0.5
# What has no process of its own to start, or no container.


@dataclass(frozen=True)
class Done:
    """A judged run, and the error that determines its exit code."""

    comparison: Comparison
    path: Path
    error: TfCompareError | None


def run(options: Options, view: View) -> Done:
    options, asked = fit(options, ask(replace(options, versions=provide(options.versions, view.say))))
    name, engine = choose_engine(options.engine, options.isolation, options.environments, view.say)
    with ExitStack() as held:
        held.callback(engine.close)
        return _run(options, asked, name, engine, view, held)


def _run(options: Options, asked: PlannedRun, name: str, engine: Engine, view: View, held: ExitStack) -> Done:
    plan = replace(asked.plan, engine=name)
    directory = RunDir.create(options.out or Path("runs") / plan.run)
    held.enter_context(directory.hold())
    directory.write_plan(plan)
    view.say(outline(plan))
    for note in asked.fitting.notes:
        view.say(f"note: {note}")
    asked = pin_workloads(replace(asked, plan=plan), options.own_workloads, directory, view.say)
    name, environments, failures = prepare_somewhere(
        options, asked.versions, name, engine, directory, view, held,
        enough=lambda ready: alternative.can_compare(plan, ready),
    )  # fmt: skip
    plan = replace(asked.plan, engine=name)
    directory.write_plan(plan)
    baseline = asked.versions[0].number
    if options.control and baseline in environments:
        environments[control_of(baseline)] = environments[baseline]
    directory.write_manifest(make_manifest(options, asked, environments))
    own = workload_folder(plan, directory, held)
    error = conduct(plan, environments, directory, view, own, first_stretch(plan), Ledger(), asked.fitting)
    comparison = judge_run(directory)
    return Done(comparison, directory.path, error or verdict_on(comparison, list(failures.values())))


def outline(plan: Plan) -> str:
    rounds = f"{plan.looks[0]} to {plan.looks[-1]} rounds" if len(plan.looks) > 1 else f"{plan.looks[0]} rounds"
    what = f"{len(plan.cases)} cases x {len(plan.versions)} versions"
    if plan.claims:
        what = f"{len(plan.claims)} claims, {len(plan.arms())} arms in {len(plan.versions)} versions"
    return f"plan: {what}, {rounds}, {_minutes(plan)} min once the environments are there{_memory(plan)}"


def _minutes(plan: Plan) -> str:
    """Estimate how long the run takes.

    A replicate that a claim names takes milliseconds or half a minute, so with claims only the budget is known.
    """
    if plan.claims and plan.budget_s:
        return f"at most {_in_minutes(plan.budget_s)}"
    each = REPLICATE_S if plan.isolation == "fork" else ISOLATED_S
    took = (len(plan.arms()) * (looks + 1) * each for looks in (plan.looks[0], plan.looks[-1]))
    told = (_in_minutes(min(one, plan.budget_s or one)) for one in took)
    return f"about {' to '.join(dict.fromkeys(told))}"


def _in_minutes(seconds: float) -> str:
    return f"{max(seconds / 60, 0.1):.{0 if seconds >= 600 else 1}f}"


def _memory(plan: Plan) -> str:
    """Estimate the memory that many versions take at the same time. Return '' for a few versions."""
    resident = len({version for _, version in plan.arms()})
    if plan.isolation != "fork" or resident < TREND_FROM:
        return ""
    needed_gb, available_mb = resident * RESIDENT_GB, moment()["available_mb"]
    told = f"; a worker a version and its replicate take about {needed_gb:.0f} GB of memory"
    if not isinstance(available_mb, int) or needed_gb * 1024 < available_mb:
        return told
    return f"{told}, WHERE {available_mb / 1024:.0f} GB ARE FREE: take fewer versions at a time"


def make_manifest(options: Options, asked: PlannedRun, environments: dict[str, Environment]) -> Manifest:
    return Manifest(
        tool=installed_version("tfcompare"),
        contract=contract.FINGERPRINT,
        command=options.command,
        host=host_facts(),
        sources=suites.source_hashes(list(asked.workloads.values())),
        environments={version: environment.facts for version, environment in environments.items()},
        workers={},
        notes=asked.fitting.notes,
    )


def first_stretch(plan: Plan) -> Stretch:
    return Stretch(cases=plan.cases, looks=plan.looks, budget_s=plan.budget_s, seed=plan.seed)


def conduct(
    plan: Plan,
    environments: dict[str, Environment],
    directory: RunDir,
    view: View,
    own_workloads: Path | None,
    stretch: Stretch,
    ledger: Ledger,
    fitting: Fitting = NO_CARDS,
) -> TfCompareError | None:
    """Start the workers, measure, and end the workers whatever happens; return the error that cut it short."""
    begun = time.monotonic()
    isolated = environments if plan.isolation != "fork" else ()
    crew = Crew(plan, environments, directory, own_workloads, view.say, isolated, fitting)
    how, cut = "an error ended the run", True
    error: TfCompareError | None = None
    directory.record(Machine(when="begin", readings=moment()))
    try:
        for version in environments:
            view.preparing(version, "starting its worker")
        ready = crew.start_all()
        begun = time.monotonic()
        manifest = directory.read_manifest()
        workers = {version: answer.facts for version, answer in ready.items()}
        directory.write_manifest(replace(manifest, workers={**manifest.workers, **workers}))
        slow_starts = frozenset(version for version in fitting.slow_starts if version in ready)
        measurement = Measurement(
            plan, crew, directory, view, lambda: judge_run(directory, at_look=True), stretch, ledger, slow_starts
        )
        how = measurement.measure()
        cut = False
        crew.dismiss()
    except EngineUnavailable as gone:
        how, error = str(gone), gone
    except KeyboardInterrupt:
        how, error = "interrupted", Interrupted("interrupted")
    finally:
        crew.kill()
        directory.record(Machine(when="end", readings=moment()))
        directory.record(Finished(how=how, seconds=time.monotonic() - begun, cut=cut))
    if error is None:
        return None
    if not any(isinstance(entry, Ended) and entry.outcome == "measured" for entry in directory.entries()):
        raise error
    return type(error)(f"{error}; what was measured before is kept: tfcompare report {directory.path}")


def forecast(options: Options, say: Callable[[str], None]) -> list[str]:
    """Describe in lines what a run would do; nothing is built, installed or measured."""
    options, asked = fit(options, ask(replace(options, versions=provide(options.versions, say))))
    _, engine = choose_engine(options.engine, options.isolation, options.environments, say)
    lines = [outline(asked.plan), *(f"  {match}" for match in asked.fitting.matches)]
    lines += [f"  {version.number}: {engine.outlook(version)}" for version in asked.versions]
    lines += [f"  {case.label}" for case in asked.plan.cases]
    if options.own_workloads and not all(workload.builtin for workload in asked.workloads.values()):
        lines += [f"  {note}" for note in pinned.noted(pinned.divide(options.own_workloads)[1])]
    return lines
