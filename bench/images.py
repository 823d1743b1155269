"""What images cost: a cold build next to pip by hand, a build with nothing to do, and a warm run's first replicate."""

import json
import os
import secrets
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import docker

from bench.figures import Figure, Section
from orchestrator import catalog
from orchestrator.catalog.version import Flavour
from orchestrator.engines.docker import image
from orchestrator.engines.docker.client import connect_engine
from orchestrator.engines.venv import interpreters
from orchestrator.errors import EngineUnavailable
from orchestrator.model import Ended
from orchestrator.results.evaluation import judge_run
from orchestrator.results.run_folder import RunFolder

VERSIONS = ("1.14.0", "2.0.0", "2.13.0")
WARM_RUNS = 3
# Of pip by hand; then seconds.
BUILD_TIMES, AGAIN_S, BESIDE_IMPORT_S = 1.2, 1.0, 2.0
COMMAND = [sys.executable, "-c", "from orchestrator.cli.main import main; main()"]
PIP = ["-m", "pip", "--no-cache-dir", "--disable-pip-version-check", "--quiet"]
CASE = "power[style=function]"
POLL_S = 0.005


def section() -> Section:
    base = os.environ.get("TFCOMPARE_BASE")
    if base is None:
        raise SystemExit("name the bases to build from, e.g. TFCOMPARE_BASE='tfcompare-base:{python}'")
    try:
        client = connect_engine()
    except EngineUnavailable as error:
        raise SystemExit(str(error)) from error
    with closing(client), TemporaryDirectory() as scratch:
        by_hand = _by_hand(Path(scratch))
        cold = _cold_build(client, base)
        again = min(_timed([*COMMAND, "images", "build", *VERSIONS, "--base", base]) for _ in range(WARM_RUNS))
        firsts = [_first(Path(scratch) / f"run{number}", base) for number in range(WARM_RUNS)]
    first, importing, after = min(firsts)
    body = f"""The images of {", ".join(VERSIONS)} on the CPU. By hand: for each version a virtual environment,
`pip download` of its lock and `pip install` from what was downloaded, one version after the other, without pip's cache:
one process, which took {by_hand:.0f} s. Cold: `tfcompare images build`, from bases that no layer was ever built on,
which works on the three images at the same time and took {cold:.0f} s. Each was timed once; the index is the same for
both. `images build` with nothing changed, and the warm run, are the best of {WARM_RUNS}.

The warm run is `tfcompare run --versions {",".join(VERSIONS)} --case '{CASE}'` on Docker. From its start
to its first measured replicate it took {first:.2f} s, of which {importing:.2f} s for the slowest import of TensorFlow;
{after:.2f} s passed after the last worker was ready."""
    return Section(
        body,
        [
            Figure("cold build of the three images, of pip by hand", cold / by_hand, "ratio", limit=BUILD_TIMES),
            Figure("`images build` with nothing changed", again, "s", limit=AGAIN_S),
            Figure(
                "warm run to its first replicate, without the import", first - importing, "s", limit=BESIDE_IMPORT_S
            ),
        ],
    )


def _flavour(number: str) -> Flavour:
    [version] = catalog.resolve_versions([number], fewest=1)
    return version.on("cpu")[0]


def _by_hand(scratch: Path) -> float:
    begun = time.perf_counter()
    for number in VERSIONS:
        flavour = _flavour(number)
        python = interpreters.find_interpreter(flavour.python.number)
        if python is None:
            raise SystemExit(interpreters.missing((flavour.python.number,)))
        place, wheels = scratch / number, scratch / f"{number}-wheels"
        _run([str(python.path), "-m", "venv", str(place)])
        own = str(place / "bin" / "python")
        _run([own, *PIP, "install", "--require-hashes", "-r", str(flavour.pip_lock)])
        hashed = ["--require-hashes", "--no-deps", "-r", str(flavour.lock)]
        _run([own, *PIP, "download", "--no-build-isolation", "--dest", str(wheels), *hashed])
        _run([own, *PIP, "install", "--no-build-isolation", "--no-index", "--find-links", str(wheels), *hashed])
    return time.perf_counter() - begun


def _cold_build(client: docker.DockerClient, base: str) -> float:
    """Return the seconds that a cold build takes.

    It starts from copies of the base images with other ids, for which the builder's cache holds nothing.
    """
    mark = f"bench-{secrets.token_hex(4)}"
    copies, made = [], []
    try:
        for python in dict.fromkeys(_flavour(number).python.number for number in VERSIONS):
            container = client.containers.create(base.replace("{python}", python), ["true"], labels={"bench": mark})
            copies.append(container.commit(repository="tfcompare-bench", tag=f"{mark}-{python}"))
            container.remove()
        pattern = f"tfcompare-bench:{mark}-{{python}}"
        seconds = _timed([*COMMAND, "images", "build", *VERSIONS, "--base", pattern])
        for number in VERSIONS:
            [version] = catalog.resolve_versions([number], fewest=1)
            made.append(image.recipe(client, version, version.on("cpu")[0], pattern).tag)
        return seconds
    finally:
        for name in [*made, *[copy.id for copy in copies]]:
            client.images.remove(name, force=True)


def _first(folder: Path, base: str) -> tuple[float, float, float]:
    """Measure a warm run up to its first measured replicate and return three times in seconds.

    These are the time from the run's start to that replicate, the slowest import, and the time since all workers were
    up.
    """
    command = [*COMMAND, "run", "--versions", ",".join(VERSIONS), "--case", CASE, "--rounds", "2"]
    begun = time.perf_counter()
    ready = first = 0.0
    with subprocess.Popen(
        [*command, "--engine", "docker", "--base", base, "--output", str(folder)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        while process.poll() is None and not first:
            time.sleep(POLL_S)
            ready = ready or (time.perf_counter() if _workers(folder) else 0.0)
            first = time.perf_counter() if _measured(folder) else 0.0
        if process.wait() != 0 or not first:
            raise SystemExit(f"the warm run ended with {process.returncode}; see {folder}")
    importing = max(arm.figures.get("import", 0.0) for arm in judge_run(RunFolder.open(folder)).arms) / 1e3
    return first - begun, importing, first - ready


def _workers(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / "manifest.json").read_text())["workers"])
    except (OSError, ValueError):
        return False


def _measured(folder: Path) -> bool:
    return (folder / "journal.jsonl").exists() and any(
        isinstance(one, Ended) for one in RunFolder.open(folder).entries()
    )


def _timed(command: list[str]) -> float:
    begun = time.perf_counter()
    _run(command)
    return time.perf_counter() - begun


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
