"""The GPUs of a run: which ones it uses and whether its versions can run on them, decided before any build."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from orchestrator import catalog
from orchestrator.catalog.gpu_support import NO_CARDS, Fitting, Match, judge
from orchestrator.catalog.version import Version
from orchestrator.errors import UsageError
from orchestrator.machine.gpu import Gpu, GpuReading, gpus, read_gpus
from orchestrator.plan.request import PlannedRun

NOT_SEEN = (
    "neither NVML nor nvidia-smi shows a GPU on this machine: no version was judged against one, and all that the "
    "engine gives are used"
)
NOT_WATCHED = (
    "NVML does not answer here, so nobody watched the GPUs' clocks and temperatures: `pip install nvidia-ml-py` lets it"
)
SPLIT = "is split (MIG), and TensorFlow gets one slice of it: figures are the slice's"


def choose(names: Sequence[str], seen: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Return the named cards, given by index or UUID.

    Without names, return the first card: a run uses one card unless it asks for more.
    """
    found = tuple(_find_gpu(name, seen) for name in names) or tuple(seen[:1])
    if len(set(found)) < len(found):
        raise UsageError(f"--gpus {','.join(names)}: one GPU is named twice")
    return found


def _find_gpu(name: str, seen: Sequence[Gpu]) -> Gpu:
    if not seen:
        raise UsageError(
            f"--gpus {name}: neither NVML nor nvidia-smi shows a GPU on this machine; see whether `nvidia-smi` works"
        )
    # A UUID may be cut short, as nvidia-smi itself takes it.
    matching = [
        card
        for card in seen
        if name == str(card.index) or (name.startswith("GPU-") and card.uuid and card.uuid.startswith(name))
    ]
    if len(matching) != 1:
        there = "; ".join(f"{card.index}: {card.name} {card.uuid}" for card in seen)
        why = "stands for several GPUs" if matching else "is no GPU of this machine"
        raise UsageError(f"--gpus: {name} {why}; there are {there}")
    return matching[0]


def fit(
    planned: PlannedRun,
    find: Callable[[], tuple[Gpu, ...]] = gpus,
    read: Callable[[], tuple[GpuReading, ...]] = read_gpus,
) -> PlannedRun:
    """Return the planned run with the cards chosen and each version judged.

    Raises UsageError for a version that is known to fail on one of the cards, unless --force was given.
    """
    options, places = planned.options, planned.options.environments
    if not places.gpu:
        return planned
    cards = choose(places.gpus, find())
    matches = tuple(judge(version, card, catalog.releases()) for version in planned.versions for card in cards)
    failing = [match for match in matches if match.fit == "unsupported"]
    if failing and not places.force:
        raise UsageError(_refusal(failing, planned.versions, by_claims=bool(options.claims)))
    notes = (*_about(cards, watched=bool(read())), *(note for match in matches if (note := _note(match))))
    keys = tuple(card.key for card in cards)
    return replace(
        planned,
        options=replace(options, environments=replace(places, gpus=keys, cards=cards)),
        plan=replace(planned.plan, gpus=keys),
        fitting=Fitting(cards, matches, notes),
    )


def again(keys: Sequence[str], versions: Sequence[Version]) -> Fitting:
    """Return the cards of a run that continues, without notes: they were shown when the run began."""
    if not keys:
        return NO_CARDS
    cards = choose(keys, gpus())
    return Fitting(cards, tuple(judge(version, card, ()) for version in versions for card in cards))


def _refusal(failing: Sequence[Match], versions: Sequence[Version], *, by_claims: bool) -> str:
    lines = ["--gpu: not every version can run here:", *(f"  {match}" for match in failing)]
    gone = {match.version for match in failing}
    others = [version.number for version in versions if version.number not in gone]
    if by_claims:
        way = "Name claims about other versions"
    elif others:
        way = f"Leave them out (--versions {','.join(others)})"
    else:
        way = "Take other versions, or another GPU (--gpus)"
    return "\n".join([*lines, f"{way}, or measure them all the same with --force"])


def _about(cards: Sequence[Gpu], *, watched: bool) -> list[str]:
    if not cards:
        return [NOT_SEEN]
    return [*([] if watched else [NOT_WATCHED]), *(f"{card.title} {SPLIT}" for card in cards if card.mig)]


def _note(match: Match) -> str:
    if match.fit == "unsupported":
        return f"MEASURED BY FORCE: {match}. Believe no figure of it"
    return str(match) if match.fit in ("jit", "unknown") else ""
