"""Decides what to measure tonight: names such as `nightly` become today's wheels, and a missing version is a result."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from orchestrator import catalog
from orchestrator.catalog import lock_on_demand
from orchestrator.catalog.version import FlavourName
from orchestrator.errors import EnvironmentFailed, UsageError
from orchestrator.history.model import Point
from orchestrator.terminal.view import View

# This is the only name that means another wheel every night.
FOLLOWED = "nightly"
# If the newest nightly is older, its builds fail, or the index has none for this Python any more.
OLD_DAYS = 7
LONGEST_REASON = 400


@dataclass(frozen=True, kw_only=True)
class Unavailable:
    """A version that was asked for but is not available tonight."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ResolvedVersions:
    """Versions by their full numbers, the reference first; `names` are those under which builds are followed."""

    versions: tuple[str, ...]
    names: Mapping[str, str]
    unavailable: tuple[Unavailable, ...] = ()
    # These names have the same wheel as the night before.
    unchanged: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def last_builds(points: Iterable[Point]) -> dict[str, str]:
    """Return the build that each followed name last had when it was measured.

    The points must be sorted oldest first.
    """
    return {point.target: point.build for point in points if point.target != point.build and point.rounds}


def resolve_followed(
    names: Sequence[str], view: View, last: Mapping[str, str] | None = None, *, device: FlavourName = "cpu"
) -> ResolvedVersions:
    """Resolve names to the versions to measure tonight.

    `last` holds the builds of followed names on the night before. A version that is not available is reported and left
    out, unless it is the reference, without which there is nothing to measure against.
    """
    pinned = [name for name in names if not is_nightly(name)]
    if not pinned:
        raise UsageError(
            f"nothing to measure {', '.join(names) or 'anything'} against: a nightly is another TensorFlow each night. "
            f"Name a release too, e.g. --versions {','.join((*names, '2.13'))}"
        )
    resolver = _Resolver(view, last or {}, device)
    resolver.begin(pinned[0])
    for name in names[: names.index(pinned[0])]:
        resolver.take(name)
    for name in names[names.index(pinned[0]) + 1 :]:
        resolver.take(name)
    return ResolvedVersions(
        versions=tuple(resolver.versions),
        names=resolver.names,
        unavailable=tuple(resolver.unavailable),
        unchanged=tuple(resolver.unchanged),
        notes=tuple(resolver.notes),
    )


def is_nightly(name: str) -> bool:
    return catalog.NIGHTLY.fullmatch(name) is not None


class _Resolver:
    """A resolver that takes one name after another.

    The index is asked for its nightlies once, and only if a name needs them.
    """

    def __init__(self, view: View, last: Mapping[str, str], device: FlavourName) -> None:
        self._view = view
        self._device = device
        self._last = last
        self._nightlies: Mapping[str, str] | None = None
        # This says why the index could not be asked.
        self._silent = ""
        self.versions: list[str] = []
        self.names: dict[str, str] = {}
        self.unavailable: list[Unavailable] = []
        self.unchanged: list[str] = []
        self.notes: list[str] = []

    def begin(self, reference: str) -> None:
        try:
            self.versions += self._numbers_of(reference)
        except EnvironmentFailed as error:
            raise EnvironmentFailed(
                f"the reference {reference} is not available, and nothing can be measured without it: {error}"
            ) from error

    def take(self, name: str) -> None:
        try:
            numbers = [self._nightly(name)] if is_nightly(name) else self._numbers_of(name)
        except EnvironmentFailed as error:
            self._view.say(f"{name} is not available tonight: {error}")
            self.unavailable.append(Unavailable(name=name, reason=f"lock: {in_one_line(str(error))}"))
            return
        new = [number for number in numbers if number not in self.versions]
        if not new and len(numbers) == 1:
            if not is_nightly(name) or name == numbers[0]:
                raise UsageError(f"version {numbers[0]} is named twice (as {name!r}); name each version once")
            # The two names may mean different versions on another day.
            self._note(f"{name} is {numbers[0]} tonight, which is measured already")
        self.versions += new
        if name == FOLLOWED:
            self._follow(numbers[0])

    def _numbers_of(self, name: str) -> list[str]:
        """Return the versions of a name, which are several for `all` and for a range.

        A name that neither the table nor the index can know is the user's mistake.
        """
        if catalog.EXACT.fullmatch(name):
            self._provide(name)
        return [version.number for version in catalog.resolve_versions((name,), fewest=1)]

    def _nightly(self, name: str) -> str:
        if catalog.find_version(name):
            return self._provide(name)
        if self._nightlies is None and not self._silent:
            try:
                self._nightlies = lock_on_demand.nightlies(self._device)
            except UsageError as error:
                self._silent = str(error)
        if self._silent:
            return self._find_locked_nightly(name)
        return self._provide(name, self._nightlies)

    def _find_locked_nightly(self, name: str) -> str:
        """Return the newest nightly that was locked here earlier, for use without an index.

        If the name includes a day, return that day's nightly.
        """
        day = catalog.NIGHTLY.fullmatch(name)
        assert day is not None
        here = [
            version.number
            for version in catalog.all_versions()
            if is_nightly(version.number) and version.on(self._device)
        ]
        if name != FOLLOWED:
            here = [number for number in here if lock_on_demand.date_of(number) == day["date"]]
        if not here:
            which = "no nightly" if name == FOLLOWED else f"no {name}"
            raise EnvironmentFailed(f"{self._silent}, and {which} is locked here")
        number = max(here, key=lock_on_demand.date_of)
        self._note(f"{self._silent}; taking {number} for {name}, which is locked here")
        return self._provide(number)

    def _provide(self, name: str, nightlies: Mapping[str, str] | None = None) -> str:
        try:
            (number,) = lock_on_demand.provide_locks((name,), self._view, nightlies, device=self._device)
        except UsageError as error:
            raise EnvironmentFailed(str(error)) from error
        return number

    def _follow(self, number: str) -> None:
        self.names[number] = FOLLOWED
        if self._last.get(FOLLOWED) == number:
            self.unchanged.append(FOLLOWED)
            self._note(f"{FOLLOWED} is {number}, the wheel of the night before: nothing new was built")
        else:
            self._view.say(f"{FOLLOWED} is {number}")
        day = datetime.strptime(lock_on_demand.date_of(number), "%Y%m%d").date()
        age = (datetime.now(UTC).date() - day).days
        if age > OLD_DAYS and not self._silent:
            python = catalog.releases()[-1].on("cpu")[0].python.number
            self._note(f"{number} is {age} days old: the index has no newer nightly for Python {python}")

    def _note(self, text: str) -> None:
        self._view.say(text)
        self.notes.append(text)


def in_one_line(text: str) -> str:
    """Return a reason in one line, as a table can hold it.

    The frames that a resolver draws and the login of an index are removed.
    """
    line = " ".join(re.sub(r"//[^/\s@]+@", "//", re.sub(r"[^\x20-\x7e]+", " ", text)).split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 3] + "..."
