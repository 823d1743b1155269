"""Builds a ladder: from the new target downwards, each group of causes is undone as far as that can be installed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.catalog import targets
from orchestrator.catalog.changed import find_changed, find_forced, provide_targets
from orchestrator.catalog.targets import Changed
from orchestrator.catalog.version import FlavourName
from orchestrator.errors import TfCompareError, UsageError
from orchestrator.terminal.counts import name_some
from orchestrator.terminal.text import clip
from orchestrator.terminal.view import View
from orchestrator.why.cause import Cause
from orchestrator.why.ends import read_target, write_target
from orchestrator.why.ladder import Ladder, Rung

# The packages of a release are undone together, and those that it refuses are left out; another try may name more.
MOST_TRIES = 4
PACKAGE = "package"
# A title names this many of the changes that cannot be undone.
MOST_STUCK = 2
# A resolver explains in many sentences why there is no solution.
LONGEST_REASON = 160

# Installs a target, and returns why that is impossible, or None.
Obstacle = Callable[[str], TfCompareError | None]


@dataclass(frozen=True)
class Climb:
    """A ladder, and the notes on what could not be undone."""

    ladder: Ladder
    notes: tuple[str, ...] = ()


def separate_packages(
    causes: Mapping[str, Sequence[Cause]], new: Changed, device: FlavourName
) -> tuple[dict[str, tuple[Cause, ...]], tuple[str, ...]]:
    """Return the causes, and apart from them the packages whose old release the new TensorFlow does not accept."""
    kept = list(causes.get(PACKAGE, ()))
    refused: list[str] = []
    for _ in range(MOST_TRIES):
        if not kept:
            break
        lowered = replace(new, name="")
        for cause in kept:
            lowered = cause.undo(lowered)
        try:
            (text,) = provide_targets((write_named(lowered, "trial"),), View(), device)
            forced = find_forced(text, device)
        except UsageError:
            # Nothing satisfies all of them.
            refused += [cause.title for cause in kept]
            kept = []
            break
        if not (dropped := [cause for cause in kept if cause.package in forced]):
            break
        refused += [cause.title for cause in dropped]
        kept = [cause for cause in kept if cause not in dropped]
    found = {kind: tuple(kept) if kind == PACKAGE else tuple(of_kind) for kind, of_kind in causes.items()}
    return {kind: of_kind for kind, of_kind in found.items() if of_kind}, tuple(refused)


def build_ladder(
    lower: str, upper: str, groups: Sequence[Sequence[Cause]], rest: str, stem: str, device: FlavourName,
    obstacle: Obstacle,
) -> Climb:  # fmt: skip
    """Return a ladder from the lower target to the upper one, and notes on what could not be undone.

    With `rest`, the two also differ in something that has no cause. A cause that cannot be undone joins it.
    """
    current = replace(read_target(upper), name="")
    texts, rungs = [upper], []
    notes: list[str] = []
    stuck: list[str] = []
    for position, group in enumerate(reversed(groups), 1):
        if position == len(groups) and not rest and not stuck:
            # What is left is the lower target itself.
            rungs.append(Rung(causes=tuple(cause.title for cause in group)))
            texts.append(lower)
            break
        name = f"{stem}.{position}"
        current, undone, refusals = _undo(group, current, name, obstacle)
        notes += refusals
        stuck += [cause.title for cause in group if cause not in undone]
        if undone:
            texts.append(write_named(current, name))
            rungs.append(Rung(causes=tuple(cause.title for cause in undone)))
    if texts[-1] != lower:
        texts.append(lower)
        rungs.append(Rung(causes=(), rest=join_rest(rest, stuck)))
    texts.reverse()
    rungs.reverse()
    names = tuple(name_target(text, device) for text in texts)
    return Climb(Ladder(texts=tuple(texts), names=names, rungs=tuple(rungs)), tuple(notes))


def join_rest(rest: str, stuck: Sequence[str]) -> str:
    """Return what two targets differ in that cannot be undone, as one title."""
    return ", with ".join(filter(None, (rest, name_some(stuck, MOST_STUCK, "change"))))


def _undo(
    group: Sequence[Cause], current: Changed, name: str, obstacle: Obstacle
) -> tuple[Changed, tuple[Cause, ...], list[str]]:
    """Return a target in which a group is undone as far as that can be installed, these causes, and why not others."""
    target = current
    for cause in group:
        target = cause.undo(target)
    problem = obstacle(write_named(target, name))
    if problem is None:
        return target, tuple(group), []
    if len(group) == 1:
        return current, (), [f"{group[0].title} cannot be undone: {clip(problem.headline, LONGEST_REASON)}"]
    undone: list[Cause] = []
    refusals = []
    for cause in group:
        lowered = cause.undo(current)
        if problem := obstacle(write_named(lowered, name)):
            refusals.append(f"{cause.title} cannot be undone: {clip(problem.headline, LONGEST_REASON)}")
        else:
            current = lowered
            undone.append(cause)
    return current, tuple(undone), refusals


def write_named(changed: Changed, stem: str) -> str:
    """Return the text of a target; one whose changes are too long for a name, or that needs one, gets a short one."""
    usual = changed.build_name(changed.version) if changed.version and not changed.is_foreign else ""
    named = changed if targets.USUAL_NAME.fullmatch(usual) else replace(changed, name=f"rung-{stem}")
    return write_target(named)


def name_target(text: str, device: FlavourName) -> str:
    """Return the name that a run gives to a target."""
    return text if targets.is_plain(text) else find_changed(text, device).name
