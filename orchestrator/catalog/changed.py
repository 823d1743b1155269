"""Versions with the changes of a target, made from the tables and from locks that are written on first use.

What a target does not change stays as the lock of its version has it, as far as the resolver finds that possible.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from packaging.requirements import Requirement

from orchestrator import catalog
from orchestrator.catalog import architectures, lock_on_demand, lockfile, locking, targets, user_data, variables
from orchestrator.catalog.backends import find_links, pin_backend
from orchestrator.catalog.freeze import Freeze, read_freeze
from orchestrator.catalog.lock_on_demand import ON_FIRST_USE, TENSORFLOW
from orchestrator.catalog.lockfile import normalize
from orchestrator.catalog.locking import BUILD_TOOLS, Lock
from orchestrator.catalog.targets import Changed
from orchestrator.catalog.uv import Unresolved, flatten
from orchestrator.catalog.version import Flavour, FlavourName, Python, TargetChanges, Version
from orchestrator.catalog.wheel import Wheel, read_package, read_wheel
from orchestrator.errors import UsageError
from orchestrator.parallel import run_parallel
from orchestrator.terminal.counts import format_count, name_some
from orchestrator.terminal.view import View

# This release is the first with Keras 3. Keras 2 is a separate package since then.
KERAS_3 = (2, 16)
LEGACY = ("TF_USE_LEGACY_KERAS", "1")
# tfcompare needs this package in every target, and TensorFlow does not.
WRITER = "pyarrow"
# A line names at most this many packages.
MOST_NAMED = 12
# The resolver's message says this of packages that do not agree with a pin.
ASKS = re.compile(r"(\S+==\S+) depends on (([\w.-]+)[<>=!~][^\s,]*)")
# Such a line in a lock names what a pin of the user's replaces.
REPLACED = "# Replaced by a pin: "
FORCED = re.compile(r" asks for ([\w.-]+)[<>=!~]")
# uv itself uses several threads.
AT_ONCE = 2


@dataclass(frozen=True)
class NewLock:
    """A lock that no table has, and the pins of the user in it."""

    lock: Lock
    pins: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    # Whether it agrees with what installs it; on another day, the index had other releases of that.
    keeps_tools: bool = True
    # The pin of this wheel takes the place of what the resolver found for its package.
    wheel: Wheel | None = None


@dataclass(frozen=True)
class LockedVersion:
    """A version with changes, the locks that it needs, and the flavours of the version without its changes."""

    version: Version
    locks: tuple[NewLock, ...] = ()
    usual: tuple[Flavour, ...] = ()


def provide_targets(texts: Sequence[str], view: View, device: FlavourName) -> tuple[str, ...]:
    """Lock what no table has, and return the targets with exact numbers."""
    exact: list[str] = []
    for text in texts:
        if targets.is_plain(text):
            exact += lock_on_demand.provide_locks((text,), view, device=device)
            continue
        changed = _take_number(targets.parse_target(text))
        if changed.backend:
            changed = pin_backend(changed, _choose_python(changed), device)
        if changed.version:
            [number] = lock_on_demand.provide_locks((changed.version,), view, device=device)
            changed = replace(changed, version=number)
        locked = _describe(changed, device)
        is_locked = any(new.lock.is_current() for new in locked.locks)
        if changed.today and changed.today != f"{datetime.now(UTC):%Y-%m-%d}" and not is_locked:
            raise UsageError(
                f"target {text!r}: its packages were locked on {changed.today}, and that lock is gone; as-of="
                f"{changed.today} resolves them again"
            )
        _write_locks(locked, text, view)
        for line in _describe_packages(changed, locked, device):
            view.say(line)
        assert locked.version.changes
        exact.append(locked.version.changes.definition)
    return tuple(exact)


def _write_locks(locked: LockedVersion, text: str, view: View) -> None:
    """Write the locks of a target that are missing; one for any Python of the version is enough."""
    missing = [new for new in locked.locks if not new.lock.is_current()]
    if missing:
        pythons = ", ".join(new.lock.python for new in missing)
        view.say(f"{locked.version.name}: locking it for Python {pythons}")
    failed = [message for message in run_parallel(_write, missing, AT_ONCE) if message]
    if failed and len(failed) == len(locked.locks):
        raise UsageError(f"target {text!r}: it cannot be locked: {failed[0]}. Change what it asks for, or its Python")


def _write(new: NewLock) -> str:
    """Write a lock; return why the resolver found none, or ''.

    If a package of the version asks for another release than a pin, the pin counts, as it does for pip if it is
    installed last; the lock then names what it replaces.
    """
    tools, replaced = locking.pip_lock(new.lock.python).path if new.keeps_tools else None, ""
    try:
        text = locking.resolve_lock(new.lock, tools, new.options)
    except Unresolved as error:
        if not new.pins:
            return flatten(str(error))
        asked = dict.fromkeys(ASKS.findall(flatten(str(error))))
        pinned = _name_packages(new.pins)
        replaced = ", ".join(f"{who} asks for {what}" for who, what, name in asked if normalize(name) in pinned)
        try:
            text = locking.resolve_lock(replace(new.lock, overrides=new.pins), tools, new.options)
        except Unresolved as other:
            return flatten(str(other))
    note = f"{REPLACED}{replaced}\n" if replaced else ""
    if new.wheel:
        text = f"{lockfile.remove_pin(text, new.wheel.name).rstrip()}\n{new.wheel.pin}"
    user_data.write_user_file(new.lock.path, f"{note}{text.rstrip()}\n")
    return ""


def _describe_packages(changed: Changed, locked: LockedVersion, device: FlavourName) -> Iterator[str]:
    """Yield what the user has to know of the packages of a target: what moved unasked, and what was left out."""
    name, flavours = locked.version.name, _keep_locked(locked.version.on(device))
    if changed.freeze and (left_out := read_freeze(changed.freeze).left_out):
        yield f"note: {name}: these lines of {changed.freeze} are no releases, and left out: {name_some(left_out)}"
    usual = next((each for each in locked.usual if flavours and each.python == flavours[0].python), None)
    if not (locked.locks and flavours and usual and flavours[0].lock.is_file()):
        return
    before, now = lockfile.list_packages(usual.lock), lockfile.list_packages(flavours[0].lock)
    for line in flavours[0].lock.read_text().splitlines()[:1]:
        if line.startswith(REPLACED):
            yield f"note: {name}: {line.removeprefix(REPLACED)}; the pin counts, as pip would do with a warning"
    own = {read_package(changed.package).name} if changed.package else set()
    asked = _name_packages(changed.pins) | own | ({"tf-keras", "tensorflow"} if changed.keras_2 else set())
    if foreign := sorted((_name_packages(changed.pins) | own) - before.keys()):
        verb = "is" if len(foreign) == 1 else "are"
        yield (
            f"note: {name}: {', '.join(foreign)} {verb} no part of {locked.version.number}, and changes nothing but "
            "for code that imports it"
        )
    moved = [
        f"{package} {before.get(package, 'none')} -> {now.get(package, 'none')}"
        for package in sorted(before.keys() | now.keys())
        if package not in asked and before.get(package) != now.get(package)
    ]
    if moved:
        yield f"{name}: {format_count(len(moved), 'package')} moved as well: {name_some(moved, MOST_NAMED)}"


def find_forced(text: str, device: FlavourName) -> frozenset[str]:
    """Return the packages that a target pins although others of its packages ask for something else."""
    flavours = () if targets.is_plain(text) else find_changed(text, device).on(device)
    heads = [each.lock.read_text().partition("\n")[0] for each in flavours if each.lock.is_file()]
    forced = (name for head in heads if head.startswith(REPLACED) for name in FORCED.findall(head))
    return frozenset(map(normalize, forced))


def _name_packages(pins: Iterable[str]) -> set[str]:
    return set(map(targets.name_pinned, pins))


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
    commit = version.changes.commit if version.changes else ""
    return version.number, version.on(device), version.variables, version.image, commit


def find_changed(text: str, device: FlavourName) -> Version:
    """Return the version with changes that a target stands for."""
    return _describe(targets.parse_target(text), device).version


def _describe(changed: Changed, device: FlavourName) -> LockedVersion:
    changed = _take_number(changed)
    if changed.image:
        return LockedVersion(_name(Version(number="", aliases=(), keras="", flavours=()), changed))
    if changed.backend:
        locked = _of_backend(changed, device)
    else:
        locked = _of_wheel(changed, changed.wheel, device) if changed.wheel else _of_version(changed, device)
    flavours = _keep_locked(locked.version.flavours)
    exact = replace(changed, version=locked.version.number) if changed.version else changed
    return replace(locked, version=_name(replace(locked.version, flavours=flavours), exact))


def _take_number(changed: Changed) -> Changed:
    """Return a target whose TensorFlow is named, if only its freeze names it."""
    if changed.freeze is None or changed.version or changed.wheel or changed.image:
        return changed
    freeze = read_freeze(changed.freeze)
    if not freeze.number:
        raise UsageError(
            f"target '{changed}': no TensorFlow is in {freeze.path}; name it first, as in '2.20 freeze={freeze.path}'"
        )
    return replace(changed, version=freeze.number)


def _choose_python(changed: Changed) -> str:
    """Return the Python of a target without TensorFlow: the user's, or that of the newest release."""
    known = catalog.builtin_catalogue().python
    if changed.python and changed.python not in known:
        raise UsageError(f"target '{changed}': py={changed.python}: tfcompare knows {', '.join(known)}")
    return changed.python or catalog.releases()[-1].on("cpu")[0].python.number


def _of_backend(changed: Changed, device: FlavourName) -> LockedVersion:
    """Return Keras with another backend, which has no number of TensorFlow."""
    python = _choose_python(changed)
    backends = [] if changed.backend in _name_packages(changed.pins) else [changed.backend]
    requirements = (*changed.pins, *backends, WRITER)
    new = _new_lock(changed.backend, device, python, requirements, changed, None)
    preferred = f"{WRITER}=={catalog.builtin_catalogue().python[python].pyarrow}\n"
    lock = replace(new.lock, preferred=preferred, links=find_links)
    version = Version(number="", aliases=(), keras="", flavours=(_flavour(device, python, lock),))
    return LockedVersion(version, (replace(new, lock=lock),))


def _keep_locked(flavours: tuple[Flavour, ...]) -> tuple[Flavour, ...]:
    """Return the flavours whose lock could be made; before any is made, return all."""
    return tuple(flavour for flavour in flavours if flavour.lock.is_file()) or flavours


def _name(version: Version, changed: Changed) -> Version:
    name = targets.check_name(str(changed), changed, version.number)
    own = [LEGACY] if changed.keras_2 else [(variables.BACKEND, changed.backend)] if changed.backend else []
    changes = TargetChanges(
        name=name,
        definition=str(changed),
        variables=(*own, *changed.variables),
        image=changed.image,
        commit=changed.commit,
    )
    return replace(version, changes=changes, aliases=())


def _of_version(changed: Changed, device: FlavourName) -> LockedVersion:
    versions = catalog.resolve_versions((changed.version,), 1)
    if len(versions) > 1:
        raise UsageError(f"target '{changed}': {changed.version} is {len(versions)} versions, and a target is one")
    version = versions[0]
    if version.build and changed.changed_packages:
        raise UsageError(
            f"target '{changed}': {version.number} is an image that is used as it is; {changed.changed_packages[0]} "
            "would change it"
        )
    if changed.keras_2 and architectures.read_number_pair(version.number) < KERAS_3:
        raise UsageError(f"target '{changed}': {version.number} has Keras 2 anyway; leave keras= out")
    if changed.keras_2 and catalog.NIGHTLY.fullmatch(version.number):
        raise UsageError(f"target '{changed}': keras=2 goes with a release, and this is a nightly")
    freeze = read_freeze(changed.freeze) if changed.freeze else None
    if freeze and freeze.number and freeze.number != version.number:
        raise UsageError(
            f"target '{changed}': TensorFlow is pinned twice, as {version.number} and, in {freeze.path}, as "
            f"{freeze.number}; leave the first word out, or take it out of the file"
        )
    usual = version.on(device)
    flavours = tuple(flavour for flavour in usual if flavour.python.number == changed.python) or usual
    if changed.python and flavours[0].python.number != changed.python:
        flavour, new = _on_python(version, changed.python, device)
        if not _changes_packages(changed):
            return LockedVersion(replace(version, flavours=(flavour,)), (new,), usual)
        # The packages of the version are preferred, whichever Python they were locked for.
        flavours = (replace(flavour, lock=usual[0].lock),)
    if not _changes_packages(changed):
        return LockedVersion(replace(version, flavours=flavours))
    extra = (f"tf-keras=={catalog.minor(version.number)}.*",) if changed.keras_2 else ()
    made = [_change_packages(version.number, flavour, changed, freeze, extra) for flavour in flavours]
    locks = tuple(new for _, new in made)
    # The version itself has no flavour on a Python that the table lacks for it.
    with_locks = tuple(replace(each, like=each.like if each.like in usual else None) for each, _ in made)
    return LockedVersion(replace(version, flavours=with_locks), locks, usual)


def _changes_packages(changed: Changed) -> bool:
    """Return whether a target has other packages than its version, apart from its Python."""
    others = (changed.pins, changed.package, changed.freeze, changed.as_of, changed.today)
    return changed.keras_2 or any(others)


def _change_packages(
    number: str, flavour: Flavour, changed: Changed, freeze: Freeze | None, extra: Sequence[str] = ()
) -> tuple[Flavour, NewLock]:
    """Return a flavour with other packages, and its lock."""
    own = [each for each in flavour.requirements if TENSORFLOW.fullmatch(each)]
    beside = [each for each in flavour.requirements if each not in own]
    package = _read_package(changed, flavour.python.number) if changed.package else None
    requirements = _require((*own, *extra), beside, changed, freeze, package)
    new = _new_lock(number, flavour.name, flavour.python.number, requirements, changed, flavour.lock, package)
    wheel = package.path if package else None
    return replace(flavour, lock=new.lock.path, requirements=requirements, like=flavour, wheel=wheel), new


def _read_package(changed: Changed, python: str) -> Wheel:
    """Return the wheel that takes the place of a package; raise UsageError if it does not go with the target."""
    assert changed.package
    package = read_package(changed.package)
    if package.pythons and python not in package.pythons:
        raise UsageError(
            f"target '{changed}': wheel={package.path} is for Python {', '.join(package.pythons)}, and this target has "
            f"{python}; build it for that, or add py= with one of these"
        )
    if package.name in _name_packages(changed.pins):
        raise UsageError(f"target '{changed}': {package.name} is pinned, and is a wheel as well; leave one of them out")
    return package


def _require(
    own: Sequence[str], beside: Sequence[str], changed: Changed, freeze: Freeze | None, package: Wheel | None = None
) -> tuple[str, ...]:
    """Return what a target requires: TensorFlow, what the user pins, and the rest of its version in any number.

    A lock is preferred for the rest, so it moves only where nothing else fits.
    """
    pinned = _name_packages(changed.pins) | ({package.name} if package else set())
    others = [Requirement(each).name for each in beside]
    if freeze:
        others = list(freeze.pins)
    elif changed.as_of or changed.today:
        others = []
    required = [*own, *(each for each in others if not pinned & _name_packages([each])), *changed.pins]
    required += package.requirements if package else ()
    return (*required, *([] if WRITER in _name_packages(required) else [WRITER]))


def _new_lock(
    number: str, device: FlavourName, python: str, requirements: tuple[str, ...], changed: Changed, like: Path | None,
    wheel: Wheel | None = None,
) -> NewLock:  # fmt: skip
    """Return a lock in the user's folder, named after all that decides what is in it.

    `like` is the lock whose numbers are preferred.
    """
    preferred = lockfile.content(like).decode() if like else ""
    if changed.as_of or changed.today:
        writer = lockfile.list_packages(like).get(WRITER) if like else None
        preferred = f"{WRITER}=={writer}\n" if writer else ""
    options: tuple[str, ...] = ("--prerelease", "allow") if catalog.NIGHTLY.fullmatch(number) else ()
    if changed.as_of:
        options += ("--exclude-newer", f"{changed.as_of}T23:59:59Z")
    about = (
        *options,
        changed.today,
        f"sha256:{wheel.digest}" if wheel else "",
        f"like {hashlib.sha256(preferred.encode()).hexdigest()}",
    )
    inputs = tuple(filter(None, about))
    named = hashlib.sha256("\n".join((*requirements, *inputs)).encode()).hexdigest()[:12]
    lock = _lock(f"{number}-{device}-py{python}-{named}", number, python, requirements, inputs)
    keeps_tools = not (changed.as_of or changed.today)
    return NewLock(replace(lock, preferred=preferred), changed.pins, options, keeps_tools, wheel)


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
    like = lockfile.content(usual[0].lock).decode()
    return _flavour(device, python, lock), NewLock(replace(lock, preferred=like))


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
    beside = beside or [f"{WRITER}=={known[python].pyarrow}"]
    requirements = (*wheel.requirements, *beside)
    if _changes_packages(changed):
        freeze = read_freeze(changed.freeze) if changed.freeze else None
        requirements = _require(wheel.requirements, beside, changed, freeze)
    like = alike[0].lock if alike else None
    new = _new_lock(wheel.number, device, python, requirements, changed, like, wheel)
    flavour = alike[0] if alike else _flavour(device, python, new.lock)
    version = Version(
        number=wheel.number, aliases=(), keras=release.keras if release else "",
        flavours=(replace(flavour, lock=new.lock.path, requirements=requirements, wheel=wheel.path),),
    )  # fmt: skip
    return LockedVersion(version, (replace(new, wheel=wheel),), tuple(alike))


def _lock(stem: str, number: str, python: str, requirements: Sequence[str], inputs: Sequence[str] = ()) -> Lock:
    """Return a lock in the user's folder; it depends on its requirements, and on further inputs."""
    path = user_data.locks() / f"{architectures.name_lock(stem)}.txt"
    return Lock(path, ON_FIRST_USE + number, python, tuple(requirements), (*BUILD_TOOLS, *inputs))


def by_name(definitions: Sequence[str], device: FlavourName) -> dict[str, Version]:
    """Return the versions that changed targets stand for, by the names of the targets."""
    return {version.name: version for version in (find_changed(text, device) for text in definitions)}
