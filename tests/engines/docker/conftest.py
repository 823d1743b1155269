"""What the tests of the Docker engine share: its two images, a run that is met half-way, and an engine of their own."""

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import pytest

from orchestrator import catalog
from orchestrator.catalog.version import Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import image, limits
from orchestrator.engines.docker.client import connect_engine
from orchestrator.engines.docker.container import RUN_LABEL
from orchestrator.engines.docker.engine import DockerEngine, DockerEnvironment
from orchestrator.measure import run as story
from orchestrator.options import EngineOptions
from orchestrator.plan.request import RunOptions
from orchestrator.terminal.view import View
from tests.support import stub

HERE = Path(__file__).parent
OWN = HERE / "workloads"
# A base with all that a worker needs but TensorFlow: the images of STUBS have a stub of it.
STUB_BASE = "tfcompare-stub:{python}"
STUBS, STUB_PYTHON = ("1.14.0", "2.0.0"), "3.7"
INSTALLED = "/opt/tfcompare"
PACKAGES = f"{INSTALLED}/lib/python{STUB_PYTHON}/site-packages"
DEADLINE_S = 120
# What a test starts ends with it even if pytest itself is killed.
TIED = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []


def version(number: str) -> Version:
    [found] = catalog.resolve_versions([number], fewest=1)
    return found


def base_image(client: docker.DockerClient, pattern: str, python: str) -> docker.models.images.Image:
    """The base of a Python, pulled if it lies in a registry."""
    name = pattern.replace("{python}", python)
    try:
        return client.images.get(name)
    except docker.errors.ImageNotFound:
        return client.images.pull(name)


def until(true: Callable[[], Any], what: str) -> Any:
    """What `true` returns once it is true."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := true()):
        assert time.monotonic() < deadline, f"still waiting for: {what}"
        time.sleep(0.05)
    return found


def containers(client: docker.DockerClient, run: Path) -> list[dict[str, Any]]:
    """The containers of a run folder, running or not."""
    plan = run / "plan.json"
    text = plan.read_text() if plan.exists() else ""
    return containers_of(client, json.loads(text)["run"]) if text else []


def containers_of(client: docker.DockerClient, number: str) -> list[dict[str, Any]]:
    """The containers of a run with this number, running or not."""
    found: list[dict[str, Any]] = client.api.containers(all=True, filters={"label": f"{RUN_LABEL}={number}"})
    return found


def measured(run: Path) -> bool:
    """Whether the run is past its first round."""
    journal = run / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True) if journal.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith("\n")]
    return any(entry["kind"] == "ended" and entry["round"] > 1 for entry in entries)


@pytest.fixture(scope="session")
def client(docker_base: str) -> Iterator[docker.DockerClient]:
    client = connect_engine()
    yield client
    client.close()


def with_memory(client: docker.DockerClient, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each of two workers this much memory."""
    monkeypatch.setattr(limits, "MEMORY_SHARE", 2 * limit / client.info()["MemTotal"])


def run_here(base: str, out: Path, *selected: str) -> story.Done:
    """Measure 1.14 and 2.0 in this process, where a limit can be lowered."""
    options = RunOptions(
        versions=("1.14", "2.0"), engine="docker", environments=EngineOptions(base=base), rounds=2,
        own_workloads=OWN, selected=selected, out=out,
    )  # fmt: skip
    return story.plan_and_measure(options, View())


MakeEngine = Callable[..., DockerEngine]


@pytest.fixture
def engine(docker_base: str) -> Iterator[MakeEngine]:
    """Makes engines with the local base images, and closes them."""
    made: list[DockerEngine] = []

    def make(**options: Any) -> DockerEngine:
        made.append(DockerEngine(EngineOptions(**{"base": docker_base, **options})))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def environments(docker_base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, DockerEnvironment]]:
    """1.14.0 and 2.0.0, built by the engine unless they are there."""
    engine = DockerEngine(EngineOptions(base=docker_base))
    folder = tmp_path_factory.mktemp("builds")

    def build(number: str) -> DockerEnvironment:
        return engine.prepare(version(number), BuildLog(folder / f"{number}.log"))

    numbers = ("1.14.0", "2.0.0")
    with ThreadPoolExecutor() as pool:
        built = dict(zip(numbers, pool.map(build, numbers), strict=True))
    yield built
    engine.close()


@pytest.fixture(scope="session")
def stub_base(
    client: docker.DockerClient,
    docker_base: str,
    environments: dict[str, DockerEnvironment],
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """A base that makes 1.14.0 and 2.0.0 ready at once, with a stub in place of TensorFlow.

    Engine, containers, Python, numpy and pyarrow are real, and a worker starts in a second.
    """
    base = base_image(client, docker_base, STUB_PYTHON)
    copied = "".join(
        f"COPY --from=real {path} {path}\n"
        for folder, names in ((INSTALLED, ("bin", "pyvenv.cfg")), (PACKAGES, ("numpy", "numpy.libs", "pyarrow")))
        for path in (f"{folder}/{name}" for name in names)
    )
    dockerfile = (
        f"FROM {environments['2.0.0'].facts.identity} AS real\nFROM {base.id}\n{copied}"
        f"ENV PATH={INSTALLED}/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1\nUSER 65534\nWORKDIR /tmp\n"
    )
    client.images.build(
        fileobj=io.BytesIO(dockerfile.encode()), tag=STUB_BASE.replace("{python}", STUB_PYTHON), rm=True
    )
    build_stubs(client, tmp_path_factory.mktemp("stubs"))
    return STUB_BASE


def build_stubs(client: docker.DockerClient, folder: Path, flavour: str = "cpu") -> None:
    """Make the images of STUBS in an engine that has their base."""
    for number in STUBS:
        stub.write(folder / number, number)
        recipe = recipe_of(client, number, flavour, STUB_BASE)
        base = STUB_BASE.replace("{python}", STUB_PYTHON)
        (folder / number / "Dockerfile").write_text(
            f"FROM {base}\nCOPY tensorflow {PACKAGES}/tensorflow\n{label_line(recipe)}"
        )
        client.images.build(path=str(folder / number), tag=recipe.tag, rm=True)


def recipe_of(client: docker.DockerClient, number: str, flavour: str, base: str) -> image.Recipe:
    full = version(number)
    first = next(one for one in full.flavours if one.name == flavour)
    return image.recipe(client, full, first, base)


def label_line(recipe: image.Recipe) -> str:
    """All labels at once: for labels that are passed to it, the builder makes one container each."""
    labels = {**recipe.labels, image.BUILDER: image.builder()}
    return "LABEL " + " ".join(f"{name}={json.dumps(value)}" for name, value in sorted(labels.items())) + "\n"


@pytest.fixture(scope="session")
def stubs(stub_base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, DockerEnvironment]]:
    """Those images as a run prepares them."""
    engine = DockerEngine(EngineOptions(base=stub_base))
    log = BuildLog(tmp_path_factory.mktemp("stubs") / "build.log")
    yield {number: engine.prepare(version(number), log) for number in STUBS}
    engine.close()
    assert not log.path.exists(), "nothing was built"


@dataclass
class Going:
    """A real `tfcompare run` in a process of its own."""

    process: subprocess.Popen[str]
    out: Path

    def until_measuring(self) -> None:
        def there() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            return measured(self.out)

        until(there, "the end of the first round")

    def end(self) -> tuple[int, str, str]:
        stdout, stderr = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, stdout, stderr


Start = Callable[..., Going]


@pytest.fixture
def start(tfcompare: str, stub_base: str, tmp_path: Path) -> Iterator[Start]:
    """Starts runs of 1.14 and 2.0 on Docker; whatever still runs at the end of the test is ended."""
    started: list[Going] = []

    def start(*flags: str, env: dict[str, str] | None = None, name: str = "run", out: Path | None = None) -> Going:
        fixed = [
            "run",
            "--versions",
            "1.14,2.0",
            "--engine",
            "docker",
            "--base",
            stub_base,
            "--workload-folder",
            str(OWN),
        ]
        out = out or tmp_path / name
        process = subprocess.Popen(
            [*TIED, tfcompare, *fixed, "--output", str(out), *flags],
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(Going(process, out))
        return started[-1]

    yield start
    for going in started:
        if going.process.poll() is None:
            going.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                going.process.wait(timeout=30)
            going.process.kill()
        going.process.communicate()


@dataclass
class PrivateEngine:
    """A dockerd with its own folders and socket, and a runtime named nvidia that is the shim beside this file."""

    root: Path
    process: subprocess.Popen[bytes] | None = None
    env: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.env = {"DOCKER_HOST": f"unix://{self.root / 'docker.sock'}"}

    @property
    def shim_log(self) -> str:
        return (self.root / "shim.log").read_text()

    def client(self) -> docker.DockerClient:
        return docker.DockerClient(base_url=self.env["DOCKER_HOST"], timeout=60)

    def start(self) -> None:
        (self.root / "docker.pid").unlink(missing_ok=True)
        argv = [
            *TIED, "dockerd", "--data-root", self.root / "data", "--exec-root", self.root / "exec", "--pidfile",
            self.root / "docker.pid", "--host", self.env["DOCKER_HOST"], "--bridge=none", "--iptables=false",
            "--add-runtime", f"nvidia={self.root / 'nvidia-shim'}",
        ]  # fmt: skip
        with (self.root / "dockerd.log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        until(self.answers, f"the private engine, see {self.root / 'dockerd.log'}")

    def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.root / "dockerd.log").read_text()[-2000:]
        # Not asked through the docker package, which leaves a socket open when nobody listens.
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.settimeout(10)
            probe.connect(str(self.root / "docker.sock"))
            probe.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in probe.recv(1000)
        return False

    def end(self) -> None:
        """As a package manager or a restart of the service would: it ends its containers, and then itself."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(timeout=60)
        self.kill()

    def kill(self) -> None:
        """As a crash would: its containers go on without it."""
        if self.process:
            self.process.kill()
            self.process.wait()
        # Its containerd dies with it, a moment later; a next dockerd would take the dying one for its own.
        pid_file = self.root / "exec" / "containerd" / "containerd.pid"
        if pid_file.exists():
            pid = int(pid_file.read_text())
            until(lambda: _is_gone(pid), "the private engine's containerd to end")
            pid_file.unlink()

    def stop(self) -> None:
        """Ends the engine and whatever it has started, by number: all of it names the engine's own folder."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=20)
        self.kill()
        for shim in self._shims():
            # The process of a container is a child of its shim, in a session of its own.
            for pid in (*_children(shim), shim):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        until(lambda: not self._shims(), "the private engine's shims to end")
        for mount in sorted(_mounts(self.root), reverse=True):
            subprocess.run(["umount", "--lazy", mount], check=False)
        shutil.rmtree(self.root, ignore_errors=True)

    def _shims(self) -> list[int]:
        mark = f"{self.root}/exec/containerd/containerd.sock".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if mark in (entry / "cmdline").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _mounts(root: Path) -> list[str]:
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if point.startswith(f"{root}/")]


@pytest.fixture(scope="session")
def private_engine(client: docker.DockerClient, docker_base: str) -> Iterator[PrivateEngine]:
    """Knows one image, the base of Python 3.6. Root only."""
    if os.getuid() != 0 or not shutil.which("dockerd"):
        pytest.skip("no private Docker engine: starting a dockerd takes root and dockerd")
    # A short path: that of a socket is limited to some hundred characters.
    root = Path(tempfile.mkdtemp(prefix="tfcompare-"))
    engine = PrivateEngine(root)
    shutil.copy(HERE / "nvidia-shim", root)
    try:
        engine.start()
        own = engine.client()
        own.images.load(base_image(client, docker_base, "3.6").save(named=True))
        own.close()
        yield engine
    finally:
        engine.stop()


@pytest.fixture(scope="session")
def private_stub_base(private_engine: PrivateEngine, client: docker.DockerClient, stub_base: str) -> str:
    """The private engine has this base from now on."""
    own = private_engine.client()
    own.images.load(client.images.get(stub_base.replace("{python}", STUB_PYTHON)).save(named=True))
    own.close()
    return stub_base


@pytest.fixture
def private_stubs(private_engine: PrivateEngine, private_stub_base: str, tmp_path: Path) -> PrivateEngine:
    """The private engine with the images of STUBS, which other tests may have removed."""
    own = private_engine.client()
    build_stubs(own, tmp_path / "stubs")
    own.close()
    return private_engine


@pytest.fixture
def on_private(private_engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> PrivateEngine:
    """The private engine as the one that this process asks."""
    monkeypatch.setenv("DOCKER_HOST", private_engine.env["DOCKER_HOST"])
    return private_engine


@pytest.fixture(scope="session")
def gpu_environment(
    private_engine: PrivateEngine, private_stub_base: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DockerEnvironment]:
    """1.14.0 for GPUs in the private engine, beside 2.0.0, with a stub in place of TensorFlow."""
    folder = tmp_path_factory.mktemp("gpu")
    with closing(private_engine.client()) as client:
        build_stubs(client, folder, "gpu")
    with _prepared(private_engine, private_stub_base, folder) as environment:
        yield environment


@pytest.fixture(scope="session")
def real_gpu_environment(
    private_engine: PrivateEngine, docker_base: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DockerEnvironment]:
    """1.14.0 for GPUs in the private engine, built as for a user."""
    with _prepared(private_engine, docker_base, tmp_path_factory.mktemp("gpu")) as environment:
        yield environment


@contextmanager
def _prepared(private: PrivateEngine, base: str, folder: Path) -> Iterator[DockerEnvironment]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", private.env["DOCKER_HOST"])
        # A client keeps the engine that it was made for.
        engine = DockerEngine(EngineOptions(gpu=True, base=base))
        environment = engine.prepare(version("1.14.0"), BuildLog(folder / "build.log"))
    with closing(engine):
        yield environment


def stand_in(client: docker.DockerClient, identity: str, number: str, flavour: str, base: str) -> None:
    """Makes `identity` pass for the image of another recipe."""
    recipe = recipe_of(client, number, flavour, base)
    dockerfile = io.BytesIO(f"FROM {identity}\n{label_line(recipe)}".encode())
    client.images.build(fileobj=dockerfile, tag=recipe.tag, rm=True)
