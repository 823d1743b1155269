"""Images from an index with a login, and from a folder of wheels: what is asked, and that no password stays."""

import base64
import io
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest
from rich.console import Console

from orchestrator.engines.build_log import BuildLog
from orchestrator.errors import EnvironmentFailed
from orchestrator.measure.prepare import ReadyEnvironment, make_ready
from orchestrator.terminal.progress import choose_view
from tests.engines.docker.conftest import MakeEngine, base_image
from tests.engines.docker.private_version import Private, private
from tests.support.packages import LOGIN, PASSWORD, USER, Little, little_index, wheel

SECRETS = (PASSWORD, LOGIN, base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode())


@pytest.fixture
def made(tmp_path: Path) -> Private:
    return private(tmp_path)


@pytest.fixture
def index(made: Private) -> Iterator[Little]:
    with little_index(made.packages) as little:
        yield little


@pytest.fixture
def swept(client: docker.DockerClient) -> Iterator[Callable[[str], None]]:
    tags: list[str] = []
    yield tags.append
    for tag in tags:
        client.api.remove_image(tag, force=True)


def installed(client: docker.DockerClient, image: str) -> set[str]:
    listed = client.containers.run(
        image, ["python", "-m", "pip", "list", "--format", "json"], network_mode="none", remove=True
    )
    return {package["name"] for package in json.loads(listed)}


def test_a_login_is_in_no_layer_no_history_no_label_no_log_and_no_progress(
    client: docker.DockerClient,
    engine: MakeEngine,
    made: Private,
    index: Little,
    tmp_path: Path,
    swept: Callable[[str], None],
) -> None:
    screen = io.StringIO()
    own = engine(index_url=index.url)
    with choose_view(Console(file=screen, width=300), quiet=False, verbose=True) as watching:
        result = make_ready((made.version,), own, tmp_path / "logs", watching)["1.14.0"]
    assert isinstance(result, ReadyEnvironment), result
    identity, tag = result.environment.facts.identity, result.environment.facts.details["tag"]
    swept(tag)
    assert installed(client, identity) == {"little-one", "little-two", "pip"}
    assert {"/simple/pip/", "/simple/little-one/", "/simple/little-two/"} <= {path for path, _ in index.asked}
    assert all(known for _, known in index.asked)

    [log] = (tmp_path / "logs").iterdir()
    history = subprocess.run(["docker", "history", "--no-trunc", identity], capture_output=True, text=True, check=True)
    told = log.read_text() + screen.getvalue() + history.stdout + json.dumps(client.api.history(identity))
    told += json.dumps(client.api.inspect_image(identity)) + repr(own._options)
    assert "index.tfcompare.invalid" in history.stdout, "what is searched does hold what a build is given"
    assert not [secret for secret in (*SECRETS, str(index.port)) if secret in told]
    assert "HTTP_PROXY" not in history.stdout
    archive = b"".join(client.images.get(tag).save())
    assert b"little_one.py" in archive
    assert not [secret for secret in (*SECRETS, f"127.0.0.1:{index.port}") if secret.encode() in archive]


def test_another_address_and_another_token_of_the_index_leave_the_cache_as_it_is(
    engine: MakeEngine, made: Private, index: Little, tmp_path: Path, swept: Callable[[str], None]
) -> None:
    """Only the lock has changed: the environment and its pip, one layer below, are there."""
    facts = engine(index_url=index.url).prepare(made.version, BuildLog(tmp_path / "first")).facts
    swept(facts.details["tag"])
    lock = made.version.flavours[0].lock
    lock.write_text(lock.read_text() + "# changed\n")
    with little_index(made.packages) as elsewhere:
        own = engine(index_url=elsewhere.url)
        swept(own.prepare(made.version, BuildLog(tmp_path / "second")).facts.details["tag"])
    assert "/simple/pip/" in {path for path, _ in index.asked}
    assert "/simple/pip/" not in {path for path, _ in elsewhere.asked}
    assert "Using cache" in (tmp_path / "second").read_text()


def test_a_wheelhouse_is_enough(
    client: docker.DockerClient, engine: MakeEngine, made: Private, tmp_path: Path, swept: Callable[[str], None]
) -> None:
    facts = engine(wheelhouse=made.packages).prepare(made.version, BuildLog(tmp_path / "log")).facts
    swept(facts.details["tag"])
    assert facts.size_bytes == client.images.get(facts.identity).attrs["Size"]
    assert installed(client, facts.identity) == {"little-one", "little-two", "pip"}


def failed(own: object, made: Private, log: Path) -> str:
    with pytest.raises(EnvironmentFailed) as error:
        own.prepare(made.version, BuildLog(log))  # type: ignore[attr-defined]
    return str(error.value)


# What it prints is that of a virtual environment's install, which is always tested.
@pytest.mark.long
def test_a_wheelhouse_that_lacks_a_package_is_told_by_its_name(
    engine: MakeEngine, made: Private, tmp_path: Path
) -> None:
    next(made.packages.glob("little_two-*")).unlink()
    own = engine(wheelhouse=made.packages)
    told = failed(own, made, tmp_path / "log")
    assert told.startswith(
        f"1.14.0: its image could not be built: the wheelhouse {made.packages} has no file of little-two==1.0"
    )
    assert "--index-url" in told
    assert own.outlook(made.version).text.startswith("to be built from ")
    wheel(made.packages, "little_two")


def test_a_file_that_is_not_the_locks_is_refused(
    engine: MakeEngine, made: Private, index: Little, tmp_path: Path
) -> None:
    [path] = made.packages.glob("little_two-*")
    path.write_bytes(path.read_bytes() + b"more")
    told = failed(engine(index_url=index.url), made, tmp_path / "log")
    assert "the index served a different file from the one in the lock" in told


def test_an_index_that_wants_a_login_says_how_to_give_one(
    engine: MakeEngine, made: Private, index: Little, tmp_path: Path
) -> None:
    told = failed(engine(index_url=index.without_login), made, tmp_path / "log")
    assert "requires a login" in told.splitlines()[0]
    assert "TFCOMPARE_INDEX_URL" in told


def test_an_index_that_breaks_off_is_no_wrong_hash(
    engine: MakeEngine, made: Private, index: Little, tmp_path: Path
) -> None:
    index.halves = True
    told = failed(engine(index_url=index.url), made, tmp_path / "log")
    assert "the package index 127.0.0.1 broke off in the middle of a file" in told.splitlines()[0]


def test_an_index_whose_name_is_unknown_is_told_as_such(engine: MakeEngine, made: Private, tmp_path: Path) -> None:
    told = failed(engine(index_url="http://nowhere.invalid/simple"), made, tmp_path / "log")
    assert "its name cannot be resolved" in told.splitlines()[0]
    assert "--wheelhouse" in told.splitlines()[0]


def test_a_base_that_is_set_to_another_index_is_not_followed_there(
    client: docker.DockerClient, engine: MakeEngine, docker_base: str, made: Private, tmp_path: Path
) -> None:
    """What an image sets goes before what a build is given, so this is the one way past it."""
    base_image(client, docker_base, "3.7")
    recipe = f"FROM {docker_base.replace('{python}', '3.7')}\nENV PIP_INDEX_URL=https://other.invalid/simple\n"
    client.images.build(fileobj=io.BytesIO(recipe.encode()), tag="tfcompare-test-base:set", rm=True)
    try:
        own = engine(base="tfcompare-test-base:set", wheelhouse=made.packages)
        told = failed(own, made, tmp_path / "log")
        assert "is set to ask other.invalid" in told.splitlines()[0]
    finally:
        client.api.remove_image("tfcompare-test-base:set", force=True)
