"""The log of a build, which is kept in a file and shown while the build runs."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator import files
from orchestrator.child_process import kill_group
from orchestrator.file_lock import try_lock, wait_for_lock
from orchestrator.terminal.text import clean_log
from orchestrator.terminal.view import View

# A killed program is gone at once, unless the kernel is still writing for it.
EXIT_S = 5.0


class BuildLog:
    """The output of an install or an image build, kept in a file and shown line by line to a user who watches."""

    def __init__(self, path: Path, view: View | None = None, version: str = "") -> None:
        self.path = path
        self._view = view or View()
        self._version = version
        self._tail: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        # An interrupt must neither miss a program that is just being started nor let another begin.
        self._starting = threading.Lock()
        # The output of builds and the messages of the index server come from two threads.
        self._writing = threading.Lock()

    def run(self, argv: list[str], env: dict[str, str]) -> int:
        """Run a program, keep every line that it prints, and return its exit code; another thread can `stop` it."""
        self.line("$ " + " ".join(argv))
        with self._starting:
            if self._stopped:
                raise KeyboardInterrupt
            # The process group is separate, because programs that pip and venv start must not outlive the install.
            self._process = subprocess.Popen(
                argv,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="backslashreplace",
                start_new_session=True,
            )
        with self._process as process:
            try:
                for line in process.stdout or ():
                    self.line(line)
            except BaseException:
                kill_group(process.pid)
                raise
            finally:
                self._process = None
        return process.returncode

    def stop(self) -> None:
        """End the running program with everything it started, and let no other begin."""
        with self._starting:
            self._stopped = True
            process = self._process
        if process:
            kill_group(process.pid)
            with suppress(subprocess.TimeoutExpired):
                process.wait(EXIT_S)

    def line(self, text: str) -> None:
        text = clean_log(text).strip("\n").rstrip()
        if not text:
            return
        with self._writing:
            if not self._tail:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "a", opener=files.append_opener) as log:
                log.write(text + "\n")
            self._tail = [*self._tail[-39:], text]
        self._view.preparing(self._version, text)

    def show(self, text: str) -> None:
        """Show a line without writing it to the log."""
        self._view.preparing(self._version, text)

    def announce(self, text: str) -> None:
        """Write a line that the user sees even if builds are not shown."""
        self.line(text)
        self._view.say(text)

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
        if not try_lock(handle.fileno()):
            log.line(waiting)
            wait_for_lock(handle.fileno())
        yield
