"""A machine that lacks a Python downloads it once, keeps it, and says so; all from a mirror on this machine."""

import multiprocessing
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog.version import Version
from orchestrator.engines import Outlook
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv import interpreters
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.errors import EnvironmentFailed
from orchestrator.options import EngineOptions
from tests.engines.mirror import NUMBER, UNSET, bare_machine, local_python, make_mirror
from tests.support.heard import Heard
from tests.support.packages import locked, own_pip, wheel

# Nothing listens on this port.
CLOSED = {"UV_PYTHON_INSTALL_MIRROR": "http://127.0.0.1:9/mirror"}
RUN = ("run", "--versions", "1.14,2.0,2.13", "--engine", "venv", "--suite", "smoke", "--rounds", "2")


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return make_mirror(tmp_path_factory.mktemp("mirror"))


@pytest.fixture
def made(tmp_path: Path) -> Version:
    """1.14.0 with one small package in place of TensorFlow."""
    local_python()
    packages = tmp_path / "packages"
    packages.mkdir()
    (tmp_path / "pip.txt").write_text(locked(own_pip(packages, NUMBER)))
    (tmp_path / "lock.txt").write_text(locked(wheel(packages, "little_one")))
    [version] = catalog.resolve_versions(["1.14.0"], fewest=1)
    flavour = version.on("cpu")[0]
    return replace(version, flavours=(replace(flavour, lock=tmp_path / "lock.txt", pip_lock=tmp_path / "pip.txt"),))


@pytest.fixture
def bare(made: Version, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """This process on a machine with Python 3.11 only; `made` was prepared from the machine as it is."""
    for name in UNSET:
        monkeypatch.delenv(name)
    for name, value in bare_machine(tmp_path / "bare").items():
        monkeypatch.setenv(name, value)
    interpreters.forget_interpreters()
    yield tmp_path / "bare"
    interpreters.forget_interpreters()


def use(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def prepare(made: Version, folder: Path, name: str = "log", **options: bool) -> tuple[str, list[str]]:
    """Return the environment's folder and what was announced."""
    said: list[str] = []
    wheelhouse = folder.parent / "packages"
    with closing(VenvEngine(EngineOptions(wheelhouse=wheelhouse, **options))) as engine:  # type: ignore[arg-type]
        environment = engine.prepare(made, BuildLog(folder / name, Heard(said)))
    return str(environment.path), said


def test_a_missing_python_is_downloaded_announced_and_found_again(
    made: Version, bare: Path, mirror: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    outlook = VenvEngine(EngineOptions()).outlook(made)
    assert outlook == Outlook("to build", "to be installed", "Python 3.7 would be downloaded (about 30 MB)")
    assert str(outlook) == "to be installed; Python 3.7 would be downloaded (about 30 MB)"
    use(monkeypatch, mirror)
    path, said = prepare(made, bare)
    pythons = bare / "cache" / "tfcompare" / "pythons"
    assert said == [f"downloading Python 3.7 (about 30 MB) into {pythons}"]
    asked = "import sys, little_one; print(sys.base_prefix)"
    inside = subprocess.run([f"{path}/bin/python", "-c", asked], capture_output=True, text=True, check=True)
    assert Path(inside.stdout.strip()).parent == pythons
    pip = subprocess.run([f"{path}/bin/python", "-m", "pip", "--version"], capture_output=True, text=True, check=True)
    assert "python 3.7" in pip.stdout
    assert not list((bare / "home").iterdir()), "nothing is written into the user's folders"
    for name in mirror:
        monkeypatch.delenv(name)
    use(monkeypatch, CLOSED)
    interpreters.forget_interpreters()
    assert VenvEngine(EngineOptions()).outlook(made).text.startswith("ready (Python 3.7.")
    assert prepare(made, bare, "second") == (path, [])
    assert not (bare / "second").exists()


def run_alone(made: Version, folder: Path, name: str) -> list[str]:
    return prepare(made, folder, name)[1]


def test_two_runs_at_once_download_it_once(
    made: Version, bare: Path, mirror: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    use(monkeypatch, mirror)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        said = pool.starmap(run_alone, [(made, bare, "one"), (made, bare, "two")])
    assert sorted(map(len, said)) == [0, 1]


def test_an_archive_with_another_sum_is_refused(
    made: Version, bare: Path, mirror: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    downloads = Path(mirror["UV_PYTHON_DOWNLOADS_JSON_URL"].removeprefix("file://")).read_text()
    digest = downloads.partition('"sha256": "')[2][:64]
    (tmp_path / "wrong.json").write_text(downloads.replace(digest, "0" * 64))
    use(monkeypatch, {**mirror, "UV_PYTHON_DOWNLOADS_JSON_URL": (tmp_path / "wrong.json").as_uri()})
    with pytest.raises(EnvironmentFailed, match=r"1\.14\.0: Python 3\.7 could not be downloaded \(Hash mismatch"):
        prepare(made, bare)
    assert interpreters.find_interpreter(NUMBER) is None


@pytest.fixture
def machine(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of a bare machine for the real command."""
    kept = {"NO_COLOR": "1", "COLUMNS": "100"}
    return {**kept, **bare_machine(tmp_path_factory.mktemp("machine"))}


def call(tfcompare: str, machine: dict[str, str], *argv: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [tfcompare, *map(str, argv)], env=machine, capture_output=True, text=True, timeout=300, check=False
    )


FEW = ("run", "--versions", "1.14,2.0", "--engine", "venv", "--suite", "smoke", "--rounds", "2")
LAST = "tfcompare run --versions 2.12,2.21 --engine venv --suite smoke --rounds 2"


def test_an_unreachable_mirror_is_one_sentence_and_a_command_that_works(
    tfcompare: str, machine: dict[str, str], tmp_path: Path
):
    done = call(tfcompare, {**machine, **CLOSED}, *FEW, "--output", tmp_path / "run")
    lines = done.stderr.splitlines()
    assert done.returncode == 5
    assert "Traceback" not in done.stderr
    sentence = "1.14.0, 2.0.0: Python 3.7 could not be downloaded (Connection refused)"
    assert [line for line in lines if "could not be downloaded" in line] == [
        f"tfcompare: {sentence}; the Pythons on this machine can run:"
    ]
    assert lines[-1] == LAST
    dry = call(tfcompare, machine, *lines[-1].split()[1:], "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "downloaded" not in dry.stdout


@pytest.mark.parametrize(
    ("flags", "variables", "ban"),
    [
        (("--no-python-downloads",), {}, "--no-python-downloads"),
        ((), {"UV_PYTHON_DOWNLOADS": "never"}, "UV_PYTHON_DOWNLOADS=never"),
    ],
)
def test_downloads_can_be_forbidden(
    tfcompare: str, machine: dict[str, str], mirror: dict[str, str], tmp_path: Path, flags, variables, ban: str
):
    done = call(tfcompare, {**machine, **mirror, **variables}, *FEW, *flags, "--output", tmp_path / "run")
    assert done.returncode == 5
    assert "it needs Python 3.7 or 3.6, but none was found on PATH" in done.stderr
    assert done.stderr.count(ban) == (2 if flags else 1)
    assert f"{ban} forbids downloading it" in done.stderr
    assert done.stderr.splitlines()[-1] == " ".join([LAST, *flags])
    assert not list(Path(machine["TFCOMPARE_CACHE"]).rglob("cpython-*"))
    doctor = call(tfcompare, {**machine, **variables}, "doctor", "--no-probe", "--versions", "1.14,2.13", *flags)
    assert doctor.returncode == 5
    assert "cannot run here: 1.14.0;" in doctor.stderr


def test_what_only_looks_downloads_nothing(tfcompare: str, machine: dict[str, str], mirror: dict[str, str]):
    reach = {**machine, **mirror}
    dry = call(tfcompare, reach, *RUN, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    outlook = "to be installed; Python 3.7 would be downloaded (about 30 MB)"
    assert f"  1.14.0, 2.0.0: {outlook}\n  2.13.0: to be installed (Python 3.11." in dry.stdout
    doctor = call(tfcompare, {**reach, "COLUMNS": "200"}, "doctor", "--no-probe", "--versions", "1.14,2.13")
    assert doctor.returncode == 0, doctor.stderr
    assert "Python 3.7 would be downloaded (about 30 MB)" in doctor.stdout
    case = "predict[call=predict,state=uncompiled,model=tiny]"
    search = ("bisect", "--good", "1.14", "--bad", "2.13", "--case", case, "--engine", "venv", "--dry-run")
    plan = call(tfcompare, reach, *search, "--output", Path(machine["HOME"]).parent / "search")
    assert plan.returncode == 0, plan.stderr
    assert plan.stdout.count("Python 3.7 would be downloaded (about 30 MB)") == 1
    assert call(tfcompare, reach, "list", "versions").returncode == 0
    assert not list(Path(machine["TFCOMPARE_CACHE"]).rglob("*cpython*"))
