"""Nightly TensorFlow for real: found on the index, broken in several ways, and taken away again when it is old."""

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import docker
import pytest

from orchestrator import catalog
from orchestrator.catalog import lock_on_demand, user_data
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker.client import connect_engine
from orchestrator.engines.venv.engine import VenvEngine, environments_folder
from orchestrator.history.points import of_run
from orchestrator.metrics.followed import TIME
from orchestrator.nightly import cleanup, versions
from orchestrator.options import EngineOptions
from orchestrator.results.run import load_run
from orchestrator.terminal.view import View
from tests.conftest import run_command
from tests.engines.docker.conftest import stand_in
from tests.support.heard import Heard
from tests.support.nightly_locks import age, lock
from tests.support.packages import locked, own_pip, wheel

DAYS = [f"2.99.0.dev2099010{day}" for day in range(1, 4)]
NOBODY = "http://127.0.0.1:9/simple"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    catalog.reread()
    yield tmp_path
    monkeypatch.undo()
    catalog.reread()


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    (tmp_path / "packages").mkdir()
    return tmp_path / "packages"


def test_a_nightly_is_found_and_locked_once_and_without_an_index_it_is_the_one_that_is_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    first = versions.resolve_followed(["nightly", "2.13"], Heard(said))
    reference, build = first.versions
    assert (reference, first.names, first.unavailable) == ("2.13.0", {build: "nightly"}, ())
    assert re.fullmatch(r"\d+\.\d+\.0\.dev\d{8}", build)
    [version] = catalog.resolve_versions([build], fewest=1)
    assert f"\ntf-nightly=={build} \\\n    --hash=sha256:" in version.flavours[0].lock.read_text()
    again = versions.resolve_followed(["2.13", "nightly"], Heard(said), first.names and {"nightly": build})
    assert (again.versions, again.unchanged) == (first.versions, ("nightly",))
    assert len([text for text in said if "locking it" in text]) == 1
    monkeypatch.setenv("PIP_INDEX_URL", NOBODY)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_RETRIES", "1")
    silent = versions.resolve_followed(["nightly", "nightly-20200101", "2.13"], Heard(said))
    assert silent.versions == first.versions
    why = "the index does not answer for tf-nightly (Connection refused)"
    assert silent.notes == (f"{why}; taking {build} for nightly, which is locked here",)
    [missing] = silent.unavailable
    assert missing.name == "nightly-20200101"
    assert missing.reason == f"lock: {why}, and no nightly-20200101 is locked here"


def test_a_resolver_without_an_index_costs_the_nightly_only(monkeypatch: pytest.MonkeyPatch) -> None:
    known = lock_on_demand.nightlies()
    monkeypatch.setattr(lock_on_demand, "nightlies", lambda device: known)
    monkeypatch.setenv("UV_DEFAULT_INDEX", NOBODY.replace("//", "//me:secret@"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    found = versions.resolve_followed(["nightly", "2.13"], View())
    assert found.versions == ("2.13.0",)
    [missing] = found.unavailable
    assert re.match(r"lock: \S+: this nightly cannot be locked: .*Check the network, or the index", missing.reason)
    assert "secret" not in missing.reason
    assert not user_data.find_user_table().exists()


def test_wheels_that_cannot_be_installed_or_imported_are_rows_and_all_others_are_measured(
    tfcompare: str, stub_cache: dict[str, str], packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_2_13_of(stub_cache, tmp_path, monkeypatch)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "one.py").write_text("def build(tf, params): return lambda: 1\n")
    broken = wheel(packages, "tensorflow", DAYS[1], "raise ImportError('libtensorflow_cc.so.2: cannot open')\n")
    lock(DAYS[0], requirements=f"tf-nightly-of-nobody=={DAYS[0]} --hash=sha256:{'0' * 64}\n")
    lock(DAYS[1], requirements=locked(broken) + pins("numpy", "pyarrow"))
    lock(DAYS[2], requirements=locked(broken))
    monkeypatch.setenv("PIP_FIND_LINKS", str(packages))
    done = run_command(
        tfcompare, "run", "--versions", ",".join(["2.13", *DAYS]), "--engine", "venv", "--rounds", "2", "--control",
        "--workload-folder", tmp_path / "own", "--output", tmp_path / "run",
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert f"died (start): {DAYS[0]} one: environment: " in done.stdout.replace("\n", " ")
    assert "Traceback" not in done.stderr
    names = {DAYS[1]: "nightly"}
    found = of_run(load_run(tmp_path / "run"), "screen", names=names)
    points = {point.build: point for point in found if point.metric == TIME}
    control = points["2.13.0+control"]
    assert (control.outcome, control.rounds) == ("measured", 2)
    assert {points[day].outcome for day in DAYS} == {"died"}
    assert points[DAYS[1]].target == "nightly"
    assert points[DAYS[0]].reason.startswith(
        "environment: its environment could not be installed: the index has no file of tf-nightly-of-nobody=="
    )
    assert points[DAYS[1]].reason.startswith(
        "start: import failed: ImportError: libtensorflow_cc.so.2: cannot open; see"
    )
    assert points[DAYS[2]].reason.startswith(
        "start: exit code 1 (ModuleNotFoundError: No module named 'numpy'); see "
    ), "what ends a worker before it can answer is told by its last line"


def with_2_13_of(cache: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of this test's own, with one environment that there is already."""
    found = Path(cache["TFCOMPARE_CACHE"]).glob("tfcompare/environments/2.13.0-*")
    # Other tests leave locks, and environments of 2.13 with other packages, which have longer names.
    path = min((path for path in found if path.is_dir()), key=lambda path: len(path.name))
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    environments_folder().mkdir(parents=True)
    (environments_folder() / path.name).symlink_to(path)


def pins(*names: str) -> str:
    """As 2.13 has them."""
    text = (catalog.LOCKS / "2.13.0-cpu-py3.11.txt").read_text()
    return "".join(re.search(rf"^{name}==.*\n(?: .*\n)+", text, re.MULTILINE)[0] for name in names)  # type: ignore[index]


Build = Callable[[str, float], Path]


@pytest.fixture
def build(packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """A nightly's environment, of one small package; last used so many days ago."""
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(catalog, "LOCKS", tmp_path / "locks")
    catalog.LOCKS.mkdir()
    (catalog.LOCKS / "pip-py3.11.txt").write_text(locked(own_pip(packages, "3.11")))

    def build(number: str, days: float) -> Path:
        version = lock(number, requirements=locked(wheel(packages, "tf_nightly", number)))
        with closing(VenvEngine(EngineOptions(wheelhouse=packages))) as engine:
            path = engine.prepare(version, BuildLog(tmp_path / "log")).path
        age(version, days)
        return path

    return build


def test_old_environments_are_removed_and_those_in_use_when_they_no_longer_are(build: Build) -> None:
    paths = [build(number, 9) for number in DAYS[:2]]
    lock(DAYS[2], 9)
    other = environments_folder() / f"{DAYS[0]}-cpu-py3.11-0123456789abcdef"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "python").symlink_to(paths[1] / "bin" / "python")
    with subprocess.Popen([paths[1] / "bin" / "python", "-c", "input()"], stdin=subprocess.PIPE) as worker:
        retired = cleanup.retire(1, View())
        assert [path.exists() for path in (*paths, other)] == [False, True, True]
        assert retired.numbers == (DAYS[0],)
        assert retired.freed > 10**6
        assert retired.spared == (f"{DAYS[1]} is left alone: {paths[1].name} is in use, or not ours to remove",)
        assert worker.stdin
        worker.stdin.close()
    said: list[str] = []
    assert cleanup.retire(1, Heard(said)).numbers == (DAYS[1],)
    assert [path.exists() for path in (*paths, other)] == [False, False, True]
    assert re.fullmatch(rf"old nightlies removed: {DAYS[1]}; freed about [\d.]+ MB", said[0])
    assert [version.number for version in catalog.all_versions() if ".dev2099" in version.number] == DAYS[2:]
    assert [path.name for path in user_data.locks().iterdir()] == [f"{DAYS[2]}-cpu-py3.11.txt"]


def test_an_old_environment_that_a_run_has_prepared_stays(build: Build, packages: Path, tmp_path: Path) -> None:
    path = build(DAYS[0], 9)
    lock(DAYS[1])
    [version] = catalog.resolve_versions([DAYS[0]], fewest=1)
    with closing(VenvEngine(EngineOptions(wheelhouse=packages))) as engine:
        engine.prepare(version, BuildLog(tmp_path / "log"))
        retired = cleanup.retire(1, View())
        assert retired.spared == (f"{DAYS[0]} is left alone: {path.name} is in use, or not ours to remove",)
        assert path.exists()
        assert catalog.find_version(DAYS[0])
    assert cleanup.retire(1, View()).numbers == (DAYS[0],)
    assert not path.exists()


def test_what_an_install_that_failed_has_left_goes_too(build: Build) -> None:
    half = build(DAYS[0], 9)
    (half / "tfcompare.json").unlink()
    gone = environments_folder() / f"{DAYS[0]}-cpu-py3.11-fedcba9876543210"
    (gone / "bin").mkdir(parents=True)
    (gone / "bin" / "python").symlink_to("/nowhere/python")
    lock(DAYS[1])
    assert cleanup.retire(1, View()).numbers == (DAYS[0],)
    assert (half.exists(), gone.exists()) == (False, False)


@pytest.fixture
def engine(docker_base: str) -> Iterator[docker.DockerClient]:
    client = connect_engine()
    yield client
    for entry in client.api.images(filters={"label": "tfcompare.version"}):
        if entry["Labels"]["tfcompare.version"] in DAYS:
            client.api.remove_image(entry["Id"], force=True)
    client.close()


def named(engine: docker.DockerClient) -> set[str]:
    return {tag for image in engine.images.list() for tag in image.tags if tag.startswith("tfcompare")}


def test_old_images_are_removed_and_one_that_a_container_uses_keeps_its_version(
    engine: docker.DockerClient, docker_base: str
) -> None:
    base = engine.images.get(docker_base.replace("{python}", "3.11"))
    others = named(engine)
    for number in DAYS:
        lock(number, requirements=f"tf-nightly=={number} --hash=sha256:{'0' * 64}\n")
        stand_in(engine, base.id, number, "cpu", docker_base)
        [version] = catalog.resolve_versions([number], fewest=1)
        age(version, 9)

    def left() -> list[str]:
        found = engine.api.images(filters={"label": "tfcompare.version"})
        return sorted(name for entry in found if (name := entry["Labels"]["tfcompare.version"]) in DAYS)

    assert left() == DAYS
    [tag] = [tag for image in engine.images.list() for tag in image.tags if tag.startswith(f"tfcompare:{DAYS[1]}-")]
    container = engine.api.create_container(tag, command=["true"])
    try:
        retired = cleanup.retire(1, View())
        assert (retired.numbers, left()) == ((DAYS[0],), DAYS[1:])
        [why] = retired.spared
        assert why.startswith(f"{DAYS[1]} is left alone: {tag}: the stopped container ")
        assert why.endswith(" uses it")
    finally:
        with suppress(docker.errors.NotFound):
            engine.api.remove_container(container["Id"], force=True)
    assert (cleanup.retire(1, View()).numbers, left()) == ((DAYS[1],), DAYS[2:])
    # Those of the compose services, and of versions that tests make up, come and go with tests beside this one.
    passing = ("tfcompare-test", "tfcompare:9.")
    assert {name for name in others if not name.startswith(passing)} <= named(engine)
