"""Parts that all environments have in common: the variables of a worker, and the log of a build."""

import fcntl
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator import files
from orchestrator.catalog.user_data import home
from orchestrator.engines.worker.channel import kill_group

# Variables that a user sets for TensorFlow on purpose; they reach every version alike.
PASSED_ON = re.compile("(TF|OMP|KMP|XLA|MKL)_.*")
# Terraform's variables begin with TF_ as well, and hold passwords and tokens.
NOT_PASSED_ON = re.compile("TF_(VAR|TOKEN|CLI|HTTP)_.*|TF_ENCRYPTION|.*_(PASSWORD|TOKEN|SECRET|KEY)", re.IGNORECASE)


def cache() -> Path:
    """Return the folder for everything that can be created again."""
    base = os.environ.get("TFCOMPARE_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(base or home("TFCOMPARE_CACHE") / ".cache") / "tfcompare"


def is_passed_on(name: str) -> bool:
    """Return whether workers and scheduled nightly runs receive a variable of the caller, as one of TensorFlow's."""
    return bool(PASSED_ON.fullmatch(name)) and not NOT_PASSED_ON.fullmatch(name)


def worker_variables() -> dict[str, str]:
    """Return the variables of a worker.

    This is an allow-list: nothing else in the caller's environment may make two runs differ.
    """
    given = {name: value for name, value in os.environ.items() if is_passed_on(name)}
    return {
        **given,
        "LANG": "C.UTF-8",
        "KERAS_BACKEND": "tensorflow",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore",
    }


class BuildLog:
    """The output of an install or an image build, kept in a file and shown line by line to a user who watches."""

    def __init__(
        self, path: Path, watch: Callable[[str], None], say: Callable[[str], None] = lambda text: None
    ) -> None:
        self.path = path
        self._watch = watch
        self._say = say
        self._tail: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        # What builds print and what the index server says come from two threads.
        self._writing = threading.Lock()

    def run(self, argv: list[str], env: dict[str, str]) -> int:
        """Run a program, keep every line that it prints, and return its exit code; another thread can `stop` it."""
        self.line("$ " + " ".join(argv))
        # In a group of its own: pip and venv start programs too, which must not outlive an install that is ended.
        with subprocess.Popen(
            argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        ) as process:
            self._process = process
            try:
                if self._stopped:
                    kill_group(process.pid)
                for line in process.stdout or ():
                    self.line(line)
            except BaseException:
                kill_group(process.pid)
                raise
            finally:
                self._process = None
        return process.returncode

    def stop(self) -> None:
        """End the running program with everything it started, and any later program immediately."""
        self._stopped = True
        if process := self._process:
            kill_group(process.pid)

    def line(self, text: str) -> None:
        text = text.rstrip()
        if not text:
            return
        with self._writing:
            if not self._tail:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "a", opener=files.append_opener) as log:
                log.write(text + "\n")
            self._tail = [*self._tail[-39:], text]
        self._watch(text)

    def announce(self, text: str) -> None:
        """Write a line that the user sees even if builds are not shown."""
        self.line(text)
        self._say(text)

    @property
    def used(self) -> bool:
        """Whether anything had to be done at all."""
        return bool(self._tail)

    def tail(self, lines: int = 12) -> str:
        return "\n".join(f"  | {line}" for line in self._tail[-lines:])

    @property
    def end(self) -> str:
        """The end of the log, long enough to explain a failure."""
        return "\n".join(self._tail)


@contextmanager
def hold_lock(path: Path, log: BuildLog, waiting: str) -> Iterator[None]:
    """Hold a lock file; log `waiting` while another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.line(waiting)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
