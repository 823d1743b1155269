"""Environments from an index with a login, and from a folder of wheels; no password in what is printed or started."""

import hashlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import catalog
from orchestrator.catalog.table import SourceTable
from orchestrator.catalog.version import Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.venv.engine import VenvEngine
from orchestrator.errors import EnvironmentFailed, UsageError
from orchestrator.options import EngineOptions
from tests.support.packages import LOGIN, PASSWORD, Little, little_index, locked, own_pip, source, wheel


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    (tmp_path / "packages").mkdir()
    return tmp_path / "packages"


@pytest.fixture
def made(tmp_path: Path, packages: Path) -> Version:
    """A version of one package that no index of the world has, on Python 3.11."""
    (tmp_path / "pip.txt").write_text(locked(own_pip(packages, "3.11")))
    (tmp_path / "lock.txt").write_text(locked(wheel(packages, "little_one")))
    [version] = catalog.resolve_versions(["2.13.0"], fewest=1)
    [flavour] = [flavour for flavour in version.on("cpu") if flavour.python.number == "3.11"]
    return replace(version, flavours=(replace(flavour, lock=tmp_path / "lock.txt", pip_lock=tmp_path / "pip.txt"),))


@pytest.fixture
def index(packages: Path) -> Iterator[Little]:
    with little_index(packages) as little:
        yield little


def prepared(made: Version, log: Path, **options: object) -> Path:
    with closing(VenvEngine(EngineOptions(**options))) as engine:  # type: ignore[arg-type]
        return engine.prepare(made, BuildLog(log)).path


def test_an_index_with_a_login_is_asked_and_its_password_stays_here(
    made: Version, index: Little, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://other.invalid/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    path = prepared(made, tmp_path / "log", index_url=index.url)
    assert list(path.glob("lib/python*/site-packages/little_one.py"))
    assert "/simple/little-one/" in {place for place, known in index.asked if known}
    told = (tmp_path / "log").read_text()
    assert "index.tfcompare.invalid" in told
    assert not [word for word in (PASSWORD, LOGIN, str(index.port), "other.invalid", "nowhere") if word in told]


def test_an_index_that_breaks_off_is_no_wrong_hash(made: Version, index: Little, tmp_path: Path) -> None:
    """Alone, pip 23.2 says of half a file that its hash is not the lock's."""
    index.halves = True
    with pytest.raises(EnvironmentFailed, match=r"the package index 127\.0\.0\.1 broke off in the middle of a file"):
        prepared(made, tmp_path / "log", index_url=index.url)


def test_an_index_that_wants_a_login_says_how_to_give_one(made: Version, index: Little, tmp_path: Path) -> None:
    """Alone, pip 23.2 says that there is no such version."""
    with pytest.raises(EnvironmentFailed, match="requires a login, or refuses this one"):
        prepared(made, tmp_path / "log", index_url=index.without_login)


def test_no_argument_of_an_install_holds_a_login(
    made: Version, index: Little, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    run = BuildLog.run
    monkeypatch.setattr(BuildLog, "run", lambda log, argv, env: (started.append(argv), run(log, argv, env))[1])
    prepared(made, tmp_path / "log", index_url=index.url)
    assert len(started) > 2
    assert not [word for argv in started for word in argv if PASSWORD in word]


def test_a_wheelhouse_whose_name_has_blanks_is_found(made: Version, packages: Path, tmp_path: Path) -> None:
    house = packages.rename(tmp_path / "my wheels")
    assert list(prepared(made, tmp_path / "log", wheelhouse=house).glob("lib/python*/site-packages/little_one.py"))


def test_a_wheelhouse_is_enough(made: Version, packages: Path, tmp_path: Path) -> None:
    assert list(prepared(made, tmp_path / "log", wheelhouse=packages).glob("lib/python*/site-packages/little_one.py"))


def test_what_a_wheelhouse_lacks_is_told_by_its_name(made: Version, packages: Path, tmp_path: Path) -> None:
    next(packages.glob("little_one-*")).unlink()
    with pytest.raises(EnvironmentFailed) as failed:
        prepared(made, tmp_path / "log", wheelhouse=packages)
    assert str(failed.value).startswith(
        f"2.13.0: its environment could not be installed: the wheelhouse {packages} has no file of little-one==1.0"
    )


def test_a_version_that_no_index_has_any_more_is_told_by_its_name(made: Version, index: Little, tmp_path: Path) -> None:
    """As where it was withdrawn, or has no wheel for this Python."""
    lock = made.flavours[0].lock
    lock.write_text(lock.read_text().replace("==1.0", "==9.9"))
    with pytest.raises(EnvironmentFailed, match=r"the index has no file of little-one==9\.9 for this Python\. It was"):
        prepared(made, tmp_path / "log", index_url=index.url)


def test_a_lock_that_is_none_is_told_with_its_line_before_anything_is_made(made: Version, tmp_path: Path) -> None:
    lock = made.flavours[0].lock
    lock.write_text(f"# one\n{lock.read_text()}six\n")
    with pytest.raises(UsageError, match=r"lock\.txt, line 3: 'six' is no locked requirement"):
        prepared(made, tmp_path / "log")
    assert not (tmp_path / "log").exists()


def test_an_index_whose_name_is_unknown_is_told_as_such(made: Version, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFailed, match="its name cannot be resolved") as failed:
        prepared(made, tmp_path / "log", index_url="http://user:secret@nowhere.invalid/simple")
    assert "secret" not in str(failed.value) + (tmp_path / "log").read_text()


# Each would leave an environment without packages, or keep pip from installing into it.
SETTINGS = {
    "PIP_TARGET": "elsewhere", "PIP_PREFIX": "elsewhere", "PIP_ROOT": "elsewhere", "PIP_DRY_RUN": "1", "PIP_USER": "1",
    "PIP_NO_DEPS": "1", "PIP_REQUIRE_VIRTUALENV": "1", "PIP_CONSTRAINT": "elsewhere", "PIP_PYTHON": "elsewhere",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("names", [("PIP_TARGET",), ("PIP_DRY_RUN",), tuple(SETTINGS)], ids=["target", "dry", "all"])
def test_settings_of_the_caller_change_nothing(
    made: Version, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    for name in names:
        value = SETTINGS[name]
        monkeypatch.setenv(name, str(tmp_path / value) if value == "elsewhere" else value)
    path = prepared(made, tmp_path / "log", wheelhouse=packages)
    assert list(path.glob("lib/python*/site-packages/little_one.py"))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
def test_only_a_source_package_of_the_table_is_built_and_it_sees_no_secret_of_the_caller(
    made: Version, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = [f"{name}_TOKEN" for name in ("GITHUB", "NPM", "AWS", "TF", "CI", "HF", "API", "SLACK", "VAULT", "DB")]
    for name in secrets:
        monkeypatch.setenv(name, f"planted in {name}")
    seen, lock = tmp_path / "seen", made.flavours[0].lock
    archive = source(packages, "little_two", "1.0", seen)
    lock.write_text(lock.read_text() + locked(archive))
    with pytest.raises(EnvironmentFailed, match=r"has no file of little-two==1\.0 for this Python"):
        prepared(made, tmp_path / "log", wheelhouse=packages)
    assert not seen.exists()

    known = SourceTable(version="1.0", sha256=hashlib.sha256(archive.read_bytes()).hexdigest())
    monkeypatch.setitem(catalog.builtin_catalogue().source, "little-two", known)
    prepared(made, tmp_path / "log", wheelhouse=packages)
    assert "'PATH'" in seen.read_text()
    assert "planted" not in seen.read_text()


@pytest.mark.slow
def test_a_file_of_settings_for_installs_of_the_user_does_no_harm(
    made: Version, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "pip.conf"
    config.write_text(f"[global]\nno-index = true\nfind-links = {packages}\n[install]\nuser = true\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    path = prepared(made, tmp_path / "log")
    assert list(path.glob("lib/python*/site-packages/little_one.py"))


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["dry-run = true", "target = {elsewhere}", "root = {elsewhere}"])
def test_an_environment_without_a_package_of_its_lock_is_never_ready(
    made: Version, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """A file of settings is pip's own way to an index, so it counts, with whatever else it says."""
    config = tmp_path / "pip.conf"
    index = f"[global]\nno-index = true\nfind-links = {packages}\n"
    config.write_text(index + setting.format(elsewhere=tmp_path / "elsewhere"))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    missing = r"did not install little-one==1\.0 into .*; `pip config list`"
    with pytest.raises(EnvironmentFailed, match=missing) as failed:
        prepared(made, tmp_path / "log")
    assert "\n" not in str(failed.value)
    config.write_text(index)
    path = prepared(made, tmp_path / "log")
    assert list(path.glob("lib/python*/site-packages/little_one.py"))


@pytest.mark.slow
def test_a_pin_that_its_marker_leaves_out_is_not_missing(made: Version, packages: Path, tmp_path: Path) -> None:
    """As `poetry export` writes locks."""
    lock, other = made.flavours[0].lock, locked(wheel(packages, "little_two"))
    lock.write_text(lock.read_text() + other.replace(" --", " ; python_version < '3' --"))
    path = prepared(made, tmp_path / "log", wheelhouse=packages)
    assert not list(path.glob("lib/python*/site-packages/little_two*"))
