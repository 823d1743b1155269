"""What environments have in common: the variables of a worker, and the log of a build."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

# Flags that a user sets on purpose; they reach every version alike.
PASSED_ON = ("TF_", "OMP_", "KMP_", "XLA_", "MKL_")


def worker_variables() -> dict[str, str]:
    """An allow-list: nothing else of the caller's environment may make two runs differ."""
    given = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
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
    """What an install or an image build prints: kept in a file, and shown line by line to whoever watches."""

    def __init__(self, path: Path, watch: Callable[[str], None]) -> None:
        self.path = path
        self._watch = watch
        self._tail: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    def follow(self, process: "subprocess.Popen[str]") -> None:
        """Keeps every line that a program prints, to its end; `stop` ends it from another thread."""
        self._process = process
        for line in process.stdout or ():
            self.line(line)
        self._process = None

    def stop(self) -> None:
        if process := self._process:
            process.kill()

    def line(self, text: str) -> None:
        text = text.rstrip()
        if not text:
            return
        with self.path.open("a") as log:
            log.write(text + "\n")
        self._tail = [*self._tail[-39:], text]
        self._watch(text)

    @property
    def used(self) -> bool:
        """Whether anything had to be done at all."""
        return bool(self._tail)

    def tail(self, lines: int = 12) -> str:
        return "\n".join(f"  | {line}" for line in self._tail[-lines:])

    def mentions(self, *words: str) -> bool:
        return any(word in line for line in self._tail for word in words)
