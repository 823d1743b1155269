"""Images for real: built once, named by everything that went into them, and failing with advice.

One tiny package stands in for TensorFlow where only the building is in question.
"""

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from rich.console import Console

from orchestrator import catalog
from orchestrator.catalog.version import Flavour, Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import image
from orchestrator.engines.docker.engine import DockerEngine, DockerEnvironment
from orchestrator.errors import EngineUnavailable, EnvironmentFailed
from orchestrator.measure.session import make_environments
from orchestrator.results.run_folder import RunFolder
from orchestrator.terminal.progress import choose_view
from orchestrator.terminal.view import View
from tests.engines.docker.conftest import MakeEngine, PrivateEngine, base_image, version
from tests.engines.docker.registry import registry as running_registry
from tests.support.heard import Listener

SIX = "six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274\n"
WRONG = SIX.replace("4721", "0000")


def tiny(folder: Path, lock: str) -> Version:
    """A version that is one small package, on Python 3.7."""
    (folder / "lock.txt").write_text(lock)
    full = version("1.14.0")
    flavours = [flavour for flavour in full.on("cpu") if flavour.python.number == "3.7"]
    return replace(full, flavours=tuple(replace(flavour, lock=folder / "lock.txt") for flavour in flavours))


@pytest.fixture
def swept(client: docker.DockerClient) -> Iterator[Callable[[str], str]]:
    """Removes the images told to it."""
    tags: list[str] = []

    def sweep(tag: str) -> str:
        tags.append(tag)
        return tag

    yield sweep
    for tag in tags:
        client.api.remove_image(tag, force=True)


def test_image_says_what_it_is(client: docker.DockerClient, environments: dict[str, DockerEnvironment]) -> None:
    facts = environments["1.14.0"].facts
    labels = client.images.get(facts.identity).labels
    # Another test may have built this image first, with another data folder.
    assert labels.pop(image.BUILDER).startswith(f"{os.getuid()}-")
    base = facts.details["base"]
    assert facts.identity.startswith("sha256:")
    assert labels == {
        "tfcompare.spec": facts.details["spec"],
        "tfcompare.version": "1.14.0",
        "tfcompare.flavour": "cpu",
        "tfcompare.python": "3.7",
        "tfcompare.lock": catalog.lock_hash(version("1.14.0").on("cpu")[0]),
        "org.opencontainers.image.title": "tfcompare TensorFlow 1.14.0",
        "org.opencontainers.image.version": "1.14.0",
        "org.opencontainers.image.revision": facts.details["spec"],
        "org.opencontainers.image.base.name": base,
        "org.opencontainers.image.base.digest": "",
        "tfcompare.base": client.images.get(base).id,
    }
    assert facts.details["tag"] == f"tfcompare:1.14.0-cpu-{labels['tfcompare.spec'][:12]}"
    assert facts.lock == labels["tfcompare.lock"]


def test_second_prepare_builds_nothing(
    environments: dict[str, DockerEnvironment], engine: MakeEngine, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    own = engine()
    again = own.prepare(version("1.14.0"), BuildLog(log))
    assert again.facts == environments["1.14.0"].facts
    assert not log.exists()
    assert own.outlook(version("1.14.0")).text == f"ready ({again.facts.details['tag']})"


def test_any_change_of_the_recipe_is_another_image(
    client: docker.DockerClient, docker_base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = version("1.14.0")
    [flavour] = [flavour for flavour in full.on("cpu") if flavour.python.number == "3.7"]
    for path in (catalog.DOCKERFILE, flavour.lock, flavour.pip_lock):
        shutil.copy(path, tmp_path)
    copy = replace(flavour, lock=tmp_path / flavour.lock.name, pip_lock=tmp_path / flavour.pip_lock.name)

    def made(flavour: Flavour, base: str = docker_base) -> image.Recipe:
        return image.recipe(client, full, flavour, base)

    first = made(flavour)
    monkeypatch.setattr(catalog, "DOCKERFILE", tmp_path / "Dockerfile")
    assert made(copy) == first, "where the files lie does not matter"
    recipes = [first, made(copy, docker_base.replace("{python}", "3.11"))]
    for path in (catalog.DOCKERFILE, copy.lock, copy.pip_lock):
        before = path.read_bytes()
        path.write_bytes(before + b"#")
        recipes.append(made(copy))
        path.write_bytes(before)
    assert len({recipe.spec for recipe in recipes}) == len({recipe.tag for recipe in recipes}) == 5


def test_another_image_under_the_name_of_the_base_is_another_image(
    client: docker.DockerClient, docker_base: str, swept: Callable[[str], str]
) -> None:
    name = swept("tfcompare-test-base:moving")
    full = version("1.14.0")
    specs = []
    for python in ("3.7", "3.11"):
        base_image(client, docker_base, python).tag(name)
        specs.append(image.recipe(client, full, full.on("cpu")[0], name).spec)
    assert specs[0] != specs[1]


def test_base_that_is_not_there_is_named_with_advice(engine: MakeEngine, tmp_path: Path) -> None:
    own = engine(base="127.0.0.1:1/nowhere:{python}")
    with pytest.raises(EnvironmentFailed) as failed:
        own.prepare(version("1.14.0"), BuildLog(tmp_path / "log"))
    message = str(failed.value)
    assert message.startswith("1.14.0: its image could not be built: ")
    assert "127.0.0.1:1/nowhere:3.7" in message
    assert "--base" in message
    assert "--engine venv" in message


def test_name_that_is_no_image_name_is_an_error_with_the_name(engine: MakeEngine, tmp_path: Path) -> None:
    own = engine(base="No Image")
    with pytest.raises(EnvironmentFailed, match=r"1\.14\.0: .*No Image.*invalid reference format"):
        own.prepare(version("1.14.0"), BuildLog(tmp_path / "log"))


def test_wrong_hash_in_a_lock_builds_nothing(engine: MakeEngine, tmp_path: Path) -> None:
    own = engine()
    with pytest.raises(EnvironmentFailed) as failed:
        own.prepare(tiny(tmp_path, WRONG), BuildLog(tmp_path / "log"))
    message = str(failed.value)
    assert "the index served a different file from the one in the lock. Do not trust it, unless you know why" in message
    assert "six==1.17.0" in message
    assert str(tmp_path / "log") in message
    assert own.outlook(tiny(tmp_path, WRONG)).text.startswith("to be built from ")


def test_lock_is_all_that_is_installed_and_the_log_is_live(
    client: docker.DockerClient, engine: MakeEngine, tmp_path: Path, swept: Callable[[str], str]
) -> None:
    own = engine()
    # The folder's name keeps the builder's cache out of it.
    small = tiny(tmp_path, f"# {tmp_path}\n{SIX}")
    seen: list[str] = []
    outlooks: list[str] = []

    def watch(line: str) -> None:
        seen.append(line)
        if "six" in line:
            outlooks.append(str(own.outlook(small)))

    facts = own.prepare(small, BuildLog(tmp_path / "log", Listener(watch=watch))).facts
    swept(facts.details["tag"])
    assert client.images.get(facts.identity).labels[image.BUILDER] == image.builder()
    assert outlooks[0].startswith("to be built from "), "a line comes while the build goes on"
    assert seen[0] == f"building {facts.details['tag']} from {facts.details['base']}"
    assert seen == (tmp_path / "log").read_text().splitlines()
    listed = client.containers.run(
        facts.identity, ["python", "-m", "pip", "list", "--format", "json"], network_mode="none", remove=True
    )
    assert {package["name"] for package in json.loads(listed)} == {"pip", "setuptools", "six", "wheel"}


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a Dockerfile with one command in place of the real one."""

    def write(command: str) -> None:
        path = tmp_path / "Dockerfile"
        # The folder's name keeps the builder's cache out of it.
        path.write_text(f"ARG BASE\nFROM ${{BASE}}\nARG GPUS\nRUN : {tmp_path} && {command}\n")
        monkeypatch.setattr(catalog, "DOCKERFILE", path)

    return write


def told(view: View, engine: DockerEngine, folder: Path) -> str:
    """Prepares a stub through `view`; the tag of its image."""
    full = version("1.14.0")
    run = RunFolder.create(folder / "run")
    with view:
        environments, failures = make_environments((full,), engine, run, view)
    assert not failures
    return environments["1.14.0"].facts.details["tag"]


def test_verbose_run_shows_the_whole_log(
    engine: MakeEngine, tmp_path: Path, stub: Callable[[str], None], swept: Callable[[str], str]
) -> None:
    stub("echo first of its lines && echo and the next")
    screen = io.StringIO()
    swept(told(choose_view(Console(file=screen), quiet=False, verbose=True), engine(), tmp_path))
    log = (tmp_path / "run" / "logs" / "build-1.14.0.log").read_text().splitlines()
    shown = screen.getvalue().splitlines()
    assert [line for line in shown if line.removeprefix("1.14.0: ") in log] == [f"1.14.0: {line}" for line in log]
    assert "1.14.0: first of its lines" in shown
    assert "1.14.0: and the next" in shown


def test_run_in_a_terminal_shows_the_line_it_is_at(
    engine: MakeEngine, tmp_path: Path, stub: Callable[[str], None], swept: Callable[[str], str]
) -> None:
    stub("echo at this line && sleep 1")
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    swept(told(choose_view(console, quiet=False, verbose=False), engine(), tmp_path))
    assert "at this line" in screen.getvalue()


def test_run_in_a_log_says_what_is_built_and_keeps_the_build_out_of_it(
    engine: MakeEngine, tmp_path: Path, stub: Callable[[str], None], swept: Callable[[str], str]
) -> None:
    stub("echo a line of the build")
    screen = io.StringIO()
    swept(told(choose_view(Console(file=screen, width=200), quiet=False, verbose=False), engine(), tmp_path))
    assert screen.getvalue().startswith("1.14.0: to be built from ")
    assert "a line of the build" not in screen.getvalue()
    assert "a line of the build" in (tmp_path / "run" / "logs" / "build-1.14.0.log").read_text()


def test_proxies_reach_the_build_and_stay_out_of_the_image(
    client: docker.DockerClient,
    engine: MakeEngine,
    tmp_path: Path,
    stub: Callable[[str], None],
    swept: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
    stub("echo proxy: $HTTPS_PROXY")
    log = tmp_path / "log"
    own = engine()
    facts = own.prepare(version("1.14.0"), BuildLog(log)).facts
    swept(facts.details["tag"])
    assert "proxy: http://proxy.invalid:3128" in log.read_text().splitlines()
    assert "proxy.invalid" not in json.dumps(client.api.inspect_image(facts.identity))
    assert "proxy.invalid" not in json.dumps(client.api.history(facts.identity))


def test_engine_that_dies_during_a_build_is_an_engine_that_is_gone(
    on_private: PrivateEngine, docker_base: str, engine: MakeEngine, tmp_path: Path, stub: Callable[[str], None]
) -> None:
    stub("echo the build goes && sleep 100")

    def watch(line: str) -> None:
        if line == "the build goes":
            on_private.kill()

    try:
        with pytest.raises(EngineUnavailable, match=r"^1\.14\.0: .*stopped answering"):
            engine(base=docker_base.replace("{python}", "3.6")).prepare(
                version("1.14.0"), BuildLog(tmp_path / "log", Listener(watch=watch))
            )
    finally:
        on_private.kill()
        on_private.start()


def test_who_asks_for_an_image_while_another_builds_it_waits_and_has_the_same(
    client: docker.DockerClient,
    engine: MakeEngine,
    tmp_path: Path,
    stub: Callable[[str], None],
    swept: Callable[[str], str],
) -> None:
    stub("echo it is built && sleep 3")
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    engines = [engine() for _ in logs]

    def prepare(own: DockerEngine, log: Path) -> DockerEnvironment:
        return own.prepare(version("1.14.0"), BuildLog(log))

    with ThreadPoolExecutor() as pool:
        first, second = (made.facts for made in pool.map(prepare, engines, logs))
    tag = swept(first.details["tag"])
    assert first == second
    assert len(client.images.list(filters={"label": f"tfcompare.spec={first.details['spec']}"}, all=True)) == 1
    waited, built = sorted((log.read_text().splitlines() for log in logs), key=len)
    assert waited == [f"another process builds {tag}; waiting for it"]
    assert "it is built" in built


@pytest.fixture
def registry(client: docker.DockerClient, docker_base: str, tmp_path: Path) -> Iterator[str]:
    """A registry of this machine that holds the base of Python 3.7; the pattern of its names."""
    with running_registry(tmp_path) as running:
        name = f"{running.address}/base:3.7"
        base_image(client, docker_base, "3.7").tag(name)
        try:
            pushed = [json.loads(line) for line in client.api.push(name).splitlines()]
            assert not [line for line in pushed if "error" in line], pushed
            client.api.remove_image(name)
            yield f"{running.address}/base:{{python}}"
        finally:
            if any(name in image.tags for image in client.images.list()):
                client.api.remove_image(name)


def test_base_from_a_registry_is_pulled_once_and_its_image_built_once(
    registry: str, engine: MakeEngine, tmp_path: Path, stub: Callable[[str], None], swept: Callable[[str], str]
) -> None:
    stub("echo built")
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    own = engine(base=registry)
    facts = own.prepare(version("1.14.0"), BuildLog(first)).facts
    swept(facts.details["tag"])
    assert f"pulling {registry.replace('{python}', '3.7')}" in first.read_text().splitlines()
    assert "built" in first.read_text().splitlines()
    assert own.prepare(version("1.14.0"), BuildLog(second)).facts == facts
    assert not second.exists()


def test_tag_that_a_registry_does_not_hold_is_named_with_advice(
    registry: str, engine: MakeEngine, tmp_path: Path
) -> None:
    own = engine(base=registry.replace("base:", "other:"))
    with pytest.raises(EnvironmentFailed) as failed:
        own.prepare(version("1.14.0"), BuildLog(tmp_path / "log"))
    assert f"the base image {registry.replace('base:{python}', 'other:3.7')} is not in the registry" in str(
        failed.value
    )
    assert "--base" in str(failed.value)
