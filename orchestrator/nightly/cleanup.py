"""Removes the environments, images and locks of nightlies that are no longer measured.

The newest few stay, and so does each one that a nightly run or a user asked for within the same number of days.
Releases, versions that a user described, and anything in use are never removed.
"""

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from packaging.version import Version as Number

from orchestrator import catalog, files
from orchestrator.catalog import lock_on_demand
from orchestrator.catalog.version import Version
from orchestrator.errors import EngineUnavailable, EnvironmentFailed, TfCompareError
from orchestrator.images import sizes, venv_cache
from orchestrator.terminal.view import View

# A slow engine delays the end of a nightly run by no more than this.
ENGINE_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Removal:
    """The nightlies that were removed, oldest first.

    `spared` explains why other nightlies were kept, and what else went wrong.
    """

    numbers: tuple[str, ...] = ()
    freed: int = 0
    spared: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """A one-line summary, or '' if there was nothing to do."""
        gone = f"old nightlies removed: {', '.join(self.numbers)}" if self.numbers else ""
        freed = f"freed about {sizes.format_size(self.freed)}" if self.freed else ""
        return "; ".join(part for part in (gone, freed, *self.spared) if part)


def retire(keep: int, view: View) -> Removal:
    """Remove old nightlies without ever making a nightly run fail.

    Whatever could not be removed is reported, and tried again after the next run.
    """
    try:
        nightlies = [version for version in catalog.all_versions() if catalog.NIGHTLY.fullmatch(version.number)]
        ours = [version for version in nightlies if lock_on_demand.is_locked_by_us(version)]
        retired = _remove(old(ours, keep, datetime.now(UTC)))
    except (TfCompareError, OSError) as error:
        retired = Removal(spared=(f"old nightlies are left alone: {error}",))
    if retired.summary:
        view.say(retired.summary)
    return retired


def old(nightlies: Sequence[Version], keep: int, now: datetime) -> list[Version]:
    """Return the nightlies to remove, oldest first."""
    by_age = sorted(nightlies, key=lambda version: (lock_on_demand.date_of(version.number), Number(version.number)))
    recent = now - timedelta(days=keep)
    return [version for version in by_age[: max(0, len(by_age) - keep)] if last_use(version) < recent]


def last_use(version: Version) -> datetime:
    """Return when a version was last asked for, which is recorded by its lock."""
    return max(datetime.fromtimestamp(flavour.lock.stat().st_mtime, UTC) for flavour in version.flavours)


def _remove(versions: Sequence[Version]) -> Removal:
    """Remove versions and, at the end, their entries in the table.

    The next nightly run uses the entry of a version to find whatever is left of it.
    """
    if not versions:
        return Removal()
    numbers = [version.number for version in versions]
    freed, spared = _remove_images(numbers)
    gone = []
    for version in versions:
        if version.number in spared:
            continue
        for path in [path for flavour in version.flavours for path in venv_cache.find_environments(flavour)]:
            size = files.tree_size(path)
            if venv_cache.remove_environment(path):
                freed += size
            else:
                spared[version.number] = f"{path.name} is in use, or not ours to remove"
        if version.number not in spared:
            lock_on_demand.forget_lock(version)
            gone.append(version.number)
    reasons = tuple(f"{number} is left alone: {why}" for number, why in spared.items())
    return Removal(numbers=tuple(gone), freed=freed, spared=reasons)


def _remove_images(numbers: Collection[str]) -> tuple[int, dict[str, str]]:
    """Remove the images of these versions.

    Return the number of bytes freed and, by version number, why an image still exists. Without an engine there are no
    images.
    """
    # The engine's client is slow to import, and most nightly runs have nothing to remove.
    from orchestrator.engines.docker.client import asking, connect_engine
    from orchestrator.images import inventory, prune

    try:
        client = connect_engine(ENGINE_S)
    except EngineUnavailable:
        return 0, {}
    try:
        with closing(client), asking("removing the images of old nightlies", EnvironmentFailed):
            garbage = prune.of_versions(client, numbers)
            spared = (*garbage.spared, *prune.remove_garbage(client, garbage))
            remaining = {
                image.name: image.version for image in inventory.list_kept_images(client) if image.version in numbers
            }
    except TfCompareError as error:
        return 0, dict.fromkeys(numbers, str(error))
    why = {image.name: f"{image.name}: {image.why}" for image in spared}
    return garbage.frees, {number: why.get(name, f"{name} is still there") for name, number in remaining.items()}
