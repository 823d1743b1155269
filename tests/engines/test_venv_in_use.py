"""No process removes or reinstalls an environment that another one has prepared and not yet closed."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog.version import Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.folder_lock import FolderLock
from orchestrator.engines.venv import engine as venv
from orchestrator.engines.venv.engine import MARKER, VenvEngine
from orchestrator.images import venv_cache
from orchestrator.options import EngineOptions
from tests.support.commands import called
from tests.support.heard import Listener
from tests.support.live_runs import until
from tests.support.packages import locked, own_pip, wheel

WAIT_S = 120


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def made(tmp_path: Path) -> Version:
    """A version of one small package, with a lock that no table has."""
    packages = tmp_path / "packages"
    packages.mkdir()
    (tmp_path / "pip.txt").write_text(locked(own_pip(packages, "3.11")))
    (tmp_path / "lock.txt").write_text(locked(wheel(packages, "little_one")))
    [version] = catalog.resolve_versions(["2.13.0"], fewest=1)
    [flavour] = [flavour for flavour in version.on("cpu") if flavour.python.number == "3.11"]
    return replace(version, flavours=(replace(flavour, lock=tmp_path / "lock.txt", pip_lock=tmp_path / "pip.txt"),))


def engine(folder: Path) -> VenvEngine:
    return VenvEngine(EngineOptions(wheelhouse=folder / "packages"))


def quiet(path: Path) -> BuildLog:
    return BuildLog(path)


def obey(made: Version, folder: Path, orders: Connection) -> None:
    """Prepare, tell where, then do as told: `child` starts a process, `close` closes the engine."""
    own = engine(folder)
    orders.send(str(own.prepare(made, quiet(folder / "holder.log")).path))
    while (order := orders.recv()) != "end":
        if order == "child":
            orders.send(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
        else:
            own.close()
            orders.send("closed")


class Holder:
    """Another process that has prepared a version."""

    def __init__(self, made: Version, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._orders, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=obey, args=(made, folder, theirs))
        self.process.start()
        theirs.close()
        self.path = Path(self._answer())

    def order(self, order: str) -> str:
        self._orders.send(order)
        return self._answer()

    def _answer(self) -> str:
        assert self._orders.poll(WAIT_S), "the other process does not answer"
        return str(self._orders.recv())

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self._orders.close()


@pytest.fixture
def holder(made: Version, tmp_path: Path) -> Iterator[Holder]:
    other = Holder(made, tmp_path)
    yield other
    other.end()


@pytest.fixture
def prune(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """The real command; it returns what it prints."""

    def prune() -> str:
        assert called(monkeypatch, "environments", "prune", "--yes") == 0
        return capsys.readouterr().out

    return prune


def test_prune_leaves_what_another_process_has_prepared_until_that_closes_it(
    holder: Holder, prune: Callable[[], str]
) -> None:
    printed = prune()
    assert (holder.path / MARKER).exists()
    assert "nothing to free" in printed
    assert f"left alone: {holder.path.name}: it is in use" in printed
    assert not venv_cache.remove_environment(holder.path), "a run that begins between the question and the answer"
    assert holder.order("close") == "closed"
    assert "freed " in prune()
    assert not holder.path.exists()


def test_a_process_that_is_killed_holds_nothing_and_neither_do_its_children(
    holder: Holder, prune: Callable[[], str]
) -> None:
    child = int(holder.order("child"))
    try:
        opened = [os.path.realpath(file) for file in Path(f"/proc/{child}/fd").iterdir()]
        assert not [name for name in opened if name.endswith(".lock")]
        holder.process.kill()
        holder.process.join()
        assert "freed " in prune()
        assert not holder.path.exists()
    finally:
        os.kill(child, 9)


def test_two_processes_use_it_at_once_and_the_last_one_frees_it(holder: Holder, made: Version, tmp_path: Path) -> None:
    with closing(engine(tmp_path)) as own:
        assert own.prepare(made, quiet(tmp_path / "log")).path == holder.path
        assert not (tmp_path / "log").exists(), "nothing is installed, and nobody waits"
        holder.order("close")
        assert not venv_cache.remove_environment(holder.path)
    assert venv_cache.remove_environment(holder.path)


def test_an_install_waits_until_no_process_uses_what_it_replaces(holder: Holder, made: Version, tmp_path: Path) -> None:
    (holder.path / MARKER).unlink()
    (holder.path / "kept").touch()
    lines: list[str] = []
    with closing(engine(tmp_path)) as own:
        thread = threading.Thread(
            target=own.prepare, args=(made, BuildLog(tmp_path / "log", Listener(watch=lines.append)))
        )
        thread.start()
        deadline = time.monotonic() + WAIT_S
        while not lines and time.monotonic() < deadline:
            time.sleep(0.05)
        assert lines == [f"another process is installing or using {holder.path.name}; waiting for it"]
        assert (holder.path / "kept").exists()
        holder.order("close")
        thread.join(WAIT_S)
        assert (holder.path / MARKER).exists()
        assert not (holder.path / "kept").exists()
        assert not venv_cache.remove_environment(holder.path), "who has installed it uses it"


def test_an_interrupt_ends_a_run_that_waits_for_another_install(tfcompare: str, tmp_path: Path) -> None:
    """The other holds the locks of both environments, and goes on undisturbed."""
    versions = ("1.14.0", "2.0.0")
    with ExitStack() as held:
        for version in catalog.resolve_versions(versions):
            flavour, interpreter = venv._choose(version, "cpu")
            assert interpreter is not None
            lock = FolderLock(venv.environment_path(flavour, interpreter))
            held.callback(lock.release)
            assert lock.exclude()
        argv = [tfcompare, "run", "--engine", "venv", "--versions", ",".join(versions), "--verbose"]
        with subprocess.Popen(
            [*argv, "--output", str(tmp_path / "run")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            logs = [tmp_path / "run" / "logs" / f"build-{version}.log" for version in versions]
            until(lambda: all(log.exists() and "waiting for it" in log.read_text() for log in logs), process)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=WAIT_S)
        assert (process.returncode, stdout) == (130, ""), stderr
        assert stderr.splitlines()[-1].startswith("tfcompare: interrupted before anything was measured")
        assert "Traceback" not in stderr
    assert not list((tmp_path / "cache").rglob(MARKER))


def test_an_environment_whose_install_failed_is_free(made: Version, tmp_path: Path) -> None:
    shutil.move(next((tmp_path / "packages").glob("little_one-*")), tmp_path)
    with closing(engine(tmp_path)) as own:
        with pytest.raises(Exception, match="has no file of little-one"):
            own.prepare(made, quiet(tmp_path / "log"))
        [half] = [path for path in (tmp_path / "cache" / "tfcompare" / "environments").iterdir() if path.is_dir()]
        assert venv_cache.remove_environment(half)
