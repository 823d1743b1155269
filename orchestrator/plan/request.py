"""The request for a run, checked against what exists before any work starts."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import catalog
from orchestrator.catalog import workloads as suites
from orchestrator.catalog.claims import BUDGETS_S, cases_of
from orchestrator.catalog.gpu_support import NO_GPUS, Fitting
from orchestrator.catalog.selectors import MARGIN, select_cases
from orchestrator.catalog.version import Version
from orchestrator.catalog.workloads import Suite
from orchestrator.errors import NothingSelected, UsageError
from orchestrator.model import Case, Claim, Isolation, Pair, Plan, Target, Workload
from orchestrator.options import EngineOptions
from orchestrator.plan.pairs import ALPHA, LOOKS, plan_pairs


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options given on the command line."""

    versions: tuple[str, ...] = ()
    # Without one the cases of `own_workloads`, or else of the default suite.
    suite: str | None = None
    selected: tuple[str, ...] = ()
    own_workloads: Path | None = None
    engine: str = "auto"
    environments: EngineOptions = field(default_factory=EngineOptions)
    out: Path | None = None
    rounds: int | None = None
    budget_s: float | None = None
    margin: float = MARGIN
    control: bool = False
    threads: tuple[int, int] | None = None
    timeout_s: float = 600.0
    seed: int | None = None
    isolation: Isolation = "fork"
    claims: tuple[Claim, ...] = ()
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedRun:
    """The options, checked against what exists before any work starts.

    Its plan still has the engine that was asked for. The plan that is written has the one that made the environments.
    """

    options: RunOptions
    versions: tuple[Version, ...]
    workloads: dict[str, Workload]
    plan: Plan
    fitting: Fitting = NO_GPUS


@dataclass(frozen=True)
class Selection:
    """The arms to measure and the ratios to report; `targets` are the versions, including the control arm."""

    versions: tuple[Version, ...]
    targets: tuple[Target, ...]
    cases: tuple[Case, ...]
    pairs: tuple[Pair, ...]
    budget_s: float | None


def make_plan(options: RunOptions, fewest: int = 2) -> PlannedRun:
    """Validate the options and return the planned run.

    Every mistake in the options is found here. `fewest` is the smallest number of versions that makes sense.
    """
    workloads = suites.all_workloads(options.own_workloads)
    device = "gpu" if options.environments.gpu else "cpu"
    if options.claims:
        selection = _of_claims([claim for claim in options.claims if device in claim.devices], options.suite)
    else:
        selection = _of_suite(options, workloads, fewest)
    if any(options.threads or ()):
        _check_threads(selection.versions)
    created = datetime.now(UTC).replace(microsecond=0)
    plan = Plan(
        run=f"{created:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
        created=created,
        suite=suite_name(options.suite, options.own_workloads),
        engine=options.engine,
        device=device,
        versions=selection.targets,
        cases=selection.cases,
        pairs=selection.pairs,
        looks=(options.rounds,) if options.rounds else LOOKS,
        alpha=ALPHA,
        margin=options.margin,
        budget_s=options.budget_s or (None if options.rounds else selection.budget_s),
        seed=secrets.randbelow(2**31) if options.seed is None else options.seed,
        threads=options.threads,
        timeout_s=options.timeout_s,
        # A container each: whatever holds the GPU ends with it, before the next begins.
        isolation="container" if options.environments.exclusive else options.isolation,
        exclusive=options.environments.exclusive,
        cpus=options.environments.cpus,
        memory_mb=options.environments.memory_mb,
        claims=options.claims,
    )
    return PlannedRun(
        options, selection.versions, {case.workload: workloads[case.workload] for case in selection.cases}, plan
    )


def _check_threads(versions: tuple[Version, ...]) -> None:
    if deaf := [
        version.number for version in versions if tuple(map(int, catalog.minor(version.number).split("."))) < (1, 14)
    ]:
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
    suite = suites.suite(options.suite or suites.DEFAULT)
    if options.suite or options.own_workloads is None:
        return suite
    own = tuple(name for name, workload in workloads.items() if not workload.builtin)
    name = suite_name(None, options.own_workloads)
    return replace(suite, name=name, summary="", cases=(*own, *suite.cases) if options.selected else own)


def _of_suite(options: RunOptions, workloads: dict[str, Workload], fewest: int) -> Selection:
    # A version beside itself is a comparison too, of the machine with itself.
    versions = catalog.resolve(options.versions, 1 if options.control else fewest)
    suite = suite_of(options, workloads)
    cases = select_cases(options.selected, suite.cases, workloads)
    if not cases:
        raise NothingSelected("no case is selected; `tfcompare list workloads` shows what there is")
    targets = tuple(Target(version.number) for version in versions)
    if options.control:
        targets = (targets[0], Target(targets[0].number, control=True), *targets[1:])
    budget_s = suite.budget_s(len(cases) * len(targets))
    return Selection(versions, targets, cases, plan_pairs(cases, targets, workloads), budget_s)


def _of_claims(claims: list[Claim], suite: str | None) -> Selection:
    if not claims:
        raise NothingSelected("none of these claims is said of this device; `tfcompare list claims` shows which are")
    named = {version for claim in claims for version in claim.versions}
    versions = tuple(version for version in catalog.all_versions() if Target(version.number) in named)
    pairs = dict.fromkeys(expectation.pair for claim in claims for expectation in claim.expectations)
    targets = tuple(Target(version.number) for version in versions)
    return Selection(versions, targets, cases_of(claims), tuple(pairs), BUDGETS_S.get(suite or ""))
