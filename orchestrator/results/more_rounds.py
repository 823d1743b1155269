"""The plan for more rounds of a run, and the check that its sources are still those that were measured."""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from orchestrator import contract
from orchestrator.catalog import pinned, program
from orchestrator.catalog import workloads as suites
from orchestrator.errors import UsageError
from orchestrator.model import Extended, Manifest, Plan
from orchestrator.options import EngineOptions
from orchestrator.plan.pairs import looks_left
from orchestrator.results.past import Past
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.counts import name_some

# A proposed budget is longer by this factor, because later rounds may take longer.
RESERVE = 1.5
# An extension has this many rounds if no planned look is left and the user gave no number.
EXPLORATORY_ROUNDS = 10


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """The options given on the command line; everything else is in the run's plan."""

    run: Path
    rounds: int | None = None
    budget_s: float | None = None
    keep_going: bool = False
    own_workloads: Path | None = None
    environments: EngineOptions = field(default_factory=EngineOptions)
    command: tuple[str, ...] = ()


def plan_extension(options: ResumeOptions, plan: Plan, past: Past) -> Extended:
    """Plan the new rounds, before the first of them is measured."""
    planned = looks_left(past.looks or plan.looks, past.rounds)
    if options.rounds:
        looks: tuple[int, ...] = (past.rounds + options.rounds,)
    else:
        looks = planned or (past.rounds + EXPLORATORY_ROUNDS,)
    return Extended(
        created=datetime.now(UTC).replace(microsecond=0),
        command=options.command,
        seed=secrets.randbelow(2**31),
        first_round=past.rounds + 1,
        looks=looks,
        budget_s=options.budget_s or (None if options.rounds else plan.budget_s),
        exploratory=past.spent >= 1,
    )


def check_sources(plan: Plan, manifest: Manifest, folder: RunFolder, own: Path | None) -> None:
    """Raise UsageError unless the workloads that the run keeps and those that the user names are the measured ones."""
    if manifest.contract != contract.FINGERPRINT:
        raise UsageError(
            f"{plan.run} was measured under contract {manifest.contract}, but this tfcompare uses "
            f"{contract.FINGERPRINT}; use tfcompare {manifest.tool}, or start a new run"
        )
    pinned_copy = folder.workloads if folder.workloads.is_dir() else None
    _check_files(plan, manifest, pinned_copy)
    if own:
        _check_files(
            plan, manifest, own, f", or leave --workload-folder out: {folder.path} keeps the files it measured"
        )
    recorded = {name: digest for name, digest in manifest.sources.items() if name.startswith(f"{contract.DATA}/")}
    if recorded and pinned.hash_all_data(plan.large) != recorded:
        raise UsageError(f"the data of {plan.run} have changed since it was measured; start a new run")
    if changed := pinned.find_changed_files(plan.large):
        raise UsageError(f"changed since {plan.run} was measured: {', '.join(changed)}; start a new run")


def _check_files(plan: Plan, manifest: Manifest, own: Path | None, otherwise: str = "") -> None:
    workloads = program.find_measurable(plan.program, plan.requirements, own)
    names = dict.fromkeys(case.workload for case in plan.cases)
    if absent := [name for name in names if name not in workloads]:
        raise UsageError(
            f"{plan.run} measured your own workloads ({', '.join(absent)}), and their files are gone; start a new run"
        )
    now = suites.source_hashes([workloads[name] for name in names])
    removed = [name for name in manifest.sources if name.startswith(suites.NEIGHBOURS) and name not in now]
    if changed := [name for name in (*now, *removed) if manifest.sources.get(name) != now.get(name)]:
        raise UsageError(
            f"changed since {plan.run} was measured: {name_some(changed)}; old and new times do not mix, so start a "
            f"new run{otherwise}"
        )
