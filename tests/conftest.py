"""Fixtures that reach for the real thing: Docker engines, virtual environments, interpreters.

What is missing here skips its tests, and the summary says so; REQUIRE_DOCKER=1 turns a missing engine into a failure.
"""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker.client import connect_engine
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.interpreters import Interpreter
from orchestrator.engines.venv.pythons import Downloads, NotDownloaded
from orchestrator.errors import EngineUnavailable
from orchestrator.options import EngineOptions
from tests.support import stub_environments

ROOT = Path(__file__).resolve().parent.parent
LOCAL_BASE = "tfcompare-base:{python}"
# The environments of whoever runs the tests.
REAL_CACHE = {"TFCOMPARE_CACHE": os.environ.get("TFCOMPARE_CACHE", "")}

# Versions and digests of whoever runs the tests are no part of them; what a test starts inherits this.
os.environ["TFCOMPARE_DATA"] = tempfile.mkdtemp(prefix="tfcompare-data-")
atexit.register(shutil.rmtree, os.environ["TFCOMPARE_DATA"], ignore_errors=True)

# A shell's background job ignores interrupts, and one below nohup a closed terminal; so would every program that it
# starts. Some tests are about them.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, usual)


# Tests of virtual environments run as on a machine without a Docker engine.
NO_ENGINE = "unix:///nonexistent/docker.sock"
ENGINE = os.environ.get("DOCKER_HOST")

# What tests need, by folder; the first folder that fits says it. `slow` is said by the test itself.
NEEDS = {
    "engines/docker/": ("docker", "tensorflow"),
    "engines/test_compose.py": ("docker", "tensorflow"),
    "engines/": ("tensorflow",),
    "faults/": ("tensorflow",),
    # Its stubs share Python and numpy with real environments.
    "soak/": ("tensorflow",),
    "browser/": ("browser",),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--passed", type=Path, help="leave out the tests that this file names; add those that pass")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.passed:
        config.pluginmanager.register(Passed(config.option.passed))


class Passed:
    """Runs what one run of pytest skipped or left out in the next one, and nothing twice."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = path.read_text().splitlines() if path.exists() else []

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        known = {*self.names}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in known])
        items[:] = [item for item in items if item.nodeid not in known]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.names.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # The processes of xdist read the file while the session that has the reports is at work.
        if not os.environ.get("PYTEST_XDIST_WORKER"):
            self.path.write_text("".join(f"{name}\n" for name in self.names))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with what it needs."""
    for item in items:
        place = item.nodeid.removeprefix("tests/")
        for marker in next((needs for folder, needs in NEEDS.items() if place.startswith(folder)), ()):
            item.add_marker(marker)
        if "docker_base" in item.fixturenames:
            item.add_marker("docker")
        if item.get_closest_marker("long") and not os.environ.get("SOAK_KILLS"):
            item.add_marker(pytest.mark.skip(reason="long: `make soak` runs what takes minutes"))


# What takes longest begins first: the chain, then files that take up to minutes each.
ORDER = ("docker", "engines/", "soak/", "faults/", "browser/", "truths/")


# How much the other processes stand back behind the one with the chain.
NICE = 5


def is_of_chain(place: str) -> bool:
    return place.startswith(("engines/docker/", "engines/test_compose.py"))


class ByPlace(LoadScopeScheduling):
    """Share the tests out by file, or one by one, but for a chain that one process has for itself.

    All tests that start Docker engines or change what an engine holds follow one another.
    """

    def _split_scope(self, nodeid: str) -> str:
        place = nodeid.partition("::")[0].removeprefix("tests/")
        # Each of these measures for a while, and needs nothing of the others in its file.
        alone = place.startswith("truths/")
        return "docker" if is_of_chain(place) else nodeid.removeprefix("tests/") if alone else place

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=_rank), last=False)
        super()._assign_work_unit(node)


def _rank(scope: str) -> int:
    return next((rank for rank, start in enumerate(ORDER) if scope.startswith(start)), len(ORDER))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what has no Python for its versions, before any environment is made.

    The chain goes before the others: it takes longest, and they would only wait for it in the end.
    """
    if item.get_closest_marker("tensorflow") and not item.get_closest_marker("docker") and find_missing_python():
        pytest.skip(find_missing_python())
    place = item.nodeid.removeprefix("tests/")
    if place.startswith("engines/") and not item.get_closest_marker("docker"):
        os.environ["DOCKER_HOST"] = NO_ENGINE
    elif ENGINE is not None:
        os.environ["DOCKER_HOST"] = ENGINE
    else:
        os.environ.pop("DOCKER_HOST", None)
    if os.environ.get("PYTEST_XDIST_WORKER") and not is_of_chain(place) and os.nice(0) < NICE:
        os.nice(NICE)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByPlace:
    return ByPlace(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line per need that was not met: how many tests it cost, and how to meet it."""
    reasons: dict[str, list[str]] = {}
    for report in terminalreporter.getreports("skipped"):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else "?"
        reasons.setdefault(reason.partition(":")[0], []).append(reason)
    for told in reasons.values():
        terminalreporter.write_line(f"{len(told)} test{'s' * (len(told) > 1)} skipped: {told[0]}", yellow=True)


def missing_docker(reason: str) -> None:
    """Skips, or fails where Docker is required."""
    if os.environ.get("REQUIRE_DOCKER") == "1":
        pytest.fail(f"REQUIRE_DOCKER=1, but {reason}")
    pytest.skip(f"no Docker engine: {reason}")


@pytest.fixture(scope="session")
def docker_base() -> str:
    """A running engine's base images: TFCOMPARE_BASE, or local ones that tools/base-images has made."""
    try:
        client = connect_engine(timeout_s=10)
    except EngineUnavailable as error:
        missing_docker(str(error))
    if named := os.environ.get("TFCOMPARE_BASE"):
        return named
    present = {tag for image in client.images.list() for tag in image.tags}
    wanted = [LOCAL_BASE.replace("{python}", python) for python in ("3.6", "3.7", "3.11")]
    if not present.issuperset(wanted):
        missing_docker("there are no base images; run `tools/base-images 3.6 3.7 3.11` or set TFCOMPARE_BASE")
    return LOCAL_BASE


@pytest.fixture(autouse=True)
def _require_engine(request: pytest.FixtureRequest) -> None:
    """Skip a test that is marked `docker` where there is no engine, whatever else it asks for."""
    if request.node.get_closest_marker("docker"):
        request.getfixturevalue("docker_base")


@cache
def find_missing_python() -> str:
    """Return why one of the Pythons of most versions is missing, or ''; they are downloaded as for a user."""
    for number in ("3.7", "3.11"):
        with tempfile.TemporaryDirectory() as folder:
            try:
                if interpreters.find_interpreter(number) is None:
                    Downloads(EngineOptions()).install(number, BuildLog(Path(folder) / "log"))
            except NotDownloaded as error:
                return f"no Python {number}: it is not on this machine, and could not be downloaded ({error})"
    return ""


@pytest.fixture(scope="session")
def stub_cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variable by which virtual environments have a stub of TensorFlow; their workers start in half a second."""
    folder: Path = tmp_path_factory.mktemp("stubs")
    return stub_environments.build(folder / "cache", ("1.14", "2.0", "2.13"))


@pytest.fixture
def stubbed(stub_cache: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the test takes these environments; REAL_CACHE gives one the real ones."""
    for name, value in stub_cache.items():
        monkeypatch.setenv(name, value)


def require_python(number: str) -> Interpreter:
    """Return this Python of the machine, or skip."""
    found = interpreters.find_interpreter(number)
    if found is None:
        pytest.skip(f"no Python {number}: {interpreters.missing((number,))}")
    return found


@pytest.fixture(scope="session")
def python36() -> str:
    """A Python 3.6, the oldest that the container side runs on."""
    return str(require_python("3.6").path)


@pytest.fixture(scope="session")
def tfcompare() -> str:
    """The installed command."""
    beside = Path(shutil.which("tfcompare") or ROOT / ".venv" / "bin" / "tfcompare")
    assert beside.exists(), "the tests call the installed tfcompare: run them by `make test`"
    return str(beside)


def run_command(
    *argv: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """A command, its two streams and its exit code."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", **(env or {})}
    return subprocess.run(
        [str(part) for part in argv],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
