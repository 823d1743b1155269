"""The versions that tfcompare knows: those in images/, and those that were locked for this user."""

import difflib
import hashlib
import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion
from packaging.version import Version as Number

from orchestrator.bundled import IMAGES
from orchestrator.catalog import architectures, lockfile, user_data
from orchestrator.catalog.version import Build, Cuda, Flavour, FlavourName, Python, Version
from orchestrator.errors import UsageError
from orchestrator.machine.supported import find_architecture

if TYPE_CHECKING:
    from orchestrator.catalog.table import BuildTable, Catalogue, FlavourTable, VersionTable

LOCKS = IMAGES / "locks"
DOCKERFILE = IMAGES / "Dockerfile"

ALL, LATEST = "all", "latest"
# A series such as 2.* or 1.* names all of its releases.
SERIES = re.compile(r"(?P<start>\d+(\.\d+)*)\.\*")
RANGE = re.compile(r"(?P<first>[\w.]+?)\.\.(?P<last>[\w.]+)")
EXACT = re.compile(r"\d+\.\d+\.\d+(\.post\d+)?")
EXACT_CUDA = re.compile(r"\d{1,2}\.\d{1,2}(\.\d{1,4})?")
NIGHTLY = re.compile(r"nightly(-(?P<date>\d{8}))?|\d+\.\d+\.\d+\.dev\d{8}")
# No version has a longer name.
LONGEST_NAME = 80


@cache
def builtin_catalogue() -> "Catalogue":
    from orchestrator.catalog import table

    return table.read_table(IMAGES / "versions.toml")


def forbid_builds(lock: Path) -> str:
    """Return pip's option that takes the packages of a lock only as wheels, except for source packages of the table.

    Source packages that are not in the table would run their code when they are installed.
    """
    known = builtin_catalogue().source
    names = [
        pin.name
        for pin in lockfile.read_lock(lock)
        if not (
            (source := known.get(lockfile.normalize(pin.name)))
            and source.version == pin.number
            and source.sha256 in pin.hashes
        )
    ]
    return f"--only-binary={','.join(names)}"


def version_names() -> list[tuple[str, ...]]:
    """Return the number and the aliases of every version, oldest first, without a check of the tables.

    A shell asks for them at every Tab, and the checks take a fifth of a second.
    """
    names: list[tuple[str, ...]] = []
    for path in (IMAGES / "versions.toml", user_data.find_user_table()):
        if path.exists():
            entries = tomllib.loads(path.read_text(encoding="utf-8")).get("version", {})
            names += [(number, *entry.get("aliases", ())) for number, entry in entries.items()]
    return sorted(names, key=lambda each: Number(each[0]))


@cache
def all_versions() -> tuple[Version, ...]:
    """Return every version of the tables, oldest first."""
    from orchestrator.catalog import table

    base = builtin_catalogue()
    digests = user_data.digests()
    versions = [_version(number, entry, base, LOCKS, digests) for number, entry in base.version.items()]
    if user_data.find_user_table().exists():
        mine = table.read_table(user_data.find_user_table(), beside=base)
        both = table.Catalogue(python=base.python | mine.python, cuda=base.cuda | mine.cuda)
        versions += [
            _version(number, entry, both, user_data.locks(), digests) for number, entry in mine.version.items()
        ]
    return tuple(sorted(versions, key=lambda version: Number(version.number)))


def reread() -> None:
    """Discard the cached versions after a change in the user's own folder."""
    all_versions.cache_clear()


def _version(number: str, entry: "VersionTable", tables: "Catalogue", locks: Path, digests: dict[str, str]) -> Version:
    flavours: list[Flavour] = []
    named: tuple[tuple[FlavourName, FlavourTable | None], ...] = (("cpu", entry.cpu), ("gpu", entry.gpu))
    if not find_architecture().is_usual:
        named, locks = ((("cpu", entry.cpu),) if architectures.has_wheels(number) else ()), user_data.locks()
    for name, flavour in named:
        for python in _find_pythons(number, name, flavour, tables) if flavour else ():
            assert flavour is not None
            base = tables.python[python]
            image, digest = (flavour.image, flavour.digest) if flavour.image else (base.image, base.digest)
            flavours.append(
                Flavour(
                    name=name,
                    python=Python(number=python, image=base.image, digest=digests.get(base.image, base.digest)),
                    lock=locks / lock_name(number, name, python),
                    pip_lock=LOCKS / f"pip-py{python}.txt",
                    image=image,
                    digest=digests.get(image, digest),
                    requirements=architectures.adapt((*flavour.requirements, *tables.find_libraries(flavour))),
                    cuda=_cuda(flavour, flavour.cuda, flavour.libraries or flavour.cuda, tables)
                    if flavour.cuda
                    else None,
                )
            )
    return Version(
        number=number,
        aliases=entry.aliases,
        keras=entry.keras,
        flavours=tuple(flavours),
        notes=entry.notes,
        build=_build(entry.build, tables, digests) if entry.build else None,
    )


def _find_pythons(number: str, name: FlavourName, table: "FlavourTable", tables: "Catalogue") -> Sequence[str]:
    """Return the Pythons that a version has locks for; if these are made on first use, at least the best one."""
    if find_architecture().is_usual:
        return table.pythons
    ordered = architectures.order_pythons(table.pythons, tables.python)
    locked = [python for python in ordered if (user_data.locks() / lock_name(number, name, python)).exists()]
    return locked or ordered[:1]


def _build(table: "BuildTable", tables: "Catalogue", digests: dict[str, str]) -> Build:
    digest = digests.get(table.image, table.digest)
    image = f"{table.image}@{digest}" if digest else table.image
    return Build(maker=table.maker, image=image, cuda=_cuda(table, table.cuda, table.cuda, tables))


def _cuda(of: "FlavourTable | BuildTable", number: str, libraries: str, tables: "Catalogue") -> Cuda:
    entry = tables.cuda[number]
    return Cuda(
        number=number,
        cudnn=of.cudnn,
        compute=of.compute,
        driver=entry.driver,
        jit_driver=entry.jit_driver,
        broken_from=entry.broken_from,
        broken=entry.broken,
        libraries=libraries,
        knows=tables.cuda[libraries].knows,
    )


def find_cuda(number: str, compute: tuple[str, ...]) -> Cuda | None:
    """Return what is known of a build for a CUDA and some compute capabilities, by the table; None if it knows none.

    The table has the CUDA of releases. Another one counts as the newest of the same major version that is not newer.
    """
    known = builtin_catalogue().cuda
    if not compute or not EXACT_CUDA.fullmatch(number):
        return None
    major = number.partition(".")[0]
    same = [each for each in known if each.partition(".")[0] == major and Number(each) <= Number(number)]
    if not same:
        return None
    entry = known[max(same, key=Number)]
    return Cuda(
        number=number,
        cudnn=None,
        compute=compute,
        driver=entry.driver,
        jit_driver=entry.jit_driver,
        broken_from=entry.broken_from,
        broken=entry.broken,
        libraries=number,
        knows=entry.knows,
    )


def lock_name(number: str, flavour: FlavourName, python: str) -> str:
    return f"{architectures.name_lock(f'{number}-{flavour}-py{python}')}.txt"


def minor(number: str) -> str:
    return ".".join(number.split(".")[:2])


def releases() -> tuple[Version, ...]:
    """Return one version per minor release, oldest first: the one that has the release's short name."""
    return tuple(version for version in all_versions() if minor(version.number) in version.aliases)


def list_builds() -> tuple[Version, ...]:
    """Return the builds of other makers, oldest first."""
    return tuple(version for version in all_versions() if version.build)


def find_version(name: str) -> Version | None:
    return next((version for version in all_versions() if name in (version.number, *version.aliases)), None)


def resolve_versions(names: Sequence[str], fewest: int = 2) -> tuple[Version, ...]:
    """Return the named versions in the given order; the first is the baseline."""
    versions: dict[Version, None] = {}
    for name in names:
        if len(name) > LONGEST_NAME:
            raise UsageError(
                f"unknown version {name[:LONGEST_NAME]!r}...: no version has a name of {len(name)} characters"
            )
        several = _several(name)
        if several is None:
            version = _require_version(name)
            if version in versions:
                raise UsageError(f"version {version.number} is named twice (as {name!r}); name each version once")
            several = (version,)
        versions.update(dict.fromkeys(several))
    if len(versions) < fewest:
        raise UsageError("a comparison takes at least two versions, e.g. --versions 1.14,2.0")
    return tuple(versions)


def _several(name: str) -> Sequence[Version] | None:
    """Return the versions that `all`, `latest`, `2.*` or a range stands for, or None for any other name."""
    if name == ALL:
        return releases()
    if name == LATEST:
        return releases()[-1:]
    if series := SERIES.fullmatch(name):
        start = series["start"].split(".")
        inside = [version for version in releases() if version.number.split(".")[: len(start)] == start]
        if not inside:
            raise UsageError(f"{name}: no release matches; `tfcompare list versions` shows those that can be run")
        return inside
    match = RANGE.fullmatch(name)
    if match is None:
        return None
    first, last = _require_version(match["first"]), _require_version(match["last"])
    low, high = Number(first.number), Number(last.number)
    if low > high:
        raise UsageError(
            f"{name} runs backwards: write {match['last']}..{match['first']}; to measure against the newest, name it "
            f"first: {match['first']},{match['last']}..{match['first']}"
        )
    wanted = {*releases(), first, last}
    return [version for version in all_versions() if version in wanted and low <= Number(version.number) <= high]


def _require_version(name: str) -> Version:
    version = find_version(name)
    if version is None:
        choices = [choice for version in all_versions() for choice in (version.number, *version.aliases)]
        beyond = _beyond(name)
        # The name 2.130 probably means 2.13, but 2.99 means no known version.
        hint = did_you_mean(name, choices, cutoff=0.87 if beyond else 0.5) or beyond
        raise UsageError(f"unknown version {name!r}{hint}; `tfcompare list versions` shows those that can be run")
    return version


def _beyond(name: str) -> str:
    """Return a note that a version is newer or older than every known one, or ''."""
    try:
        number = Number(name)
    except InvalidVersion:
        return ""
    oldest, newest = releases()[0], releases()[-1]
    if number > Number(newest.number):
        return f": the newest known is {minor(newest.number)}"
    return f": the oldest known is {minor(oldest.number)}" if number < Number(oldest.number) else ""


def did_you_mean(name: str, choices: Iterable[str], cutoff: float = 0.5) -> str:
    near = difflib.get_close_matches(name, list(choices), n=1, cutoff=cutoff)
    return f" (did you mean {near[0]}?)" if near else ""


def lock_hash(flavour: Flavour) -> str:
    """Return a digest of everything that is installed for a flavour, including the installer."""
    return hashlib.sha256(lockfile.content(flavour.pip_lock) + lockfile.content(flavour.lock)).hexdigest()
