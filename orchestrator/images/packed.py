"""Virtual environments in one file, for machines without a network: the packages of their locks, and their Pythons.

The file holds what environments are installed from. So its author need not be trusted: on the other machine, pip takes
a package only if a lock there has its hash, and uv takes a Python only if it knows its hash.
"""

import io
import json
import re
import shutil
import tarfile
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

from orchestrator import catalog, files
from orchestrator.catalog import lock_hash
from orchestrator.catalog.user_data import cache
from orchestrator.catalog.version import FlavourName, Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.index.upstream import project_of
from orchestrator.engines.scratch import Scratch
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.engines.venv.pythons import NotDownloaded
from orchestrator.errors import EnvironmentFailed, Interrupted, NothingSelected, UsageError
from orchestrator.images import sizes
from orchestrator.machine.supported import find_architecture
from orchestrator.measure.prepare import make_ready
from orchestrator.options import EngineOptions
from orchestrator.terminal import strict_json
from orchestrator.terminal.view import View

CONTENTS, PACKAGES, PYTHONS = "environments.json", "packages", "pythons"
# An environment has about a hundred packages, and all releases of TensorFlow together about a thousand.
MOST_CONTENTS_BYTES, MOST_MEMBERS, MOST_VERSIONS = 2**20, 20_000, 500
PYTHON_ARCHIVE = re.compile(r"[0-9a-f]+-cpython-[\w.+%-]+\.tar\.(gz|zst)")
CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class Contents:
    """What a file says of itself: for which machines it is, and the Python and the hash of the lock of each version."""

    architecture: str
    device: FlavourName
    versions: dict[str, tuple[str, str]]


def pack(versions: Collection[Version], options: EngineOptions, path: Path, view: View) -> None:
    """Write a file with everything that the environments of these versions are installed from."""
    if local := [version.name for version in versions if not _is_of_table(version, options.device)]:
        raise NothingSelected(
            f"{', '.join(local)}: only a release that every tfcompare knows can be packed, because the other machine "
            "checks the packages by its own locks"
        )
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file")
    logs = _find_log_folder()
    with Scratch() as scratch:
        packages, pythons = scratch.path / PACKAGES, scratch.path / PYTHONS
        packages.mkdir()
        pythons.mkdir()
        flavours = {}
        with closing(VenvEngine(options, pythons)) as engine:
            for version in versions:
                view.say(f"{version.name}: downloading its packages")
                with _stopping(BuildLog(logs / f"download-{version.name}.log", view, version.name)) as log:
                    flavours[version.name] = engine.download(version, packages, log)
            for number in sorted({flavour.python.number for flavour in flavours.values()}):
                try:
                    with _stopping(BuildLog(logs / f"python-{number}.log", view, number)) as log:
                        engine.keep_archive(number, log)
                except NotDownloaded as error:
                    view.say(f"Python {number} is not in the file ({error}); the other machine needs one")
        about = {name: (flavour.python.number, lock_hash(flavour)) for name, flavour in flavours.items()}
        _write(path, scratch.path, Contents(find_architecture().name, options.device, about))


def _is_of_table(version: Version, device: FlavourName) -> bool:
    return all(flavour.lock.is_relative_to(catalog.LOCKS) and not flavour.wheel for flavour in version.on(device))


@contextmanager
def _stopping(log: BuildLog) -> Iterator[BuildLog]:
    try:
        yield log
    except KeyboardInterrupt as stop:
        log.stop()
        raise Interrupted("interrupted; nothing was written") from stop


def _find_log_folder() -> Path:
    return cache() / "builds" / f"{time.strftime('%Y%m%d-%H%M%S')}-environments"


def _write(path: Path, folder: Path, contents: Contents) -> None:
    text = strict_json.dump(asdict(contents), indent=1).encode()
    try:
        with files.open_atomically(path) as file, tarfile.TarFile(fileobj=file, mode="w") as tar:
            about = tarfile.TarInfo(CONTENTS)
            about.size = len(text)
            tar.addfile(about, io.BytesIO(text))
            for part in sorted((*folder.glob(f"{PACKAGES}/*"), *folder.glob(f"{PYTHONS}/*"))):
                if part.is_file() and _is_expected(part.relative_to(folder).as_posix()):
                    member = tarfile.TarInfo(part.relative_to(folder).as_posix())
                    member.size = part.stat().st_size
                    with part.open("rb") as content:
                        tar.addfile(member, content)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _is_expected(name: str) -> bool:
    """Return whether a member is a package or the archive of a Python, directly in its folder."""
    match PurePosixPath(name).parts:
        case (folder, plain) if f"{folder}/{plain}" == name:
            return bool(
                project_of(plain) if folder == PACKAGES else folder == PYTHONS and PYTHON_ARCHIVE.fullmatch(plain)
            )
    return False


def unpack(path: Path, options: EngineOptions, view: View) -> tuple[list[str], list[str]]:
    """Install the environments of a file; return the versions that are ready, and why the others are not."""
    with Scratch() as scratch:
        contents = _read(path, scratch.path)
        options = replace(options, gpu=contents.device == "gpu", wheelhouse=scratch.path / PACKAGES)
        chosen, problems = [], []
        known = {version.name: version for version in catalog.all_versions()}
        for name, (python, lock) in contents.versions.items():
            flavours = known[name].on(options.device) if name in known else ()
            packed = tuple(
                flavour for flavour in flavours if (flavour.python.number, lock_hash(flavour)) == (python, lock)
            )
            if packed:
                chosen.append(replace(known[name], flavours=packed))
            else:
                problems.append(
                    f"{name}: not installed: this tfcompare has no such lock; pack it with the same tfcompare"
                )
        with closing(VenvEngine(options, scratch.path / PYTHONS)) as engine:
            try:
                made = make_ready(tuple(chosen), engine, _find_log_folder(), view) if chosen else {}
            except KeyboardInterrupt as stop:
                raise Interrupted("interrupted; environments that are ready are kept") from stop
    failed = [result for result in made.values() if isinstance(result, EnvironmentFailed)]
    problems += [str(failure) for failure in failed]
    return [name for name, result in made.items() if not isinstance(result, EnvironmentFailed)], problems


def _read(path: Path, folder: Path) -> Contents:
    """Put the packages and Pythons of a file into a folder, and return what the file says of itself."""
    for part in (PACKAGES, PYTHONS):
        (folder / part).mkdir()
    try:
        with path.open("rb") as file, tarfile.TarFile(fileobj=file) as tar:
            contents = _parse(tar)
            here = find_architecture().name
            if contents.architecture != here:
                raise UsageError(f"{path}: it is for machines with {contents.architecture}, and this one has {here}")
            _extract(path, tar, folder)
            if not any((folder / PACKAGES).iterdir()):
                raise tarfile.ReadError("there is no package in it")
    except (tarfile.TarError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{path}: not a complete file of environments ({error}). Nothing was installed; pack it again"
        ) from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    return contents


def _parse(tar: tarfile.TarFile) -> Contents:
    first = tar.next()
    if first is None or first.name != CONTENTS or not first.isreg() or first.size > MOST_CONTENTS_BYTES:
        raise tarfile.ReadError(f"it does not begin with {CONTENTS}")
    content = tar.extractfile(first)
    assert content is not None
    stated = json.loads(content.read())
    versions = {str(name): (str(python), str(lock)) for name, (python, lock) in stated["versions"].items()}
    if stated["device"] not in ("cpu", "gpu") or not 1 <= len(versions) <= MOST_VERSIONS:
        raise ValueError("it names no device or no versions")
    if not all(name.isprintable() and len(name) <= catalog.LONGEST_NAME for name in versions):
        raise ValueError("a version in it has a name that no version has")
    return Contents(str(stated["architecture"]), stated["device"], versions)


def _extract(path: Path, tar: tarfile.TarFile, folder: Path) -> None:
    """Copy the members into a folder as plain files, at most as much as its disk has free."""
    room = shutil.disk_usage(folder).free
    for number, member in enumerate(iter(tar.next, None)):
        assert member is not None
        if number > MOST_MEMBERS:
            raise tarfile.ReadError(f"it has more than {MOST_MEMBERS} members")
        if not member.isreg() or member.issparse() or not _is_expected(member.name) or (folder / member.name).exists():
            raise tarfile.ReadError(f"{member.name!r} is no package and no Python, or is in it twice")
        room -= member.size
        if room < 0:
            raise UsageError(
                f"{path}: its contents need more than the {sizes.format_size(shutil.disk_usage(folder).free)} that are "
                f"free in {folder.parent}; free some space, or set TMPDIR to another folder"
            )
        content = tar.extractfile(member)
        assert content is not None
        with content, (folder / member.name).open("xb") as copy:
            shutil.copyfileobj(content, copy, CHUNK_BYTES)
            if copy.tell() != member.size:
                raise tarfile.ReadError("a file is cut short")
