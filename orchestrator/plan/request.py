"""The request for a run, checked against what exists before any work starts."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import catalog
from orchestrator.catalog import changed, pinned, program, variables
from orchestrator.catalog import workloads as suites
from orchestrator.catalog.architectures import read_number_pair
from orchestrator.catalog.claims import BUDGETS_S, cases_of
from orchestrator.catalog.gpu_support import NO_GPUS, GpuSupport
from orchestrator.catalog.revisions import check_revisions
from orchestrator.catalog.selectors import MARGIN, select_cases
from orchestrator.catalog.version import Version
from orchestrator.catalog.workloads import Suite
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.metrics import METRICS, OF_PROGRAMS, USUAL, USUAL_ON_GPU, choose_metrics, with_output
from orchestrator.model import (
    Arm,
    Case,
    Claim,
    Isolation,
    Judge,
    LargeFile,
    Metric,
    Pair,
    Pairing,
    Plan,
    Target,
    Workload,
    list_arms,
)
from orchestrator.options import VENV, EngineOptions
from orchestrator.plan.pairs import (
    ALPHA,
    FURTHER_LOOKS,
    LOOKS,
    choose_looks,
    plan_pairs,
    plan_program_pairs,
)
from orchestrator.plan.shards import take_shard


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options given on the command line."""

    # Targets are kept as the user wrote them.
    versions: tuple[str, ...] = ()
    # If this is None, the cases are those of `own_workloads`, or else of the default suite.
    suite: str | None = None
    selected: tuple[str, ...] = ()
    # A shard is one part of the cases, given as its number and the number of parts. The others are for other machines.
    shard: tuple[int, int] | None = None
    own_workloads: Path | None = None
    engine: str = "auto"
    environments: EngineOptions = field(default_factory=EngineOptions)
    out: Path | None = None
    rounds: int | None = None
    # If set, the run may have other looks than the usual ones. It is not set for parts of a run, which need the same
    # looks.
    prolong: bool = True
    budget_s: float | None = None
    # If set, a program is measured to the end of its budget, even if nothing more can be decided.
    keep_going: bool = False
    margin: float = MARGIN
    # The user named these margins of metrics.
    margins: dict[Metric, float] = field(default_factory=dict)
    control: bool = False
    pairing: Pairing = "first"
    threads: tuple[int, int] | None = None
    untuned_datasets: bool = False
    timeout_s: float = 600.0
    seed: int | None = None
    isolation: Isolation = "fork"
    claims: tuple[Claim, ...] = ()
    hash_data: bool = False
    # A program in `own_workloads` may be measured instead of workloads. These are its words and the packages it needs.
    program: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    # The keys are the places where the program sees its data.
    data: Mapping[str, Path] = field(default_factory=dict)
    # The user allows `own_workloads` to use these places outside of it. The keys are their places in the folder's copy.
    outside: Mapping[str, Path] = field(default_factory=dict)
    # These are compared in addition to times. If this is None, the usual metrics are compared.
    metrics: tuple[str, ...] | None = None
    # Gates also need these metrics, for which no rounds are measured.
    of_gates: tuple[str, ...] = ()
    # Rounds are also measured for the verdicts on these metrics.
    decided: tuple[Metric, ...] = ()
    judge: Judge = "wall"
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selection:
    """The arms to measure and the ratios to report; `targets` are the versions, including the control arm."""

    versions: tuple[Version, ...]
    targets: tuple[Target, ...]
    cases: tuple[Case, ...]
    pairs: tuple[Pair, ...]
    budget_s: float | None


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """The options, checked against what exists before any work starts; `freeze` makes a plan from them."""

    options: RunOptions
    selection: Selection
    workloads: dict[str, Workload]
    run: str
    created: datetime
    seed: int
    fitting: GpuSupport = NO_GPUS

    @property
    def looks(self) -> tuple[int, ...]:
        if self.options.rounds:
            return (self.options.rounds,)
        return choose_looks(self.selection.pairs) if self._is_whole else LOOKS

    @property
    def _is_whole(self) -> bool:
        """Whether the run is not part of another run; all parts of a run need the same looks."""
        return self.options.prolong and not self.options.shard

    @property
    def most_rounds(self) -> int:
        """The number of rounds that the pilot may plan within the budget; 0 if it is limited to those of the looks."""
        prolonged = self._is_whole and self.selection.budget_s and not self.options.rounds
        return FURTHER_LOOKS[-1] if prolonged else 0

    def isolate(self, engine: str) -> Isolation:
        """Return how replicates are isolated from each other on this engine."""
        if not self.options.environments.exclusive:
            return self.options.isolation
        # Each replicate has its own worker, so that everything that holds the GPU ends before the next one begins.
        return "process" if engine == VENV else "container"

    def arms(self) -> tuple[Arm, ...]:
        """Return the arms to measure."""
        options = self.options
        return list_arms(self.selection.cases, self.selection.targets, options.claims, options.environments.device)

    def freeze(self, engine: str, large: tuple[LargeFile, ...] = ()) -> Plan:
        """Return the plan. The engine is the one that made the environments, which may not be the requested one."""
        options, selection = self.options, self.selection
        metrics, outputs = find_metrics(options)
        return Plan(
            run=self.run,
            created=self.created,
            suite=suite_name(options.suite, options.own_workloads),
            engine=engine,
            device=options.environments.device,
            targets=selection.targets,
            cases=selection.cases,
            pairs=selection.pairs,
            looks=self.looks,
            alpha=ALPHA,
            margin=options.margin,
            margins=options.margins,
            judge=options.judge,
            budget_s=selection.budget_s,
            seed=self.seed,
            threads=options.threads,
            untuned_datasets=options.untuned_datasets,
            keeps_xla_code=options.environments.keeps_xla_code,
            timeout_s=options.timeout_s,
            isolation=self.isolate(engine),
            cpus=options.environments.cpus,
            memory_mb=options.environments.memory_mb,
            runtime=options.environments.runtime,
            claims=options.claims,
            gpus=tuple(gpu.key for gpu in self.fitting.gpus),
            exclusive=options.environments.exclusive,
            lock_mhz=options.environments.lock_mhz,
            large=large,
            definitions=tuple(version.changes.definition for version in selection.versions if version.changes),
            program=options.program,
            requirements=options.requirements,
            metrics=metrics,
            decides=tuple(metric for metric in metrics if options.metrics is not None and METRICS[metric].of_openings),
            outputs=outputs,
            most_rounds=self.most_rounds,
        )


def find_metrics(options: RunOptions) -> tuple[tuple[Metric, ...], bool]:
    """Return what is judged in addition to times, and whether results are compared; claims name what they compare."""
    if options.metrics is not None:
        return choose_metrics(options.metrics)
    if options.claims:
        return (), any(claim.returns for claim in options.claims)
    of_cases = USUAL_ON_GPU if options.environments.device == "gpu" else USUAL
    usual, outputs = (OF_PROGRAMS, False) if options.program else (of_cases, True)
    return choose_metrics((*with_output(usual, outputs=outputs), *options.of_gates))


def check_request(options: RunOptions, fewest: int = 2) -> PlannedRun:
    """Validate the options and return the planned run.

    Every mistake in the options is found here. `fewest` is the smallest number of versions that makes sense.
    """
    check_judge(options.judge, gpu=options.environments.gpu, metrics=options.metrics or ())
    workloads = program.find_measurable(options.program, options.requirements, options.own_workloads, options.data)
    selection = _of_claims(options) if options.claims else _of_cases(options, workloads, fewest)
    if options.threads:
        _check_threads(options.threads, selection.versions, dict(options.environments.variables))
    measured = {name: workloads[name] for name in dict.fromkeys(case.workload for case in selection.cases)}
    for name, workload in measured.items():
        suites.check_syntaxes(workload, selection.versions)
        if options.own_workloads and not workload.builtin:
            folder, outside = options.own_workloads, options.outside
            # This refuses links that lead out of the folder and are not allowed.
            pinned.divide_files(folder, outside)
            if workload.path.name in outside:
                raise UsageError(
                    f"{workload.path}: a workload must not be a link out of its folder; copy the file into {folder}"
                )
            measured[name] = workload if options.program else suites.check_data(workload, folder, outside)
    check_revisions(selection.versions, options.own_workloads, measured, selection.cases, options.program)
    created = datetime.now(UTC).replace(microsecond=0)
    return PlannedRun(
        options=options,
        selection=selection,
        workloads=measured,
        run=f"{created:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
        created=created,
        seed=secrets.randbelow(2**31) if options.seed is None else options.seed,
    )


def check_judge(judge: str, *, gpu: bool, metrics: Collection[str] = ()) -> None:
    """Raise UsageError if CPU time says nothing, or if a metric does not go with it."""
    if judge == "cpu" and gpu:
        raise UsageError("--judge cpu: what a GPU computes takes no CPU time; leave it out")
    if judge == "cpu" and "cpu" in metrics:
        raise UsageError("--metric cpu: with --judge cpu, that is what `time` is; leave one of the two out")


def _check_threads(threads: tuple[int, int], versions: tuple[Version, ...], inherited: Mapping[str, str]) -> None:
    """Refuse threads that have no effect in a version, or that would undo a variable of a target."""
    own = {version.name: version.variables for version in versions} | {"your shell (--inherit-env)": inherited}
    if undone := [f"{name} of {place}" for place, names in own.items() for name in variables.OF_THREADS & names.keys()]:
        raise UsageError(f"--threads would overwrite {', '.join(sorted(undone))}; leave out one of the two")
    if not any(threads):
        return
    numbered = [version for version in versions if version.number]
    if deaf := [version.name for version in numbered if read_number_pair(version.number) < (1, 14)]:
        raise UsageError(
            f"--threads has no effect in TensorFlow {', '.join(deaf)}; leave that version out, or limit the CPUs of "
            "all versions with --cpuset instead"
        )


def suite_name(named: str | None, own_workloads: Path | None) -> str:
    """Return the name that reports and the history give to what is measured.

    This is the name of a suite, or of the user's folder with a slash, which no suite has.
    """
    if named is None and own_workloads is not None:
        return f"{own_workloads.resolve().name}/"
    return named or suites.DEFAULT


def suite_of(options: RunOptions, workloads: Mapping[str, Workload]) -> Suite:
    """Return the named suite, or the user's own workloads as a suite.

    A built-in workload that is selected next to them keeps the cases that it has in the default suite.
    """
    suite = suites.suite(options.suite or suites.DEFAULT).on(options.environments.device)
    if options.suite or options.own_workloads is None:
        return suite
    own = tuple(name for name, workload in workloads.items() if not workload.builtin)
    name = suite_name(None, options.own_workloads)
    return replace(suite, name=name, summary="", cases=(*own, *suite.cases) if options.selected else own)


def _of_cases(options: RunOptions, workloads: dict[str, Workload], fewest: int) -> Selection:
    # A single version is enough for a control, which compares the machine with itself.
    versions = changed.resolve_targets(options.versions, 1 if options.control else fewest, options.environments.device)
    targets = tuple(Target(version.name) for version in versions)
    if options.control:
        targets = (targets[0], Target(targets[0].name, control=True), *targets[1:])
    if options.program:
        cases = tuple(Case(name, ()) for name in workloads)
        # Only the wall time of its steps is known.
        metrics: tuple[Metric, ...] = ("time",) if options.judge == "cpu" else ("time", "step")
        # Its running time is unknown, so it has no usual budget.
        pairs = plan_program_pairs(cases, targets, metrics, options.pairing)
        return Selection(versions, targets, cases, pairs, options.budget_s)
    suite = suite_of(options, workloads)
    cases = select_cases(options.selected, suite.cases, workloads)
    if not cases:
        raise NothingSelected("no case is selected; `tfcompare list workloads` shows what there is")
    if options.shard:
        cases = take_shard(cases, workloads, *options.shard)
    budget_s = _budget_s(options, suite.budget_s(len(cases), len(targets), options.environments.device))
    pairs = plan_pairs(cases, targets, workloads, options.decided, options.margins, options.pairing)
    return Selection(versions, targets, cases, pairs, budget_s)


def _of_claims(options: RunOptions) -> Selection:
    claims = [claim for claim in options.claims if options.environments.device in claim.devices]
    if not claims:
        raise NothingSelected(
            "none of these claims can be tested on this device; `tfcompare list claims` shows which can"
        )
    named = {version for claim in claims for version in claim.targets}
    released = [version.name for version in catalog.all_versions() if Target(version.name) in named]
    definitions = dict.fromkeys(text for claim in claims for text in claim.definitions)
    versions = changed.resolve_targets((*released, *definitions), 1, options.environments.device)
    pairs = dict.fromkeys(pair for claim in claims for pair in claim.pairs)
    targets = tuple(Target(version.name) for version in versions)
    budget_s = _budget_s(options, BUDGETS_S.get(options.suite or ""))
    return Selection(versions, targets, cases_of(claims), tuple(pairs), budget_s)


def _budget_s(options: RunOptions, usual: float | None) -> float | None:
    return options.budget_s or (None if options.rounds else usual)
