"""Install Pythons that this machine lacks: uv downloads them into a folder in tfcompare's cache."""

import os
import re
from pathlib import Path

from orchestrator.catalog.uv import find_uv
from orchestrator.child_environment import pass_variables
from orchestrator.engines.build_log import BuildLog, hold_lock
from orchestrator.engines.scratch import Scratch
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.interpreters import Interpreter
from orchestrator.options import EngineOptions

# The archives for Linux on x86-64 are 21 MB (3.8), 28 MB (3.7) and 31 MB (3.11).
SIZE_MB = 30
# uv no longer lists a build of Python 3.7; this list names the last one, which is still published.
OWN_LIST = Path(__file__).with_name("pythons.json")
OWN_LISTED = ("3.7",)
FLAG, VARIABLE = "--no-python-downloads", "UV_PYTHON_DOWNLOADS"
FORBIDDING = ("never", "manual", "false")
LIST_VARIABLE = "UV_PYTHON_DOWNLOADS_JSON_URL"
# These variables say where uv downloads Pythons from.
MIRRORS = (LIST_VARIABLE, "UV_PYTHON_INSTALL_MIRROR", "UV_ASTRAL_MIRROR_URL")
CAUSE = re.compile(r"(?:cause|Caused by): (?P<text>.+)", re.IGNORECASE)
# A short reason does not need these details, which are in the log.
DETAILS = re.compile(r" for url \(.*\)|: https?://\S*| \(os error \d+\)|failed to lookup address information: ")


class NotDownloaded(Exception):
    """The reason why a Python was not installed, in a few words."""


def find_ban(options: EngineOptions) -> str:
    """Return the flag or the variable that forbids downloads, or ''."""
    if not options.python_downloads:
        return FLAG
    value = os.environ.get(VARIABLE, "")
    return f"{VARIABLE}={value}" if value.lower() in FORBIDDING else ""


class Downloads:
    """The downloads of one engine; each Python is tried once. Archives are taken from a folder, if there is one."""

    def __init__(self, options: EngineOptions, archives: Path | None = None) -> None:
        self._options = options
        self._archives = archives
        self._failed: dict[str, str] = {}

    def find_archive(self, number: str) -> str:
        """Return the full number, such as 3.11.7, of a Python whose archive is in the folder, or ''."""
        names = sorted(path.name for path in self._archives.iterdir()) if self._archives else []
        found = [re.search(rf"cpython-({re.escape(number)}\.\d+)(?!\d)", name) for name in names]
        return next((match[1] for match in found if match), "")

    def keep_archive(self, number: str, log: BuildLog) -> None:
        """Put the archive of a Python into the folder of archives; raise NotDownloaded."""
        if ban := find_ban(self._options):
            raise NotDownloaded(f"{ban} forbids downloading it")
        log.announce(f"downloading Python {number} (about {SIZE_MB} MB)")
        with Scratch() as scratch:
            self._run_uv(number, scratch.path, log)

    def install(self, number: str, log: BuildLog) -> Interpreter:
        """Download Python `number` unless another process has done it meanwhile; raise NotDownloaded."""
        folder = interpreters.own_pythons()
        try:
            with hold_lock(folder / f".{number}.lock", log, f"Python {number} is being downloaded; waiting for it"):
                interpreters.forget_interpreters()
                return interpreters.find_interpreter(number) or self._download_once(number, folder, log)
        except OSError as error:
            raise NotDownloaded(f"{folder} cannot be written: {error.strerror}") from error

    def _download_once(self, number: str, folder: Path, log: BuildLog) -> Interpreter:
        if number not in self._failed:
            try:
                return self._download(number, folder, log)
            except NotDownloaded as error:
                self._failed[number] = str(error)
        raise NotDownloaded(self._failed[number])

    def _download(self, number: str, folder: Path, log: BuildLog) -> Interpreter:
        if packed := self.find_archive(number):
            log.announce(f"installing Python {packed} into {folder}")
        else:
            log.announce(f"downloading Python {number} (about {SIZE_MB} MB) into {folder}")
        self._run_uv(number, folder, log)
        interpreters.forget_interpreters()
        if interpreter := interpreters.find_interpreter(number):
            return interpreter
        raise NotDownloaded(f"the build does not run on this machine{interpreters.describe_broken((number,))}")

    def _run_uv(self, number: str, folder: Path, log: BuildLog) -> None:
        """Install a Python into a folder, from its archive if that is here."""
        uv = find_uv()
        if uv is None:
            raise NotDownloaded("uv is not installed")
        wanted = self.find_archive(number) or number
        command = [uv, "python", "install", wanted, "--install-dir", str(folder)]
        command += ["--no-bin", "--no-registry", "--no-config", "--no-cache", "--no-progress"]
        if number in OWN_LISTED and LIST_VARIABLE not in os.environ:
            command += ["--python-downloads-json-url", OWN_LIST.as_uri()]
        variables = pass_variables() | {name: os.environ[name] for name in MIRRORS if name in os.environ}
        if bundle := self._options.ca_bundle:
            variables["SSL_CERT_FILE"] = str(bundle.absolute())
        if self._archives:
            variables["UV_PYTHON_CACHE_DIR"] = str(self._archives)
        if log.run(command, variables) != 0:
            raise NotDownloaded(find_uv_cause(log.end))


def find_uv_cause(output: str) -> str:
    """Return the cause that uv names last, without addresses."""
    if "No download found" in output:
        return "there is no build for this machine"
    causes = [match["text"] for match in CAUSE.finditer(output)]
    last = causes[-1] if causes else (output.strip().splitlines() or ["uv failed without a message"])[-1]
    return DETAILS.sub("", last.removeprefix("error: ")).strip()
