"""Where tfcompare cannot work, one line says so and what to do instead, and nothing that is not there is imported."""

import os
import platform
import subprocess
import sys

import pytest

from orchestrator.engines.venv import engine
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.errors import EngineUnavailable
from orchestrator.machine import supported
from orchestrator.options import EngineOptions

SYSTEMS = {
    ("Linux", "x86_64"): "",
    ("Linux", "aarch64"): "",
    ("Darwin", "arm64"): "tfcompare works on Linux only, and this is macOS: use it in a Linux virtual machine, or on a "
    "Linux machine over ssh",
    (
        "Windows",
        "AMD64",
    ): "tfcompare works on Linux only, and this is Windows: install WSL 2 (`wsl --install`), and use it in there",
    ("FreeBSD", "amd64"): "tfcompare works on Linux only, and this is FreeBSD: use it on a Linux machine",
    ("Linux", "ppc64le"): "TensorFlow has no wheel for Linux on ppc64le: use a machine with x86-64 or 64-bit ARM",
    ("Linux", "armv7l"): "TensorFlow has no wheel for Linux on armv7l: use a machine with x86-64 or 64-bit ARM",
}


@pytest.mark.parametrize(("system", "line"), SYSTEMS.items(), ids=map("-".join, SYSTEMS))
def test_a_system_works_or_has_one_line(monkeypatch: pytest.MonkeyPatch, system: tuple[str, str], line: str):
    monkeypatch.setattr(platform, "system", lambda: system[0])
    monkeypatch.setattr(platform, "machine", lambda: system[1])
    assert supported.find_system_obstacle() == line


# What Python has on Linux and not on Windows.
WITHOUT_LINUX = """
import os, platform, signal, sys
platform.system = lambda: {system!r}
for module in ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "syslog"):
    sys.modules[module] = None
for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_PATH", "O_CLOEXEC", "O_NONBLOCK", "uname", "getuid", "sched_getaffinity"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL"):
    delattr(signal, name)
from orchestrator.__main__ import main
sys.argv = ["tfcompare", *{words!r}]
main()
"""


@pytest.mark.parametrize("words", [["run", "2.13", "2.14"], ["report"], ["--help"], []], ids=str)
@pytest.mark.parametrize("system", ["Windows", "Darwin"])
def test_without_what_linux_has_the_line_is_all(system: str, words: list[str]):
    code = WITHOUT_LINUX.format(system=system, words=words)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"tfcompare: {SYSTEMS[system, {'Windows': 'AMD64', 'Darwin': 'arm64'}[system]]}\n"


def test_on_linux_there_is_no_such_line():
    command = [sys.executable, "-c", "from orchestrator.__main__ import main\nmain()", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("tfcompare ")


LIBRARIES = {
    "glibc 2.36": "",
    "glibc 2.28": "",
    "glibc 2.17": "the wheels need glibc 2.28 or newer, and this system has 2.17",
    "": "TensorFlow's wheels need glibc, and this system has another C library, such as musl",
}


@pytest.mark.parametrize(("library", "line"), LIBRARIES.items())
def test_virtual_environments_need_a_glibc_for_wheels(monkeypatch: pytest.MonkeyPatch, library: str, line: str):
    monkeypatch.setattr(os, "confstr", lambda name: library or None)
    assert supported.find_libc_obstacle() == line
    venv = VenvEngine(EngineOptions())
    if line:
        with pytest.raises(EngineUnavailable, match=rf"{line}; take --engine docker"):
            venv.check()
    else:
        assert venv.check().startswith("virtual environments")
    venv.close()


def test_a_library_that_knows_no_such_name_is_another_one(monkeypatch: pytest.MonkeyPatch):
    def confstr(name: str) -> str:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "confstr", confstr)
    assert engine.find_libc_obstacle().startswith("TensorFlow's wheels need glibc")
