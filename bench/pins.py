"""What a target with another package costs in addition to its version: its lock, an environment, and an image."""

import os
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.figures import Figure, Section
from orchestrator.catalog import changed
from orchestrator.catalog.version import Version
from orchestrator.engines import Engine
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker.client import connect_engine
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.errors import EngineUnavailable
from orchestrator.options import EngineOptions
from orchestrator.terminal.view import View

VERSION = "2.20 py=3.11"
PINS = ("2.20 py=3.11 keras==3.8.0", "2.20 py=3.11 keras==3.9.0", "2.20 py=3.11 keras==3.10.0")
LOCK_S, MORE_S, MORE_MB = 10.0, 5.0, 30.0


def section() -> Section:
    base = os.environ.get("TFCOMPARE_BASE")
    if base is None:
        raise SystemExit("name the bases to build from, e.g. TFCOMPARE_BASE='tfcompare-base:{python}'")
    with TemporaryDirectory() as scratch:
        os.environ |= {"TFCOMPARE_DATA": f"{scratch}/data", "TFCOMPARE_CACHE": f"{scratch}/cache"}
        locks = [_time_lock(text) for text in PINS]
        again = min(_time_lock(text) for text in PINS)
        targets = [changed.find_changed(text, "cpu") for text in (VERSION, *PINS)]
        with closing(VenvEngine(EngineOptions())) as engine:
            on_venv = [_prepare(engine, target, Path(scratch)) for target in targets]
        used = [_disk_mb(path) for _, path in on_venv]
        try:
            client = connect_engine()
        except EngineUnavailable as error:
            raise SystemExit(str(error)) from error
        with closing(client), closing(DockerEngine(EngineOptions(base=base))) as engine:
            on_docker = [_prepare(engine, target, Path(scratch)) for target in targets]
            sizes = [client.images.get(identity).attrs["Size"] / 1e6 for _, identity in on_docker]
            for _, identity in reversed(on_docker):
                client.images.remove(identity, force=True)
    venv_s, docker_s = (max(seconds for seconds, _ in made[1:]) for made in (on_venv, on_docker))
    times = ", ".join(f"{seconds:.1f} s" for seconds in locks)
    body = f"""{VERSION} and three targets that pin Keras in it. A lock is made by the resolver, whose cache of the
index is warm from the locks before it: {times}, and {again:.2f} s where the lock is there already. The
environment of the version took {on_venv[0][0]:.0f} s, and each of the others at most {venv_s:.1f} s; its image took
{on_docker[0][0]:.0f} s, and each of the others at most {docker_s:.1f} s. What an environment takes of the disk is
counted without the files that it shares with one before it."""
    return Section(
        body,
        [
            Figure("lock of a pin, cache warm", max(locks[1:]), "s", limit=LOCK_S),
            Figure("environment next to another, time", venv_s, "s", limit=MORE_S),
            Figure("environment next to another, disk", max(used[1:]), "MB", limit=MORE_MB),
            Figure("image above that of its version, time", docker_s, "s", limit=MORE_S),
            Figure("image above that of its version, disk", max(sizes[1:]) - sizes[0], "MB", limit=MORE_MB),
        ],
    )


def _time_lock(text: str) -> float:
    begun = time.perf_counter()
    changed.provide_targets([text], View(), "cpu")
    return time.perf_counter() - begun


def _prepare(engine: Engine, target: Version, scratch: Path) -> tuple[float, str]:
    begun = time.perf_counter()
    facts = engine.prepare(target, BuildLog(scratch / f"{target.name}.log")).facts
    return time.perf_counter() - begun, facts.details.get("path", facts.identity)


def _disk_mb(path: str) -> float:
    """Return the disk space of an environment's files that no other environment has as well."""
    status = [os.lstat(each) for each in Path(path).rglob("*")]
    return sum(each.st_blocks * 512 for each in status if each.st_nlink == 1) / 1e6
