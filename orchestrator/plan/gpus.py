"""The GPUs of a run: which ones it uses and whether its versions can run on them, decided before any build."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from packaging.version import Version as Number

from orchestrator import catalog
from orchestrator.catalog.claims import CLAIMS, read_claim
from orchestrator.catalog.gpu_support import NO_GPUS, GpuSupport, Match, match_gpu
from orchestrator.catalog.version import Version
from orchestrator.catalog.workloads import all_workloads
from orchestrator.errors import UsageError
from orchestrator.machine.gpu import SHARE, Gpu, GpuReading, find_gpus, read_gpus
from orchestrator.machine.gpu_clocks import REMEDY
from orchestrator.model import Target
from orchestrator.options import VENV
from orchestrator.plan.request import PlannedRun, RunOptions

NOT_SEEN = (
    "neither NVML nor nvidia-smi shows a GPU on this machine: no version was checked against one, and all GPUs that "
    "the engine provides are used"
)
NOT_WATCHED = (
    "NVML does not answer here, so GPU clocks and temperatures were not watched: "
    "`pip install 'tfcompare[gpu]'` allows it"
)
SPLIT = "is split (MIG), and TensorFlow gets one slice of it: figures are the slice's. --gpus MIG-... chooses one"
TIGHT = "has {} MB left, and two arms that are compared are open at once: if they do not fit, use --gpu-exclusive"
UNLINKED = "its links to other GPUs are not ready, and CUDA does not start until they are: check the fabric manager"
# Two processes need at least this much.
LEAST_FREE_MB = 3000


def choose_gpus(names: Sequence[str], available: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Return the named GPUs, given by index or UUID.

    Without names, return the first GPU that this process was given: a run uses one GPU unless it asks for more.
    """
    names = names or (find_granted_gpu() if available else ())
    chosen = tuple(_find_gpu(name, available) for name in names) or tuple(available[:1])
    if len(set(chosen)) < len(chosen):
        raise UsageError(f"--gpus {','.join(names)}: one GPU is named twice")
    return chosen


def _find_gpu(name: str, available: Sequence[Gpu]) -> Gpu:
    if not available:
        raise UsageError(
            f"--gpus {name}: neither NVML nor nvidia-smi shows a GPU on this machine; see whether `nvidia-smi` works"
        )
    # A UUID may be shortened, which nvidia-smi also accepts.
    matching = [gpu for gpu in available if name == str(gpu.index)] or [
        part
        for part in _with_slices(available)
        if name.startswith(("GPU-", "MIG-")) and part.uuid and part.uuid.startswith(name)
    ]
    if len(matching) != 1:
        there = "; ".join(f"{part.index}: {part.name} {part.uuid}" for part in _with_slices(available))
        why = "matches several GPUs" if matching else "is not a GPU of this machine"
        raise UsageError(f"--gpus: {name} {why}; there are {there}")
    return matching[0]


def _with_slices(gpus: Sequence[Gpu]) -> list[Gpu]:
    return [part for gpu in gpus for part in (gpu, *gpu.slices)]


def fit(
    planned: PlannedRun,
    find: Callable[[], tuple[Gpu, ...]] = find_gpus,
    read: Callable[[], tuple[GpuReading, ...]] = read_gpus,
) -> PlannedRun:
    """Return the planned run with its GPUs chosen and each version judged.

    Raises UsageError for a version that is known to fail on one of the GPUs, unless --allow-unsupported-gpu was given.
    """
    options, environments = planned.options, planned.options.environments
    versions = planned.selection.versions
    planned = describe_builds(planned)
    if not environments.gpu:
        return planned
    chosen = choose_gpus(environments.gpus, find())
    _check_modes(chosen, exclusive=environments.exclusive)
    if environments.lock_mhz and os.geteuid():
        raise UsageError(f"--lock-clocks needs root: {REMEDY}")
    # A version that is an image cannot be in a virtual environment.
    others = [
        version
        for version in (*catalog.releases(), *catalog.list_builds())
        if options.engine != VENV or any(flavour.is_plain for flavour in version.on("gpu"))
    ]
    matches = tuple(match_gpu(version, gpu, others) for version in versions for gpu in chosen)
    failing = [match for match in matches if match.fit == "unsupported"]
    if failing and not environments.force:
        raise UsageError(_refusal(failing, versions, by_claims=bool(options.claims)))
    held = environments.lock_mhz
    notes = (
        *([f"GPU clocks were held at {held} MHz (--lock-clocks)"] if held else []),
        *_about(chosen, watched=bool(read())),
        *(
            f"MEASURED BY FORCE: {match}. Believe no figure of it" if match.fit == "unsupported" else str(match)
            for match in matches
            if match.fit != "fine"
        ),
        *planned.fitting.notes,
    )
    keys = tuple(gpu.key for gpu in chosen)
    return replace(
        planned,
        options=replace(options, environments=replace(environments, gpus=keys, chosen_gpus=chosen)),
        fitting=GpuSupport(chosen, matches, notes),
    )


def adapt_claims(
    options: RunOptions, find: Callable[[], tuple[Gpu, ...]] = find_gpus
) -> tuple[RunOptions, tuple[str, ...]]:
    """Test claims in the releases that they allow elsewhere if a GPU lacks code in their own; return notes on it."""
    environments = options.environments
    if not options.claims or not environments.gpu or environments.force:
        return options, ()
    chosen = choose_gpus(environments.gpus, find())

    def find_misfit(version: Version) -> Match | None:
        matches = (match_gpu(version, gpu, ()) for gpu in chosen)
        return next((match for match in matches if match.fit != "fine"), None)

    workloads, by_target = all_workloads(), {Target(version.name): version for version in catalog.all_versions()}
    adapted, notes = [], []
    for claim in options.claims:
        misfits = (find_misfit(by_target[target]) for target in claim.targets if target in by_target)
        if misfit := next(filter(None, misfits), None):
            moved = read_claim(CLAIMS / f"{claim.name}.toml", workloads, lambda version: not find_misfit(version))
            if moved.targets != claim.targets:
                notes.append(f"{claim.name} is tested in {' and '.join(map(str, moved.targets))} instead: {misfit}")
                claim = moved
        adapted.append(claim)
    return replace(options, claims=tuple(adapted)), tuple(notes)


def describe_builds(planned: PlannedRun) -> PlannedRun:
    """Return the planned run with notes for every report on versions that are not releases."""
    notes = tuple(
        f"{version.name} is {version.build.maker}'s build of TensorFlow {Number(version.number).base_version}, and not "
        "the release: it has other patches, libraries and defaults"
        for version in planned.selection.versions
        if version.build
    )
    return replace(planned, fitting=replace(planned.fitting, notes=notes)) if notes else planned


def find_granted_gpu() -> tuple[str, ...]:
    """Return the first GPU that this process was given, e.g. by a batch system; nothing if it may use all."""
    granted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if granted is None:
        return ()
    first = granted.partition(",")[0].strip()
    if not first or first == "-1":
        raise UsageError("--gpu: CUDA_VISIBLE_DEVICES hides all GPUs from this process; name one with --gpus")
    return (first,)


def _check_modes(chosen: Sequence[Gpu], *, exclusive: bool) -> None:
    """Raise UsageError for a GPU that does not take as many processes at once as the run opens."""
    for gpu in chosen:
        if gpu.mode == "prohibited":
            raise UsageError(f"--gpu: {gpu.title} takes no process (its compute mode is Prohibited); {SHARE}")
        if gpu.mode == "exclusive" and not exclusive:
            raise UsageError(
                f"--gpu: {gpu.title} takes one process at a time (its compute mode is Exclusive_Process): add "
                f"--gpu-exclusive, or {SHARE}"
            )


def find_gpus_again(keys: Sequence[str], versions: Sequence[Version]) -> GpuSupport:
    """Return the GPUs of a run that continues, without notes: they were shown when the run began."""
    if not keys:
        return NO_GPUS
    chosen = choose_gpus(keys, find_gpus())
    return GpuSupport(chosen, tuple(match_gpu(version, gpu, ()) for version in versions for gpu in chosen))


def _refusal(failing: Sequence[Match], versions: Sequence[Version], *, by_claims: bool) -> str:
    lines = ["--gpu: not every version can run here:", *(f"  {match}" for match in failing)]
    # An alternative fits one GPU on which its version fails. If it fails on another GPU, the next refusal says so.
    instead = {match.version: match.nearest for match in failing}
    names = [instead.get(version.name, version.short_name) for version in versions if not version.changes]
    usable = list(dict.fromkeys(name for name in names if name))
    if by_claims:
        way = "Name claims about other versions"
    elif len(usable) > 1:
        way = f"Use versions that run on it (--versions {','.join(usable)})"
    else:
        way = "Use other versions, or another GPU (--gpus)"
    return "\n".join([*lines, f"{way}, or measure them anyway with --allow-unsupported-gpu"])


def _about(chosen: Sequence[Gpu], *, watched: bool) -> list[str]:
    if not chosen:
        return [NOT_SEEN]
    notes = [] if watched else [NOT_WATCHED]
    for gpu in chosen:
        if gpu.slices or (gpu.mig and not (gpu.uuid or "").startswith("MIG-")):
            notes.append(f"{gpu.title} {SPLIT}")
        if gpu.free_mb is not None and gpu.free_mb < LEAST_FREE_MB:
            notes.append(f"{gpu.title} {TIGHT.format(gpu.free_mb)}")
        if gpu.linked is False:
            notes.append(f"{gpu.title}: {UNLINKED}")
    return notes
