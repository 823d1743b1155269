"""Versions that no table has: exact patches and nightlies, locked into the user's folder on first use."""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product

from packaging.version import Version as Number

from orchestrator import catalog
from orchestrator.bundled import IMAGES
from orchestrator.catalog import architectures, locking, user_data, user_table
from orchestrator.catalog.locking import Lock
from orchestrator.catalog.package_index import list_releases
from orchestrator.catalog.table import FlavourTable
from orchestrator.catalog.uv import Unresolved
from orchestrator.catalog.version import FlavourName, Version
from orchestrator.errors import UsageError
from orchestrator.machine.supported import find_architecture
from orchestrator.terminal.view import View

TENSORFLOW = re.compile(r"(?P<package>tensorflow(-cpu|-gpu)?|tf-nightly(-cpu)?)(?P<extra>\[[\w-]+\])?==(?P<number>\S+)")
NIGHTLIES = ("tf-nightly-cpu", "tf-nightly")
HEAD = "# Your own versions, in the form of tfcompare's table of versions.\n"
ON_FIRST_USE = "tfcompare, for the version "


def provide_locks(
    names: Sequence[str],
    view: View,
    packages: Mapping[str, str] | None = None,
    *,
    device: FlavourName = "cpu",
) -> tuple[str, ...]:
    """Lock the named patches and nightlies that no table has for this device, and return the names.

    A nightly's name is replaced by its number. `packages` holds the nightlies of the index, if they have been queried
    already.
    """
    found = tuple(_provide_one(name, view, packages, device) for name in names)
    if not find_architecture().is_usual and device == "cpu":
        _lock_for_architecture(found, view)
    return found


def _lock_for_architecture(names: Sequence[str], view: View) -> None:
    """Lock versions of the tables for another architecture; a version that cannot be locked is left out."""
    entries = catalog.builtin_catalogue().version
    named: set[Version] = set()
    for name in names:
        # A name that stands for no version of the tables raises the error where it is resolved.
        with suppress(UsageError):
            named.update(catalog.resolve_versions((name,), fewest=1))
    for version in sorted(named, key=lambda version: Number(version.number)):
        entry = entries.get(version.number)
        if entry is None or entry.cpu is None or any(flavour.lock.exists() for flavour in version.on("cpu")):
            continue
        if not architectures.has_wheels(version.number):
            continue
        view.say(f"{version.number}: locking it for {find_architecture().name}")
        try:
            python, _, text = _resolve_first(version.number, "cpu", entry.cpu)
        except Unresolved as error:
            view.say(f"warning: {version.number} cannot be locked for {find_architecture().name}:\n{error}")
            continue
        user_data.write_user_file(user_data.locks() / catalog.lock_name(version.number, "cpu", python), text)
    catalog.reread()


def _provide_one(name: str, view: View, packages: Mapping[str, str] | None, device: FlavourName) -> str:
    version = catalog.find_version(name)
    if version and _is_complete(version, device):
        _touch_locks(version)
        return name
    if catalog.EXACT.fullmatch(name):
        _lock_patch(name, view, device)
    elif catalog.NIGHTLY.fullmatch(name):
        return _lock_nightly(name, view, nightlies(device) if packages is None else packages, device)
    return name


def _is_complete(version: Version, device: FlavourName) -> bool:
    """Return whether a version is complete for a device; one that the user or the table describes always is."""
    return bool(version.on(device)) or not (version.flavours and is_locked_by_us(version))


def _touch_locks(version: Version) -> None:
    """Record the time of last use on a nightly's lock, so that those long unused can be removed one day."""
    for flavour in version.flavours:
        if catalog.NIGHTLY.fullmatch(version.number) and flavour.lock.is_relative_to(user_data.locks()):
            with suppress(OSError):
                os.utime(flavour.lock)


def _lock_patch(number: str, view: View, device: FlavourName) -> None:
    """Lock a patch like its release in the table, but with its own number.

    The first Python that has wheels for it is used; on a GPU, the release names the Python that fits its CUDA.
    """
    release = catalog.minor(number)
    entries = catalog.builtin_catalogue().version
    siblings = [entry for other, entry in entries.items() if catalog.minor(other) == release]
    sibling = next((entry for entry in siblings if release in entry.aliases), None)
    usual: FlavourTable | None = getattr(sibling, device) if sibling else None
    if usual is None:
        what = f"no release {release} is" if sibling is None else f"release {release} has no {device.upper()} flavour"
        raise UsageError(
            f"{number}: {what} in the table of versions, so its requirements are unknown. "
            f"Describe it in {user_data.find_user_table()}, like a version in {IMAGES / 'versions.toml'}"
        )
    view.say(f"{number}: locking it{_describe_device(device)} with the requirements of {release}")
    try:
        python, wanted, text = _resolve_first(number, device, usual)
    except Unresolved as error:
        message = str(error)
        if _is_unknown(message):
            near = catalog.find_version(release)
            other = f"; {near.number} of the same release is available" if near else ""
            why = f"the index has no TensorFlow of that number for any Python here{other}"
        elif "no wheels" in message:
            why = f"the index has no wheel of it for any Python here:\n{message}"
        else:
            why = f"it cannot be locked:\n{message}\nCheck the network, or the index that uv is set to use"
        raise UsageError(f"{number}: {why}") from error
    _store_lock(number, device, usual.model_copy(update={"pythons": (python,), "requirements": wanted}), text, view)


def _resolve_first(number: str, device: FlavourName, usual: FlavourTable) -> tuple[str, tuple[str, ...], str]:
    """Return the first Python on which a version can be resolved like its release, with its requirements and lock.

    Raises Unresolved, with the message for the first Python, if there is none.
    """
    message = ""
    known = catalog.builtin_catalogue()
    pythons = architectures.order_pythons(usual.pythons, known.python) if device == "cpu" else usual.pythons
    for python, keep_keras in product(pythons, (True, False)):
        wanted = architectures.adapt(_requirements(usual, number, python, keep_keras=keep_keras))
        try:
            text = _resolve(number, device, python, (*wanted, *known.find_libraries(usual)))
        except Unresolved as error:
            message = message or str(error)
            # Another Python or Keras changes nothing if the number is unknown or the index fails.
            if _is_unknown(str(error)) or "No solution found" not in str(error):
                break
            continue
        return python, wanted, text
    raise Unresolved(message)


def _describe_device(device: FlavourName) -> str:
    return " for a GPU" if device == "gpu" else ""


def _is_unknown(message: str) -> bool:
    return (
        "no version of" in message
        or "there are no versions" in message
        or "not found in the package registry" in message
    )


def _requirements(flavour: FlavourTable, number: str, python: str, *, keep_keras: bool) -> list[str]:
    """Return the requirements of a patch, derived from those of its release.

    A Python that the release does not use needs other versions of pyarrow and numpy, so those two pins do not apply.
    """
    wanted = []
    for requirement in flavour.requirements:
        name = re.split(r"[\[=<>!~;]", requirement, maxsplit=1)[0].strip()
        if match := TENSORFLOW.fullmatch(requirement):
            wanted.append(f"{match['package']}{match['extra'] or ''}=={number}")
        elif (python in flavour.pythons or name not in ("pyarrow", "numpy")) and (keep_keras or name != "keras"):
            wanted.append(requirement)
    if python not in flavour.pythons:
        wanted.append(f"pyarrow=={catalog.builtin_catalogue().python[python].pyarrow}")
    return wanted


def _resolve(
    number: str, device: FlavourName, python: str, wanted: tuple[str, ...], options: Sequence[str] = ()
) -> str:
    tools = locking.pip_lock(python)
    lock = Lock(
        user_data.locks() / catalog.lock_name(number, device, python),
        ON_FIRST_USE + number, python, wanted, tools.requirements,
    )  # fmt: skip
    return locking.resolve_lock(lock, tools.path, options)


def _store_lock(number: str, device: FlavourName, flavour: FlavourTable, text: str, view: View) -> None:
    """Write a lock and its entry into the user's folder.

    The lock is written first, so that no table names a lock that does not exist.
    """
    [python] = flavour.pythons
    with user_data.changing():
        # Another run may have locked it meanwhile, and a table must not have a version twice.
        catalog.reread()
        known = catalog.find_version(number)
        if known and known.on(device):
            return
        path = user_data.write_user_file(user_data.locks() / catalog.lock_name(number, device, python), text)
        before = (
            user_data.find_user_table().read_text(encoding="utf-8") if user_data.find_user_table().exists() else HEAD
        )
        keras = next((pin[1] for pin in re.finditer(r"^keras(?:-nightly)?==(\S+)", text, re.MULTILINE)), "")
        user_data.write_user_file(
            user_data.find_user_table(), user_table.add_flavour(before, number, device, flavour, keras)
        )
    catalog.reread()
    view.say(f"{number}: locked{_describe_device(device)} for Python {python} in {path}")


def is_locked_by_us(version: Version) -> bool:
    """Return whether this module wrote everything in the user's folder about a version, so that it may be removed."""
    return all(
        flavour.lock.is_relative_to(user_data.locks())
        and flavour.lock.is_file()
        and flavour.lock.read_text().startswith(locking.WRITTEN_BY + ON_FIRST_USE + version.number)
        for flavour in version.flavours
    )


def forget_lock(version: Version) -> None:
    """Remove a version that was locked on first use.

    The entry is removed first, so that no table names a lock that is gone.
    """
    with user_data.changing():
        before = user_data.find_user_table().read_text(encoding="utf-8")
        after = user_table.remove_version(before, version.number)
        expected = tomllib.loads(before)
        del expected["version"][version.number]
        if {"version": {}, **tomllib.loads(after)} != expected:
            raise UsageError(
                f"{user_data.find_user_table()}: {version.number} has an entry that tfcompare did not write; "
                "remove it by hand"
            )
        user_data.write_user_file(user_data.find_user_table(), after)
    catalog.reread()
    for flavour in version.flavours:
        flavour.lock.unlink(missing_ok=True)


def _lock_nightly(name: str, view: View, packages: Mapping[str, str], device: FlavourName) -> str:
    package, number = find_nearest_nightly(name, packages, view)
    version = catalog.find_version(number)
    if version and _is_complete(version, device):
        _touch_locks(version)
        return number
    usual = _find_newest(device)
    python = usual.pythons[0]
    view.say(f"{number}: locking it{_describe_device(device)}, on Python {python}")
    message = ""
    # The pins of a release are not used, because a nightly comes with the Keras, the numpy and the CUDA of its day.
    tensorflow = f"{NIGHTLIES[-1]}[and-cuda]" if device == "gpu" else package
    wanted = (f"{tensorflow}=={number}", f"pyarrow=={catalog.builtin_catalogue().python[python].pyarrow}")
    day = date_of(number)
    until = ("--exclude-newer", f"{day[:4]}-{day[4:6]}-{day[6:]}T23:59:59Z")
    for options in (("--prerelease", "allow", *until), ("--prerelease", "allow")):
        try:
            text = _resolve(number, device, python, wanted, options)
            break
        except Unresolved as error:
            message = str(error)
    else:
        advice = "" if "No solution found" in message else "\nCheck the network, or the index that uv is set to use"
        raise UsageError(f"{number}: this nightly cannot be locked{_describe_device(device)}:\n{message}{advice}")
    # The nightly's CUDA is that of the lock or, if the table lacks it, the newest one before it in the table. The
    # nightly is assumed to hold code for the same GPUs as the newest release.
    cuda = usual.cuda
    locked = re.search(r"^nvidia-cuda-runtime(-cu\d+)?==(?P<number>\d+\.\d+)", text, re.MULTILINE)
    if cuda and locked:
        older = [each for each in catalog.builtin_catalogue().cuda if Number(each) <= Number(locked["number"])]
        cuda = max(older, key=Number, default=cuda)
    same = {"pythons": (python,), "requirements": wanted, "cuda": cuda, "cudnn": None}
    _store_lock(number, device, usual.model_copy(update=same), text, view)
    return number


def _find_newest(device: FlavourName) -> FlavourTable:
    """Return the flavour of the newest release of the table, whatever the user's own table has."""
    entries = catalog.builtin_catalogue().version
    flavours = {
        number: getattr(entry, device) for number, entry in entries.items() if catalog.minor(number) in entry.aliases
    }
    newest: FlavourTable = flavours[max((number for number, each in flavours.items() if each), key=Number)]
    return newest


def nightlies(device: FlavourName = "cpu") -> dict[str, str]:
    """Return every nightly that the index has for the Python of the newest release, mapped to its package."""
    python = _find_newest(device).pythons[0]
    packages = NIGHTLIES if device == "cpu" and find_architecture().is_usual else NIGHTLIES[-1:]
    return {number: package for package in reversed(packages) for number in list_releases(package, python)}


def find_nearest_nightly(name: str, packages: Mapping[str, str], view: View) -> tuple[str, str]:
    """Return (package, number) of the nightly that is meant.

    For a day without one, the nearest nightly before it is taken (the oldest if there is none), and a message says so.
    """
    dated = {number: date_of(number) for number in packages if re.search(r"\.dev\d{8}$", number)}
    if not dated:
        raise UsageError(f"{name}: the index has no nightly for the newest release's Python")
    match = catalog.NIGHTLY.fullmatch(name)
    assert match is not None
    if name in packages:
        return packages[name], name
    wanted = match["date"] or (date_of(name) if "dev" in name else "")
    if not wanted:
        number = max(dated, key=lambda number: (dated[number], Number(number)))
        return packages[number], number
    before = {number: day for number, day in dated.items() if day <= wanted}
    # If a day has two nightlies, the one with the higher number counts.
    day = max(before.values()) if before else min(dated.values())
    number = max((number for number in dated if dated[number] == day), key=Number)
    if dated[number] != wanted:
        view.say(f"{name}: the index has no nightly of that day; using {number}")
    return packages[number], number


def date_of(number: str) -> str:
    return number[-8:]
