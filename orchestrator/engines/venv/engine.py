"""Versions in virtual environments of this machine, for use without a Docker engine.

Only versions whose CUDA comes as packages can use a GPU.

An environment is kept in the user's cache, named after its lock, its installer and its Python. A file lock keeps two
runs from building the same environment, and any process from removing one in use. A marker that is written last
distinguishes a complete environment from an incomplete one.
"""

import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

from packaging.utils import canonicalize_version

from orchestrator import catalog, files
from orchestrator.bundled import WORKLOADS
from orchestrator.catalog import architectures, lock_hash, lockfile
from orchestrator.catalog.user_data import cache
from orchestrator.catalog.version import Flavour, FlavourName, Version
from orchestrator.catalog.workloads import BUILTIN
from orchestrator.child_environment import pass_variables
from orchestrator.engines import BUILD_TIME, SOURCE, WHEELS, Outlook, StartedWorker, WorkerPaths, build_errors
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.cuda_libraries import add_driver, code_variables, find_variables, keep_xla_code
from orchestrator.engines.docker.limits import share_processes
from orchestrator.engines.environment import WHEEL, worker_variables
from orchestrator.engines.folder_lock import FolderLock, exclusive, wait
from orchestrator.engines.layers import LocalUv, describe_layers
from orchestrator.engines.scratch import Scratch
from orchestrator.engines.venv import interpreters, pythons
from orchestrator.engines.venv.donor import (
    MARKER,
    Donor,
    describe_python,
    hold_donor,
    link_from,
    read_environment,
    select,
)
from orchestrator.engines.venv.interpreters import Interpreter
from orchestrator.engines.worker.channel import ProcessChannel
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.machine.gpu import find_gpus
from orchestrator.machine.supported import find_libc_obstacle
from orchestrator.model import EnvironmentFacts
from orchestrator.options import EngineOptions
from orchestrator.terminal.counts import name_some

# These would make pip ask another server than our own index, or ask our index in another way.
OVERRULED = ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_PROXY", "ALL_PROXY", "all_proxy")
QUIET = ("--disable-pip-version-check", "--no-input")
# This folder of an environment holds the code that a driver has compiled for it.
GPU_CODE = "gpu-code"
# A pin with a marker may be left out on this machine.
CONDITIONAL = re.compile(r"^([\w.-]+)[^#\n]*;", re.MULTILINE)
# These say why a version cannot be in a virtual environment, and what to do about it.
NO_IMAGES = ("an image runs on the docker engine only", "take --engine docker")
NO_LIBRARIES = ("its CUDA comes with an image, and not as packages", "take --engine docker, or version 2.5 or newer")


def environments_folder() -> Path:
    return cache() / "environments"


@dataclass(frozen=True)
class VenvEnvironment:
    path: Path
    facts: EnvironmentFacts
    options: EngineOptions
    # This is the home of its workers, which is empty when the run begins.
    home: Path
    # This keeps the environment from being removed until the engine is closed or this object is dropped.
    lock: FolderLock | None = field(default=None, repr=False, compare=False)
    tensorflow: str = ""

    @property
    def uv(self) -> LocalUv:
        return LocalUv(self.options)

    def start(self, paths: WorkerPaths, stream: Path) -> StartedWorker:
        # A user's keras.json, or files that another run has left, must not affect some versions and not others.
        asked = {**dict(self.options.variables), **self.facts.variables}
        variables = {**(self._add_gpu(asked) if self.options.gpu else asked), **describe_layers(paths.layers)}
        if paths.xla_code:
            variables |= keep_xla_code(self.facts, str(paths.xla_code.resolve()), asked)
        own = {"HOME": str(self.home), "PATH": f"{self.path / 'bin'}:/usr/bin:/bin"}
        env = {**worker_variables(paths.seed, variables), **own}
        argv = [str(self.path / "bin" / "python"), str(WORKLOADS / "worker.py")]
        limits = (self.options.cpus, self.options.memory_mb, paths.results, share_processes(paths.workers))
        try:
            channel = ProcessChannel(argv, env, paths.log, *limits, xla_code=paths.xla_code)
        except OSError as error:
            raise self._explain_start(argv[0], error) from error
        users = (str(paths.own_workloads.resolve()),) if paths.own_workloads else ()
        remedy = f"remove {self.path} and run again to install it again"
        return StartedWorker(channel, (str(BUILTIN), *users), str(stream.resolve()), self.tensorflow, remedy)

    def build(self, folder: Path, log: BuildLog) -> None:
        argv = [*_modules(self.path), *WHEEL, "--wheel-dir", str(folder / WHEELS), str(folder / SOURCE)]
        # A build asks no index, so it gets no login of one.
        passed = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        if code := log.run(argv, {**passed, "PIP_CONFIG_FILE": os.devnull, **BUILD_TIME}):
            raise EnvironmentFailed(f"pip ended with {code}", target=self.facts.target, detail=log.tail())

    def _add_gpu(self, asked: Mapping[str, str]) -> dict[str, str]:
        """Return these variables with those for a worker's GPUs, for CUDA's libraries and for compiled code."""
        keys = _join_keys(self.options)
        code = self.path / GPU_CODE
        with suppress(OSError):
            code.mkdir(exist_ok=True)
        return {
            **add_driver({**asked, **find_variables(self.facts, str(self.path), asked)}),
            # This makes the indices the same as those of nvidia-smi.
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            **({"CUDA_VISIBLE_DEVICES": keys} if keys else {}),
            # The code is kept in the home if the environment cannot be written.
            **code_variables(str(code if os.access(code, os.W_OK) else self.home / GPU_CODE)),
        }

    def _explain_start(self, python: str, error: OSError) -> EnvironmentFailed:
        """Return why a worker was not started: only some of the causes are in the environment."""
        if error.filename == python and not self.path.exists():
            what, advice = f"{self.path} was removed", "run again to install it again"
        elif error.filename == python:
            what, advice = f"{python} does not start ({error.strerror})", f"remove {self.path} and run again"
        elif error.filename and not Path(error.filename).parent.exists():
            what = f"cannot write {error.filename}: {Path(error.filename).parent} was removed"
            advice = "make it again, then repeat the command or continue the run with --resume"
        else:
            where = f"cannot write {error.filename}: " if error.filename else "no process could be started for it: "
            what, advice = f"{where}{error.strerror}", ""
        return EnvironmentFailed(what, advice, target=self.facts.target)


class VenvEngine:
    def __init__(self, options: EngineOptions, archives: Path | None = None) -> None:
        """Prepare an engine; `archives` is a folder for the archives of Pythons, which are taken from it and kept."""
        self._options = options
        # This import is slow, and reports import this module without needing an index.
        from orchestrator.engines.index.proxy import Index

        self._index = Index(options.index_url, options.wheelhouse, options.ca_bundle)
        self._downloads = pythons.Downloads(options, archives)
        self._held = ExitStack()
        self._homes: Scratch | None = None
        self._making_home = threading.Lock()

    def check(self) -> str:
        if obstacle := find_libc_obstacle():
            raise EngineUnavailable(obstacle, "take --engine docker, or a system with a newer glibc")
        if self._options.gpu and not find_gpus():
            raise EngineUnavailable(
                "--gpu: neither NVML nor nvidia-smi shows a GPU on this machine", "see whether `nvidia-smi` works"
            )
        memory_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
        self._options.check_limits(os.sched_getaffinity(0), memory_mb)
        return f"virtual environments, kept in {environments_folder()}"

    def sweep(self) -> list[str]:
        # Workers end with their host, and `remains.sweep` removes folders for every engine.
        return []

    def outlook(self, version: Version) -> Outlook:
        if why := self._find_obstacle(version):
            return Outlook("impossible", why[0], advice=why[1])
        flavour, interpreter = _choose(version, self._options.device)
        if interpreter is None:
            if self._downloads.find_archive(flavour.python.number):
                return Outlook("to build", "to be installed", f"Python {flavour.python.number} is in the file")
            if ban := pythons.find_ban(self._options):
                return Outlook("impossible", interpreters.missing(_numbers(version, self._options.device), ban))
            download = f"Python {flavour.python.number} would be downloaded (about {pythons.SIZE_MB} MB)"
            return Outlook("to build", "to be installed", download)
        if (environment_path(flavour, interpreter) / MARKER).exists():
            return Outlook("ready", f"ready (Python {interpreter.version})")
        return Outlook("to build", f"to be installed (Python {interpreter.version}, {interpreter.path})")

    def _find_obstacle(self, version: Version) -> tuple[str, str] | None:
        if version.image:
            return NO_IMAGES
        if obstacle := architectures.find_lacking_architecture(version, self._options.device):
            return obstacle
        return None if _flavours(version, self._options.device) else NO_LIBRARIES

    def prepare(self, version: Version, log: BuildLog) -> VenvEnvironment:
        if why := self._find_obstacle(version):
            raise EnvironmentFailed(*why, target=version.name)
        flavour, interpreter = _choose(version, self._options.device)
        if interpreter is None:
            interpreter = self._download(version, flavour.python.number, log)
        path = environment_path(flavour, interpreter)
        lock = self._lock(path, lambda: self._build(version, flavour, interpreter, path, log), version, log)
        identity = identify(path, interpreter)
        facts = EnvironmentFacts(
            target=version.name,
            kind="venv",
            identity=identity,
            lock=lock_hash(flavour),
            python=interpreter.version,
            details={
                "path": str(path),
                "interpreter": str(interpreter.path),
                **lockfile.describe_wheel(flavour.lock, flavour.wheel),
                **({"gpus": _join_keys(self._options) or "all"} if self._options.gpu else {}),
            },
            packages=lockfile.list_packages(flavour.pip_lock, flavour.lock),
            variables=version.variables,
            # The code that a driver compiles is not part of a version.
            size_bytes=files.tree_size(path, leave_out=path / GPU_CODE),
        )
        # Versions are prepared by several threads. Their homes share one folder with one lock, which the engine removes
        # when it is closed.
        with self._making_home:
            self._homes = self._homes or self._held.enter_context(Scratch())
        home = Path(tempfile.mkdtemp(dir=self._homes.path))
        return VenvEnvironment(path, facts, self._options, home, lock, version.number)

    def _lock(self, path: Path, build: Callable[[], None], version: Version, log: BuildLog) -> FolderLock | None:
        """Return the shared lock of an environment, built unless it is ready; None if a ready one cannot be locked."""
        try:
            lock = FolderLock(path)
            try:
                _share(lock, path, build, log)
            except BaseException:
                lock.release()
                raise
        except OSError as error:
            # A ready environment in a read-only shared cache needs no lock, because this user cannot remove it either.
            if not (path / MARKER).exists():
                raise _unwritable(version.name, path.parent, error) from error
            return None
        self._held.callback(lock.release)
        return lock

    def _download(self, version: Version, number: str, log: BuildLog) -> Interpreter:
        ban = "" if self._downloads.find_archive(number) else pythons.find_ban(self._options)
        if ban:
            message = interpreters.missing(_numbers(version, self._options.device), ban)
            raise EnvironmentFailed(message, target=version.name, lacks_python=True)
        try:
            return self._downloads.install(number, log)
        except pythons.NotDownloaded as error:
            message = f"Python {number} could not be downloaded ({error})"
            raise EnvironmentFailed(message, target=version.name, lacks_python=True) from error

    def _build(self, version: Version, flavour: Flavour, interpreter: Interpreter, path: Path, log: BuildLog) -> None:
        lockfile.check_locks(flavour.pip_lock, flavour.lock)
        pins = [*lockfile.read_lock(flavour.pip_lock), *lockfile.read_lock(flavour.lock)]
        described = lockfile.describe_pins(pins)
        try:
            shutil.rmtree(path, ignore_errors=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            # Targets of one TensorFlow are made one after another, because each can start from the one before it.
            name = version.number or version.name
            alike = environments_folder() / f"of-{name}-{interpreter.version}"
            with (
                exclusive(alike, lambda: log.line(f"another environment of {name} is being made; waiting for it")),
                hold_donor(environments_folder(), described, interpreter) as donor,
            ):
                if donor:
                    self._build_from(donor, version, flavour, interpreter, path, log)
                else:
                    self._build_new(version, flavour, interpreter, path, log)
                _check_packages(version, path, flavour)
                marker = {
                    "version": version.number,
                    "lock": flavour.lock.name,
                    "build": interpreter.build,
                    "python": describe_python(interpreter),
                    "pins": described,
                }
                (path / MARKER).write_text(json.dumps(marker))
        except OSError as error:
            raise _unwritable(version.name, path, error) from error

    def _build_new(
        self, version: Version, flavour: Flavour, interpreter: Interpreter, path: Path, log: BuildLog
    ) -> None:
        asking = self._find_index(log)
        self._install_pip(version, flavour, interpreter, path, asking, log)
        lock = flavour.lock
        if flavour.wheel:
            lock = path / lock.name
            lock.write_bytes(lockfile.locate_wheel(lockfile.content(flavour.lock), flavour.wheel))
        pip = self._pip(path, asking)
        self._run(version, [*pip, *_without_resolving(flavour), "-r", str(lock)], asking, log)

    def _install_pip(
        self,
        version: Version,
        flavour: Flavour,
        interpreter: Interpreter,
        path: Path,
        asking: dict[str, str],
        log: BuildLog,
    ) -> None:
        """Make an environment that has only the locked pip and what it builds with."""
        # Python's own pip is needed only to install the locked one; unpacking it saves two seconds.
        own = ["--without-pip"] if interpreter.pip else []
        self._run(version, [str(interpreter.path), "-I", "-m", "venv", *own, str(path)], asking, log)
        if interpreter.pip:
            [packages] = path.glob("lib/python*/site-packages")
            shutil.unpack_archive(interpreter.pip, packages, "zip")
        only_wheels = catalog.forbid_builds(flavour.pip_lock)
        self._run(version, [*self._pip(path, asking), only_wheels, "-r", str(flavour.pip_lock)], asking, log)

    def download(self, version: Version, folder: Path, log: BuildLog) -> Flavour:
        """Put every file into a folder that an environment is installed from; return the flavour that was chosen."""
        if why := self._find_obstacle(version):
            raise EnvironmentFailed(*why, target=version.name)
        flavour, interpreter = _choose(version, self._options.device)
        interpreter = interpreter or self._download(version, flavour.python.number, log)
        lockfile.check_locks(flavour.pip_lock, flavour.lock)
        asking = self._find_index(log)
        try:
            with Scratch() as scratch:
                # pip takes the files that suit the Python which runs it.
                path = scratch.path / "environment"
                self._install_pip(version, flavour, interpreter, path, asking, log)
                pip = ["download" if word == "install" else word for word in self._pip(path, asking)]
                for lock, options in (
                    (flavour.pip_lock, [catalog.forbid_builds(flavour.pip_lock)]),
                    (flavour.lock, list(_without_resolving(flavour))),
                ):
                    self._run(version, [*pip, *options, "--dest", str(folder), "-r", str(lock)], asking, log)
        except OSError as error:
            raise _unwritable(version.name, folder, error) from error
        return flavour

    def keep_archive(self, number: str, log: BuildLog) -> None:
        """Put the archive of a Python into the folder of archives; raise NotDownloaded."""
        self._downloads.keep_archive(number, log)

    def _build_from(
        self, donor: Donor, version: Version, flavour: Flavour, interpreter: Interpreter, path: Path, log: BuildLog
    ) -> None:
        """Build an environment from another one, which has most of its packages already."""
        changed, gone = name_some(sorted(donor.changed)), name_some(sorted(donor.gone))
        differences = [f"installing {changed}" if changed else "", f"removing {gone}" if gone else ""]
        log.line(f"starting from {donor.path.name}: {'; '.join(filter(None, differences)) or 'nothing differs'}")
        asking = self._find_index(log)
        pip = self._pip(path, asking)
        self._run(version, [str(interpreter.path), "-I", "-m", "venv", "--without-pip", str(path)], asking, log)
        link_from(donor.path, path)
        pins = [*lockfile.read_lock(flavour.pip_lock), *lockfile.read_lock(flavour.lock)]
        # pip leaves an installed package alone if a wheel in a file has the same version number.
        replaced = {lockfile.normalize(pins[-1].name)} & donor.changed if flavour.wheel else set()
        if removed := sorted(donor.gone | replaced):
            self._run(version, [*_modules(path), "pip", "uninstall", *QUIET, "--yes", *removed], asking, log)
        if donor.changed:
            lock, text = path / flavour.lock.name, select(pins, donor.changed).encode()
            lock.write_bytes(lockfile.locate_wheel(text, flavour.wheel) if flavour.wheel and replaced else text)
            self._run(version, [*pip, *_without_resolving(flavour), "-r", str(lock)], asking, log)

    def _find_index(self, log: BuildLog) -> dict[str, str]:
        """Return the variables that lead pip to the user's packages, or none if it asks its usual index."""
        if folder := self._index.wheelhouse:
            # pip reads a folder itself, so this also works without a network, where even loopback may be down.
            return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": folder.absolute().as_uri(), "PIP_CONFIG_FILE": os.devnull}
        return self._index.variables(log)

    def _pip(self, path: Path, asking: Mapping[str, str]) -> list[str]:
        """Return the command that installs what a lock names."""
        # -I keeps the working directory off the path; Pythons before 3.11 have no -P.
        pip = [*_modules(path), "pip", "install", *QUIET, "--require-hashes"]
        return [*pip, "--cert", str(self._options.ca_bundle)] if self._options.ca_bundle and not asking else pip

    def _run(self, version: Version, argv: list[str], asking: dict[str, str], log: BuildLog) -> None:
        passed = {name: value for name, value in pass_variables().items() if not (asking and name in OVERRULED)}
        # Many users' pip settings have `user = true`, which pip refuses in a virtual environment.
        if (code := log.run(argv, {**passed, **asking, "PIP_USER": "0"})) == 0:
            return
        head = "its environment could not be installed"
        failure = build_errors.of_install(log.end, folder=environments_folder(), wheelhouse=self._index.wheelhouse)
        message = f"{head}: {failure}" if failure else f"{head} ({argv[0]} ended with {code}). {build_errors.UNKNOWN}"
        raise EnvironmentFailed(message, target=version.name, detail=f"{log.tail()}\nThe whole log is {log.path}")

    def storage(self) -> tuple[str, Path]:
        return "environments", environments_folder()

    def close(self) -> None:
        self._index.close()
        self._held.close()


def _modules(path: Path) -> tuple[str, ...]:
    """Return the beginning of a command that runs a module of an environment."""
    return str(path / "bin" / "python"), "-I", "-m"


def _without_resolving(flavour: Flavour) -> tuple[str, ...]:
    """Return pip's options for a lock, which is complete, so that nothing is left to resolve.

    Builds are not isolated, so that the few source packages are built with the locked setuptools and not with one
    that is fetched without a lock.
    """
    return "--no-deps", "--no-build-isolation", catalog.forbid_builds(flavour.lock)


def _check_packages(version: Version, path: Path, flavour: Flavour) -> None:
    """Raise EnvironmentFailed unless every pin of the locks is installed, without running code of the packages.

    A configuration file of pip may send packages elsewhere or turn an install into a dry run.
    """
    folders = [str(folder) for folder in path.glob("lib/python*/site-packages")]
    present = {
        (lockfile.normalize(package.metadata["Name"] or ""), canonicalize_version(package.version))
        for package in metadata.distributions(path=folders)
    }
    locks = (flavour.pip_lock, flavour.lock)
    conditional = {lockfile.normalize(name) for lock in locks for name in CONDITIONAL.findall(lock.read_text())}
    missing = [
        f"{name}=={number}"
        for name, number in lockfile.list_packages(*locks).items()
        if name not in conditional and (name, canonicalize_version(number)) not in present
    ]
    if missing:
        raise EnvironmentFailed(
            f"pip reported no error and did not install {name_some(missing)} into {path}",
            "`pip config list` shows the settings of pip: remove those that change what is installed or where to "
            "(such as dry-run, target, prefix or root), and run again",
            target=version.name,
        )


def _share(lock: FolderLock, path: Path, build: Callable[[], None], log: BuildLog) -> None:
    """Take the shared lock of an environment that is ready.

    Before that, build it alone, or wait until another process has built it.
    """
    ready = path / MARKER

    def share() -> bool:
        if lock.refusal and not ready.exists():
            raise lock.refusal
        # Another process may finish the environment just before the lock is taken.
        if not ready.exists() and lock.exclude() and not ready.exists():
            build()
        return lock.share() and ready.exists()

    wait(share, lambda: log.line(f"another process is installing or using {path.name}; waiting for it"))


def _join_keys(options: EngineOptions) -> str:
    return ",".join(gpu.key for gpu in options.chosen_gpus)


def _flavours(version: Version, device: FlavourName) -> tuple[Flavour, ...]:
    """Return the flavours that need no image except that of their Python."""
    return tuple(flavour for flavour in version.on(device) if flavour.is_plain)


def _choose(version: Version, device: FlavourName) -> tuple[Flavour, Interpreter | None]:
    """Return the first flavour that has an environment, or whose Python is installed, or the first flavour and None."""
    flavours = _flavours(version, device)
    for find in (_find_ready_python, lambda flavour: interpreters.find_interpreter(flavour.python.number)):
        for flavour in flavours:
            if interpreter := find(flavour):
                return flavour, interpreter
    return flavours[0], None


def _find_ready_python(flavour: Flavour) -> Interpreter | None:
    """Return a Python that has a complete environment of a flavour, or None.

    It need not be the one that stands first in PATH: the environment may have been brought here with its Python.
    """
    first = interpreters.find_interpreter(flavour.python.number)
    if first and (environment_path(flavour, first) / MARKER).exists():
        return first
    for marker in sorted(environments_folder().glob(f"{glob.escape(flavour.lock.stem)}-*/{MARKER}")):
        python = interpreters.probe(marker.parent / "bin" / "python")
        if isinstance(python, Interpreter) and environment_path(flavour, python) == marker.parent:
            # The link in the environment is followed, because the environment itself may be removed and made again.
            return replace(python, path=python.path.resolve())
    return None


def has_python(version: Version, device: FlavourName) -> bool:
    """Return whether a Python that this version runs on is installed."""
    return any(map(interpreters.find_interpreter, _numbers(version, device)))


def _numbers(version: Version, device: FlavourName) -> tuple[str, ...]:
    return tuple(flavour.python.number for flavour in _flavours(version, device))


def environment_path(flavour: Flavour, interpreter: Interpreter) -> Path:
    key = hashlib.sha256(f"{lock_hash(flavour)} {interpreter.version} {interpreter.prefix}".encode()).hexdigest()
    return environments_folder() / f"{flavour.lock.stem}-{key[:16]}"


def identify(path: Path, interpreter: Interpreter) -> str:
    """Return what identifies an environment: its folder and, if changed since its install, its Python's build.

    An environment links to its Python, so a new build of that needs no new install.
    """
    if read_environment(path).get("build", interpreter.build) == interpreter.build:
        return path.name
    return f"{path.name}-{hashlib.sha256(interpreter.build.encode()).hexdigest()[:8]}"


def _unwritable(version: str, path: Path, error: OSError) -> EnvironmentFailed:
    failure = build_errors.of_install(error.strerror or "", folder=environments_folder())
    if failure:
        return EnvironmentFailed(f"cannot write {path}: {failure}", target=version)
    return EnvironmentFailed(
        f"cannot write {path}: {error.strerror}", "set TFCOMPARE_CACHE to another folder", target=version
    )
