"""Seals of run folders: what a run would do if it continued, confirmed by the user who began it."""

import hashlib
import json
import os
import shlex
from pathlib import Path

from orchestrator import files
from orchestrator.catalog import seals
from orchestrator.errors import UsageError
from orchestrator.model import Manifest, Plan
from orchestrator.results.run_folder import PLAN, RunFolder

MOST_BYTES = 2**26


def seal_run(run: RunFolder, plan: Plan, manifest: Manifest) -> None:
    """Record that this user began a run with this plan, or has looked at it."""
    seals.write_seal(run.path, _list_content(run, plan, manifest))


def require_seal(run: RunFolder, plan: Plan, manifest: Manifest) -> None:
    """Raise UsageError unless the user began the run as it is now, because continuing it executes the code in it."""
    seals.require(run.path, _list_content(run, plan, manifest))


def read_request(folder: RunFolder) -> tuple[Plan, Manifest]:
    """Return the plan and the manifest of a run, even if it ended before its environments were ready."""
    if folder.is_prepared:
        return folder.read_plan(), folder.read_manifest()
    begun = folder.read_begun()
    if begun.plan is None or begun.manifest is None:
        # This raises the error that names the missing file.
        return folder.read_plan(), folder.read_manifest()
    return begun.plan, begun.manifest


def describe_run(run: RunFolder, plan: Plan, manifest: Manifest) -> list[str]:
    """Return what a run would execute and read if it continued, one line each."""
    targets = plan.definitions or tuple(str(target) for target in plan.targets)
    lines = [f"engine: {plan.engine}", *(f"target: {target}" for target in targets)]
    lines += [f"variable: {name}={value}" for name, value in manifest.variables.items()]
    lines += [f"program: {shlex.join(plan.program)}"] if plan.program else []
    lines += [f"package: {requirement}" for requirement in plan.requirements]
    lines += [f"code: {path}" for path in _list_files(run.workloads)]
    lines += [f"data: {file.path}" for file in plan.large]
    return [*lines, f"request to a fleet: {run.fleet}"] if run.fleet.exists() else lines


def _list_content(run: RunFolder, plan: Plan, manifest: Manifest) -> bytes:
    """Return all that decides what a run executes: its plan, variables, request to a fleet, and workloads."""
    try:
        request = files.read(run.path, run.fleet, MOST_BYTES, names=None) if os.path.lexists(run.fleet) else b""
        digests = {
            path.relative_to(run.path).as_posix(): hashlib.sha256(files.read(run.path, path, MOST_BYTES)).hexdigest()
            for path in _list_files(run.workloads)
        }
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}; a run folder must be readable to continue") from error
    parts = [json.dumps(digests), json.dumps(manifest.variables), hashlib.sha256(request).hexdigest()]
    return b"\n".join([PLAN.dump_json(plan), *(part.encode() for part in parts)])


def _list_files(folder: Path) -> list[Path]:
    # Hidden files and caches are included, because a worker could load code from them.
    return sorted(Path(inner, name) for inner, _, names in os.walk(folder) for name in names)
