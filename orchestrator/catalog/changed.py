"""Versions with the changes of a target, made from the tables and from locks that are written on first use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from orchestrator import catalog
from orchestrator.catalog import architectures, lock_on_demand, locking, targets, user_data
from orchestrator.catalog.lock_on_demand import ON_FIRST_USE, TENSORFLOW
from orchestrator.catalog.locking import BUILD_TOOLS, Lock
from orchestrator.catalog.targets import Changed
from orchestrator.catalog.uv import Unresolved
from orchestrator.catalog.version import Flavour, FlavourName, Python, TargetChanges, Version
from orchestrator.catalog.wheel import read_wheel
from orchestrator.errors import UsageError
from orchestrator.terminal.view import View

# This release is the first with Keras 3. Keras 2 is a separate package since then.
KERAS_3 = (2, 16)
LEGACY = ("TF_USE_LEGACY_KERAS", "1")


@dataclass(frozen=True)
class NewLock:
    """A lock that no table has, the locks whose versions it keeps if it can, and a pin that is appended to it."""

    lock: Lock
    keep: tuple[Path, ...]
    pin: str = ""


@dataclass(frozen=True)
class LockedVersion:
    """A version with changes, and the locks that it needs."""

    version: Version
    locks: tuple[NewLock, ...] = ()


def provide_targets(texts: Sequence[str], view: View, device: FlavourName) -> tuple[str, ...]:
    """Lock what no table has, and return the targets with exact numbers."""
    exact: list[str] = []
    for text in texts:
        if targets.is_plain(text):
            exact += lock_on_demand.provide_locks((text,), view, device=device)
            continue
        changed = targets.parse_target(text)
        if changed.version:
            [number] = lock_on_demand.provide_locks((changed.version,), view, device=device)
            changed = replace(changed, version=number)
        locked = _describe(changed, device)
        for new in locked.locks:
            if not new.lock.is_current():
                view.say(f"{locked.version.name}: locking it for Python {new.lock.python}")
                _write(new, text)
        assert locked.version.changes
        exact.append(locked.version.changes.definition)
    return tuple(exact)


def _write(new: NewLock, text: str) -> None:
    tools = locking.pip_lock(new.lock.python).path
    message = ""
    # The versions of the locks to keep are tried first, so that a target differs in nothing else.
    for constraints in dict.fromkeys((new.keep, ())):
        options = [word for path in constraints for word in ("--constraints", str(path))]
        try:
            text_of_lock = locking.resolve_lock(new.lock, tools, options)
        except Unresolved as error:
            message = message or str(error)
            continue
        user_data.write_user_file(new.lock.path, f"{text_of_lock.rstrip()}\n{new.pin}")
        return
    raise UsageError(
        f"target {text!r}: it cannot be locked:\n{message}\nTake another Python or version, or check the network"
    )


def resolve_targets(texts: Sequence[str], fewest: int, device: FlavourName) -> tuple[Version, ...]:
    """Return the versions that targets stand for, in the given order; the first is the baseline."""
    plain = [text for text in texts if targets.is_plain(text)]
    if len(plain) == len(texts):
        return catalog.resolve_versions(texts, fewest)
    catalog.resolve_versions(plain, 0)
    found: dict[str, Version] = {}
    for text in texts:
        if targets.is_plain(text):
            several = catalog.resolve_versions([text], 1)
        else:
            several = (find_changed(text, device),)
            if several[0].name in found:
                raise UsageError(f"two targets are named {several[0].name}; give one of them another name, with `as`")
        found.update((version.name, version) for version in several)
    for one, other in combinations(found.values(), 2):
        if _what_runs(one, device) == _what_runs(other, device):
            raise UsageError(f"{one.name} and {other.name} are the same target; to measure one twice, add --control")
    if len(found) < fewest:
        raise UsageError("a comparison takes at least two targets, e.g. 2.15 '2.15 TF_ENABLE_ONEDNN_OPTS=0'")
    return tuple(found.values())


def _what_runs(version: Version, device: FlavourName) -> object:
    return version.number, version.on(device), version.variables, version.image


def find_changed(text: str, device: FlavourName) -> Version:
    """Return the version with changes that a target stands for."""
    return _describe(targets.parse_target(text), device).version


def _describe(changed: Changed, device: FlavourName) -> LockedVersion:
    if changed.image:
        return LockedVersion(_name(Version(number="", aliases=(), keras="", flavours=()), changed, changed.name))
    locked = _of_wheel(changed, changed.wheel, device) if changed.wheel else _of_version(changed, device)
    exact = replace(changed, version=locked.version.number) if changed.version else changed
    name = changed.name or "+".join((locked.version.number, *changed.changes))
    return replace(locked, version=_name(locked.version, exact, name))


def _name(version: Version, changed: Changed, name: str) -> Version:
    variables = (*([LEGACY] if changed.keras == "2" else []), *changed.variables)
    changes = TargetChanges(name=name, definition=str(changed), variables=variables, image=changed.image)
    return replace(version, changes=changes, aliases=())


def _of_version(changed: Changed, device: FlavourName) -> LockedVersion:
    versions = catalog.resolve_versions((changed.version,), 1)
    if len(versions) > 1:
        raise UsageError(f"target '{changed}': {changed.version} is {len(versions)} versions, and a target is one")
    version = versions[0]
    if version.build and (changed.python or changed.keras):
        raise UsageError(
            f"target '{changed}': {version.number} is an image that is used as it is: no py= and no keras="
        )
    flavours, locks = version.on(device), []
    if changed.python:
        flavours = tuple(flavour for flavour in flavours if flavour.python.number == changed.python)
        if not flavours:
            flavour, new = _on_python(version, changed.python, device)
            flavours, locks = (flavour,), [new]
    if not changed.keras:
        return LockedVersion(replace(version, flavours=flavours), tuple(locks))
    own = "3" if architectures.read_number_pair(version.number) >= KERAS_3 else "2"
    if changed.keras == own:
        raise UsageError(f"target '{changed}': {version.number} has Keras {own} anyway; leave keras= out")
    if changed.keras == "3":
        raise UsageError(f"target '{changed}': Keras 3 needs TensorFlow {KERAS_3[0]}.{KERAS_3[1]} or newer")
    if catalog.NIGHTLY.fullmatch(version.number):
        raise UsageError(f"target '{changed}': keras=2 goes with a release, and this is a nightly")
    if locks:
        raise UsageError(f"target '{changed}': keras= and a Python that the table lacks do not go together")
    with_keras_2 = []
    for flavour in flavours:
        requirements = (*flavour.requirements, f"tf-keras=={catalog.minor(version.number)}.*")
        lock = _lock(f"{flavour.lock.stem}-keras2", version.number, flavour.python.number, requirements)
        with_keras_2.append(replace(flavour, lock=lock.path, requirements=requirements))
        locks.append(NewLock(lock, (flavour.lock,)))
    return LockedVersion(replace(version, flavours=tuple(with_keras_2)), tuple(locks))


def _on_python(version: Version, python: str, device: FlavourName) -> tuple[Flavour, NewLock]:
    """Return the flavour of a version on a Python that the table lacks for it, and its lock."""
    pythons = catalog.builtin_catalogue().python
    if python not in pythons:
        raise UsageError(f"py={python}: tfcompare knows {', '.join(pythons)}")
    usual = version.on(device)
    if not usual or usual[0].cuda:
        there = ", ".join(flavour.python.number for flavour in usual)
        raise UsageError(f"py={python}: on a GPU, {version.number} runs on {there or 'no Python of the table'} only")
    pinned = [requirement for requirement in usual[0].requirements if not requirement.startswith(("pyarrow", "numpy"))]
    requirements = (*pinned, f"pyarrow=={pythons[python].pyarrow}")
    lock = _lock(f"{version.number}-{device}-py{python}", version.number, python, requirements)
    return _flavour(device, python, lock), NewLock(lock, ())


def _flavour(device: FlavourName, python: str, lock: Lock) -> Flavour:
    base = catalog.builtin_catalogue().python[python]
    digest = user_data.digests().get(base.image, base.digest)
    return Flavour(
        name=device,
        python=Python(number=python, image=base.image, digest=digest),
        lock=lock.path,
        pip_lock=locking.pip_lock(python).path,
        image=base.image,
        digest=digest,
        requirements=lock.requirements,
    )


def _of_wheel(changed: Changed, path: Path, device: FlavourName) -> LockedVersion:
    wheel = read_wheel(path)
    asked, known = changed.python, catalog.builtin_catalogue().python
    if asked and wheel.pythons and asked not in wheel.pythons:
        raise UsageError(f"wheel={path}: it is for Python {', '.join(wheel.pythons)}, and py={asked} was asked for")
    python = asked or (wheel.pythons[-1] if wheel.pythons else "")
    if not python:
        raise UsageError(f"wheel={path}: it does not say for which Python it is; add py=3.11 or the like")
    if python not in known:
        raise UsageError(f"wheel={path}: it is for Python {python}; tfcompare knows {', '.join(known)}")
    release = catalog.find_version(catalog.minor(wheel.number))
    alike = [flavour for flavour in (release.on(device) if release else ()) if flavour.python.number == python]
    if device == "gpu" and not alike:
        raise UsageError(
            f"wheel={path}: the table has no GPU flavour of {wheel.number} on Python {python} to take after"
        )
    beside = [each for each in (alike[0].requirements if alike else ()) if not TENSORFLOW.fullmatch(each)]
    requirements = (*wheel.requirements, *(beside or [f"pyarrow=={known[python].pyarrow}"]))
    lock = _lock(f"wheel-{wheel.digest[:16]}-{device}-py{python}", wheel.number, python, requirements, wheel.digest)
    flavour = replace(alike[0], lock=lock.path) if alike else _flavour(device, python, lock)
    pin = f"{wheel.name}=={wheel.number} --hash=sha256:{wheel.digest}\n"
    version = Version(
        number=wheel.number, aliases=(), keras=release.keras if release else "",
        flavours=(replace(flavour, requirements=requirements, wheel=wheel.path),),
    )  # fmt: skip
    return LockedVersion(version, (NewLock(lock, tuple(flavour.lock for flavour in alike), pin),))


def _lock(stem: str, number: str, python: str, requirements: Sequence[str], digest: str = "") -> Lock:
    """Return a lock in the user's folder; the digest is that of a wheel, which is one of the lock's inputs."""
    own = (f"sha256:{digest}",) if digest else ()
    path = user_data.locks() / f"{architectures.name_lock(stem)}.txt"
    return Lock(path, ON_FIRST_USE + number, python, tuple(requirements), (*BUILD_TOOLS, *own))


def by_name(definitions: Sequence[str], device: FlavourName) -> dict[str, Version]:
    """Return the versions that changed targets stand for, by the names of the targets."""
    return {version.name: version for version in (find_changed(text, device) for text in definitions)}
