"""Images that there are, for real: found, looked into, freed, and carried to an engine without their base."""

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import pytest

from orchestrator import catalog
from orchestrator.catalog import user_data
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import container, image, own_image
from orchestrator.engines.docker.engine import DockerEnvironment
from orchestrator.engines.docker.inside import look_inside
from orchestrator.errors import EnvironmentFailed
from orchestrator.images import load as load_module
from orchestrator.images import verify as verify_module
from orchestrator.images.archive import read_archive
from orchestrator.images.verify import Verification, verify
from tests.engines.docker.conftest import MakeEngine, PrivateEngine, base_image, label_line, stand_in, version
from tests.support import whole_image
from tests.support.commands import called

# A base that only these tests know, under a name that they may take away.
NAME = "tfcompare-kept:3.7"
BASE = NAME.replace("3.7", "{python}")


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Images = Callable[..., Done]


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Images:
    """`tfcompare images ...` in this process, which saves the second that a new one takes to import it all."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def call(*argv: str | Path) -> Done:
        code = called(monkeypatch, "images", *map(str, argv))
        streams = capsys.readouterr()
        return Done(code, streams.out, streams.err)

    return call


@pytest.fixture(scope="session")
def python37(private_engine: PrivateEngine, client: docker.DockerClient, docker_base: str) -> str:
    """A base of Python 3.7 in the private engine, under a name that no version asks for."""
    with closing(private_engine.client()) as own:
        [base] = own.images.load(base_image(client, docker_base, "3.7").save())
        base.tag("tfcompare-kept-python:3.7")
    return "tfcompare-kept-python:3.7"


@pytest.fixture
def there(
    on_private: PrivateEngine, python37: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[docker.DockerClient]:
    """The private engine with that base and no image of tfcompare's but those of a test."""
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TFCOMPARE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TFCOMPARE_BASE", raising=False)
    catalog.reread()
    client = on_private.client()
    before = {entry["Id"] for entry in client.api.images(filters={"label": image.SPEC_LABEL})}
    client.images.get(python37).tag(NAME)
    yield client
    for entry in client.api.images(filters={"label": image.SPEC_LABEL}):
        if entry["Id"] not in before:
            client.api.remove_image(entry["Id"], force=True)
    with suppress(docker.errors.ImageNotFound):
        client.api.remove_image(NAME)
    client.close()
    catalog.reread()


def make(client: docker.DockerClient, number: str = "1.14.0") -> image.Recipe:
    """An image that passes for the one that a run builds."""
    stand_in(client, client.images.get(NAME).id, number, "cpu", BASE)
    return image.recipe(client, version(number), version(number).on("cpu")[0], BASE)


def make_whole(
    client: docker.DockerClient, folder: Path, number: str = "1.14.0", *, holds: str = "", more: str = ""
) -> image.Recipe:
    """An image that `images verify` finds right, unless it `holds` another TensorFlow than its labels say."""
    made = image.recipe(client, version(number), version(number).on("cpu")[0], BASE)
    inside = version(holds or number)
    context = whole_image.write_context(
        folder / "context", NAME, inside.on("cpu")[0], inside.number, label_line(made), more
    )
    shutil.rmtree(folder / "context")
    client.images.build(fileobj=io.BytesIO(context), custom_context=True, tag=made.tag, rm=True)
    return made


def listed(images: Images, *flags: str) -> list[dict[str, Any]]:
    done = images("list", "--format", "json", *flags)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return [entry for entry in found if entry.get("base", NAME).startswith("tfcompare-kept:")]


def test_an_image_is_found_and_is_current_until_its_base_is_another_one(
    there: docker.DockerClient, images: Images
) -> None:
    made = make(there)
    [found] = listed(images, "--base", BASE)
    assert (found["version"], found["flavour"], found["python"]) == ("1.14.0", "cpu", "3.7")
    assert (found["tag"], found["state"], found["why"], found["spec"]) == (made.tag, "current", "", made.spec)
    assert found["size"] > 10**7
    there.images.get(made.tag).tag(NAME)
    [found] = listed(images, "--base", BASE)
    assert (found["state"], found["why"]) == ("stale", "its base has changed")
    shown = images("list")
    assert "stale: built on tfcompare-kept:3.7" in shown.stdout
    # Which base it names depends on what else this engine has.
    assert re.search(r"name it with --base '\S+' or TFCOMPARE_BASE", shown.stderr)
    assert {entry["state"] for entry in listed(images, "--all")} == {"stale", "not built"}


def test_an_image_outlives_its_base(there: docker.DockerClient, engine: MakeEngine, tmp_path: Path) -> None:
    made = make(there)
    there.api.remove_image(NAME)
    own_engine = engine(base=BASE)
    assert own_engine.outlook(version("1.14.0")).text == f"ready ({made.tag})"
    facts = own_engine.prepare(version("1.14.0"), BuildLog(tmp_path / "log")).facts
    assert facts.details["spec"] == made.spec
    assert not (tmp_path / "log").exists(), "nothing was pulled or built"


def saved(images: Images, path: Path, *names: str, base: str = BASE) -> None:
    done = images("save", path, *names, "--base", base)
    assert done.returncode == 0, done.stderr
    assert f"written: {path} (" in done.stderr
    assert sorted(entry.name for entry in path.parent.iterdir() if entry.suffix == ".tar") == [path.name]


def forget(client: docker.DockerClient, *made: image.Recipe) -> None:
    """Makes the engine one that has neither the images nor their base."""
    for one in made:
        client.api.remove_image(one.tag)
    client.api.remove_image(NAME)
    assert not client.images.list(filters={"label": f"{image.BASE_NAME}={NAME}"})


def test_images_go_to_an_engine_without_their_base_and_a_run_there_finds_them(
    there: docker.DockerClient, images: Images, engine: MakeEngine, tmp_path: Path
) -> None:
    made = [make_whole(there, tmp_path, number) for number in ("1.14.0", "2.0.0")]
    ids = [there.images.get(one.tag).id for one in made]
    path = tmp_path / "images.tar"
    saved(images, path)
    assert [packed.tag for packed in read_archive(path)] == [one.tag for one in made]
    alone = sum(there.images.get(identity).attrs["Size"] for identity in ids)
    assert path.stat().st_size < 0.8 * alone, "what both share is there once"

    forget(there, *made)
    assert listed(images, "--base", BASE) == []
    done = images("load", path, "--base", BASE)
    assert done.returncode == 0, done.stderr
    assert "ready: 1.14.0, 2.0.0" in done.stderr
    assert [entry["state"] for entry in listed(images, "--base", BASE)] == ["current", "current"]
    own_engine = engine(base=BASE)
    for one, identity in zip(made, ids, strict=True):
        facts = own_engine.prepare(version(one.version), BuildLog(tmp_path / "log")).facts
        assert facts.identity == identity
    assert not (tmp_path / "log").exists(), "nothing was pulled or built"


def test_a_load_without_the_base_says_with_which_its_images_are_ready(
    there: docker.DockerClient, images: Images, tmp_path: Path
) -> None:
    made = make_whole(there, tmp_path)
    saved(images, tmp_path / "images.tar", "1.14")
    forget(there, made)
    done = images("load", tmp_path / "images.tar")
    assert done.returncode == 0, done.stderr
    assert "ready with --base 'tfcompare-kept:{python}' or TFCOMPARE_BASE: 1.14.0" in done.stderr


@pytest.mark.parametrize("flags", [("--base", BASE), ()])
def test_a_base_that_was_locked_there_is_locked_here_if_the_user_asks_for_it(
    there: docker.DockerClient, images: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    digest = "sha256:" + "1" * 64
    user_data.write_digests({NAME: digest})
    made = make_whole(there, tmp_path)
    assert made.base == f"{NAME}@{digest}"
    assert made.labels[image.BASE_DIGEST] == digest
    saved(images, tmp_path / "images.tar")
    forget(there, made)
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path / "elsewhere"))
    done = images("load", tmp_path / "images.tar", *flags)
    assert done.returncode == 5
    assert f"{made.tag}: not loaded: it is built on {NAME} with the digest {digest}" in done.stderr
    assert "--lock-bases" in done.stderr
    assert user_data.digests() == {}
    assert made.tag not in tags(there)
    done = images("load", tmp_path / "images.tar", *flags, "--lock-bases")
    assert done.returncode == 0, done.stderr
    assert f"locked {NAME} to {digest}" in done.stderr
    assert ("ready: 1.14.0" if flags else f"ready with --base '{BASE}' or TFCOMPARE_BASE: 1.14.0") in done.stderr
    assert user_data.digests() == {NAME: digest}
    [found] = listed(images, "--base", BASE)
    assert found["state"] == "current"


def test_a_digest_that_is_locked_here_stays(there: docker.DockerClient, images: Images, tmp_path: Path) -> None:
    theirs, ours = {NAME: "sha256:" + "1" * 64}, {NAME: "sha256:" + "2" * 64}
    user_data.write_digests(theirs)
    made = make_whole(there, tmp_path)
    saved(images, tmp_path / "images.tar")
    forget(there, made)
    user_data.write_digests(ours)
    done = images("load", tmp_path / "images.tar", "--base", BASE, "--lock-bases")
    assert done.returncode == 5
    assert f"{made.tag}: not loaded: no run here would use it: its base has changed" in done.stderr
    assert user_data.digests() == ours
    assert made.tag not in tags(there)


def identities(client: docker.DockerClient) -> dict[str, set[str]]:
    """The names of every image of this engine, with those of no name."""
    return {str(one.id): set(one.tags) for one in client.images.list()}


def test_an_archive_whose_images_are_here_changes_nothing(
    there: docker.DockerClient, images: Images, tmp_path: Path
) -> None:
    made = make_whole(there, tmp_path)
    saved(images, tmp_path / "images.tar")
    before = identities(there)
    for flags in ((), ("--replace",)):
        done = images("load", tmp_path / "images.tar", "--base", BASE, *flags)
        assert done.returncode == 0, done.stderr
        assert f"{made.tag} is already here" in done.stderr
        assert "ready: 1.14.0" in done.stderr
        assert identities(there) == before


def test_an_image_that_is_here_is_replaced_only_if_the_user_asks_for_it(
    there: docker.DockerClient, images: Images, tmp_path: Path
) -> None:
    made = make_whole(there, tmp_path, more="ENV BUILT=there")
    path, theirs = tmp_path / "images.tar", there.images.get(made.tag).id
    saved(images, path)
    there.api.remove_image(made.tag)
    make_whole(there, tmp_path, more="ENV BUILT=here")
    ours = there.images.get(made.tag).id
    before = identities(there)
    done = images("load", path, "--base", BASE)
    assert done.returncode == 5
    assert f"{made.tag}: not loaded: an image with this name and other content is here; --replace" in done.stderr
    assert identities(there) == before
    done = images("load", path, "--base", BASE, "--replace")
    assert done.returncode == 0, done.stderr
    assert f"{made.tag} replaced {ours[:19]}" in done.stderr
    assert there.images.get(made.tag).id == theirs
    assert there.images.get(ours).tags == []
    assert images("prune", "--base", BASE, "--yes").returncode == 0
    assert ours not in identities(there)


def test_a_forged_image_gets_no_name_and_the_honest_one_beside_it_does(
    there: docker.DockerClient, images: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forged one holds 1.14.0 under the labels and the name of 2.0.0; a good image is here, or none is."""
    before = tags(there)
    honest = make_whole(there, tmp_path)
    forged = make_whole(there, tmp_path, "2.0.0", holds="1.14.0")
    path, identity = tmp_path / "images.tar", there.images.get(forged.tag).id
    saved(images, path)
    for tag in (honest.tag, forged.tag):
        there.api.remove_image(tag)
    named: list[str] = []
    original = verify_module.verify

    def watched(client: docker.DockerClient, image_id: str, *others: Any) -> Verification:
        named.extend(client.images.get(image_id).tags)
        return original(client, image_id, *others)

    monkeypatch.setattr(load_module, "verify", watched)
    done = images("load", path, "--base", BASE)
    assert done.returncode == 5
    assert (
        f"{forged.tag}: not loaded: it does not hold what its labels say: TensorFlow: 1.14.0; expected: 2.0.0"
        in done.stderr
    )
    assert "ready: 1.14.0\n" in done.stderr
    assert tags(there) - before == {honest.tag}
    assert identity not in identities(there)
    make_whole(there, tmp_path, "2.0.0")
    good = there.images.get(forged.tag).id
    done = images("load", path, "--base", BASE)
    assert done.returncode == 5
    assert f"{forged.tag}: not loaded: an image with this name and other content is here" in done.stderr
    done = images("load", path, "--base", BASE, "--replace")
    assert done.returncode == 5
    assert there.images.get(forged.tag).id == good
    assert identity not in identities(there)
    assert not named, "what is verified has no name that a run could take it by"


def test_a_forged_image_that_was_here_before_stays(there: docker.DockerClient, images: Images, tmp_path: Path) -> None:
    forged = make_whole(there, tmp_path, "2.0.0", holds="1.14.0")
    saved(images, tmp_path / "images.tar")
    there.images.get(forged.tag).tag("mine:forged")
    there.api.remove_image(forged.tag)
    before = identities(there)
    assert images("load", tmp_path / "images.tar", "--base", BASE).returncode == 5
    assert identities(there) == before


def test_an_image_on_another_base_of_the_same_name_does_not_make_those_here_stale(
    there: docker.DockerClient, images: Images, tmp_path: Path
) -> None:
    """Both machines have no base; the newest image on it would say which id it has."""
    ours = make_whole(there, tmp_path)
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
    saved(images, tmp_path / "ours" / "images.tar")
    there.api.remove_image(ours.tag)
    there.images.build(fileobj=io.BytesIO(f"FROM {NAME}\nENV OTHER=yes\n".encode()), tag=NAME, rm=True)
    theirs = make_whole(there, tmp_path, "2.0.0")
    assert theirs.labels[image.BASE_ID] != ours.labels[image.BASE_ID]
    saved(images, tmp_path / "theirs" / "images.tar", "2.0")
    forget(there, theirs)
    assert images("load", tmp_path / "ours" / "images.tar", "--base", BASE).returncode == 0
    done = images("load", tmp_path / "theirs" / "images.tar", "--base", BASE)
    assert done.returncode == 5
    assert f"{theirs.tag}: not loaded: no run here would use it: its base has changed" in done.stderr
    [found] = listed(images, "--base", BASE)
    assert (found["version"], found["state"]) == ("1.14.0", "current")


def rewrite(old: Path, new: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Writes an archive again after a change of its members."""
    with tarfile.open(old) as tar:
        members = {entry.name: tar.extractfile(entry).read() for entry in tar if entry.isfile()}
    change(members)
    with tarfile.open(new, "w") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return new


def test_layers_packed_by_gzip_are_loaded_and_count_as_what_they_unpack_to(
    there: docker.DockerClient, images: Images, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines that keep images in containerd save such layers."""
    made = make_whole(there, tmp_path)
    saved(images, tmp_path / "plain.tar")
    identity = there.images.get(made.tag).id
    forget(there, made)

    def pack(members: dict[str, bytes]) -> None:
        for name in {name for entry in json.loads(members["manifest.json"]) for name in entry["Layers"]}:
            members[name] = gzip.compress(members[name], 1)

    packed = rewrite(tmp_path / "plain.tar", tmp_path / "packed.tar", pack)
    before = identities(there)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=packed.stat().st_size + 10**6))
        done = images("load", packed, "--base", BASE)
        assert done.returncode == 2
        assert f"{packed}: its layers need more than" in done.stderr
    assert identities(there) == before
    done = images("load", packed, "--base", BASE)
    assert done.returncode == 0, done.stderr
    assert there.images.get(made.tag).id == identity


def test_a_layer_with_a_hole_is_refused_before_the_engine_fills_it(
    there: docker.DockerClient, images: Images, tmp_path: Path
) -> None:
    made = make_whole(there, tmp_path)
    saved(images, tmp_path / "plain.tar")
    forget(there, made)
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(2**25)
    layer = subprocess.run(
        ["tar", "--sparse", "--format=pax", "-cf", "-", "hole"], cwd=tmp_path, check=True, capture_output=True
    ).stdout

    def add(members: dict[str, bytes]) -> None:
        [entry] = json.loads(members["manifest.json"])
        config = json.loads(members[entry["Config"]])
        config["rootfs"]["diff_ids"].append(f"sha256:{hashlib.sha256(layer).hexdigest()}")
        members[entry["Config"]] = json.dumps(config).encode()
        members["hole.tar"] = layer
        members["manifest.json"] = json.dumps([{**entry, "Layers": [*entry["Layers"], "hole.tar"]}]).encode()

    hostile = rewrite(tmp_path / "plain.tar", tmp_path / "hostile.tar", add)
    before = identities(there)
    done = images("load", hostile, "--base", BASE)
    assert done.returncode == 2
    assert f"{hostile}: the file 'hole' in a layer has holes" in done.stderr
    assert identities(there) == before
    [loaded] = there.images.load(hostile.read_bytes())
    assert loaded.attrs["Size"] > 2**25, "what the engine makes of it"
    there.api.remove_image(loaded.id, force=True)


def test_an_archive_with_anything_else_in_it_is_not_loaded(
    there: docker.DockerClient, images: Images, tmp_path: Path
) -> None:
    path = tmp_path / "base.tar"
    with path.open("wb") as file:
        for chunk in there.images.get(NAME).save(named=NAME):
            file.write(chunk)
    there.api.remove_image(NAME)
    done = images("load", path)
    assert done.returncode == 2
    assert f"{NAME} in it is not a tfcompare image" in done.stderr
    with pytest.raises(docker.errors.ImageNotFound):
        there.images.get(NAME)


def test_a_version_without_an_image_cannot_be_saved_or_verified(
    there: docker.DockerClient, images: Images, tmp_path: Path
) -> None:
    for argv in (("save", tmp_path / "images.tar", "2.0"), ("verify", "2.0")):
        done = images(*argv, "--base", BASE)
        assert done.returncode == 5
        assert "2.0.0: no image is current; `tfcompare images build` builds one" in done.stderr
    done = images("save", tmp_path / "images.tar")
    assert done.returncode == 3
    assert not (tmp_path / "images.tar").exists()


@pytest.fixture
def stale(there: docker.DockerClient) -> image.Recipe:
    """An image whose base is another one by now; the recipe of then."""
    made = make(there)
    dockerfile = io.BytesIO(f"FROM {NAME}\nENV MOVED=yes\n".encode())
    there.images.build(fileobj=dockerfile, tag=NAME, rm=True)
    return made


def tags(client: docker.DockerClient) -> set[str]:
    return {tag for one in client.images.list(filters={"label": image.SPEC_LABEL}) for tag in one.tags}


def test_prune_shows_what_it_would_free_and_removes_nothing_unasked(
    there: docker.DockerClient, stale: image.Recipe, images: Images
) -> None:
    now = make(there)
    done = images("prune", "--base", BASE)
    assert done.returncode == 2
    assert stale.tag in done.stdout
    assert "its base has changed" in done.stdout
    assert "frees about " in done.stdout
    assert now.tag not in done.stdout
    assert "nothing was removed" in done.stderr
    assert "--yes" in done.stderr
    assert {stale.tag, now.tag} <= tags(there)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_prune_asks_in_a_terminal(
    there: docker.DockerClient, stale: image.Recipe, images: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    done = images("prune", "--base", BASE)
    assert (done.returncode, done.stdout.endswith("nothing was removed\n")) == (0, True)
    assert stale.tag in tags(there)
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert "freed about " in images("prune", "--base", BASE).stdout
    assert stale.tag not in tags(there)


def test_prune_takes_old_images_and_dead_containers_and_leaves_what_is_in_use(
    there: docker.DockerClient, stale: image.Recipe, images: Images
) -> None:
    now = make(there)
    running = there.containers.run(stale.tag, ["sleep", "600"], detach=True, network_mode="none")
    # Of this boot, by a process that there cannot be.
    owner = container.owner().rpartition(":")[0].rpartition(":")[0] + ":999999999:1"
    dead = there.containers.create(now.tag, ["sleep", "600"], labels={container.OWNER_LABEL: owner})
    try:
        done = images("prune", "--base", BASE, "--yes")
        assert done.returncode == 0, done.stderr
        assert f"left alone: {stale.tag}: the running container {running.name} uses it" in done.stdout
        assert "1 container" in done.stdout
        assert {stale.tag, now.tag} <= tags(there)
        with pytest.raises(docker.errors.NotFound):
            dead.reload()
    finally:
        running.remove(force=True)
    done = images("prune", "--base", BASE, "--yes")
    assert done.returncode == 0, done.stderr
    assert stale.tag not in tags(there)
    assert now.tag in tags(there)
    # Other tests have left images of their own installations in this engine.
    assert images("prune", "--base", BASE).stdout.endswith("nothing to free\n")
    assert images("prune", "--base", BASE, "--all", "--yes").returncode == 0
    assert now.tag not in tags(there)


def test_prune_leaves_images_on_a_base_that_it_was_not_told_of(there: docker.DockerClient, images: Images) -> None:
    made = make(there)
    done = images("prune", "--yes")
    assert done.returncode == 0, done.stderr
    assert f"left alone: {made.tag}: it was built with --base 'tfcompare-kept:{{python}}'" in done.stdout
    assert made.tag in tags(there)


Tampered = Callable[[str], str]


@pytest.fixture
def tampered(client: docker.DockerClient, environments: dict[str, DockerEnvironment]) -> Iterator[Tampered]:
    """Makes images of 1.14 that somebody has changed by a command; their labels are still those of the build."""
    made: list[str] = []

    def change(command: str) -> str:
        identity = environments["1.14.0"].facts.identity
        changed = client.containers.create(identity, ["sh", "-c", command], user="0", network_mode="none")
        try:
            changed.start()
            assert changed.wait(timeout=120)["StatusCode"] == 0, changed.logs()
            made.append(str(changed.commit().id))
        finally:
            changed.remove(force=True)
        return made[-1]

    yield change
    for identity in made:
        client.api.remove_image(identity, force=True)


def verified(client: docker.DockerClient, identity: str, docker_base: str) -> Verification:
    full = version("1.14.0")
    flavour = full.on("cpu")[0]
    return verify(client, identity, "it", full, flavour, image.recipe(client, full, flavour, docker_base))


def wrong(found: Verification) -> dict[str, str]:
    return {check.subject: check.found for check in found.checks if not check.ok}


def test_a_real_image_is_what_its_table_and_its_locks_say(
    environments: dict[str, DockerEnvironment], docker_base: str, images: Images
) -> None:
    done = images("verify", "1.14", "--base", docker_base, "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    [found] = json.loads(done.stdout)
    assert found["ok"] is True
    told = {check["subject"]: check["found"] for check in found["checks"]}
    assert (told["TensorFlow"], told["Keras"], told["build"]) == ("1.14.0", "2.2.5", "CPU")
    assert told["Python"].startswith("3.7.")
    assert int(told["files"].split()[0]) > 5000
    assert found["image"] == environments["1.14.0"].facts.details["tag"]


def test_a_changed_file_and_a_removed_package_are_found_in_an_image_that_calls_itself_the_same(
    client: docker.DockerClient, tampered: Tampered, docker_base: str
) -> None:
    packages = "/opt/tfcompare/lib/python3.7/site-packages"
    identity = tampered(
        f"echo >> {packages}/keras/losses.py && rm -r {packages}/termcolor* && echo import os > {packages}/more.pth"
    )
    assert client.images.get(identity).labels[image.SPEC_LABEL]
    found = wrong(verified(client, identity, docker_base))
    assert found["packages"] == "termcolor is missing"
    assert found["files"].startswith("changed keras/losses.py; added more.pth")
    assert set(found) <= {"packages", "files", "TensorFlow", "numpy", "build"}


def test_an_image_in_which_nothing_starts_is_told_and_is_no_traceback(
    client: docker.DockerClient, tampered: Tampered, docker_base: str
) -> None:
    assert "start" in wrong(verified(client, tampered("rm -r /opt/tfcompare/bin /usr/local/bin/python3*"), docker_base))
    broken = tampered("echo broken > /opt/tfcompare/lib/python3.7/site-packages/numpy/__init__.py")
    found = wrong(verified(client, broken, docker_base))
    assert found["TensorFlow"].startswith("cannot be imported: NameError")
    assert found["files"] == "changed numpy/__init__.py"


def test_what_looks_into_an_image_may_do_no_more_than_a_worker(
    client: docker.DockerClient, environments: dict[str, DockerEnvironment], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []

    class Watched(container.ContainerChannel):
        def __init__(self, client: docker.DockerClient, made: str, *others: Any) -> None:
            seen.append(client.api.inspect_container(made)["HostConfig"])
            super().__init__(client, made, *others)

    monkeypatch.setattr(container, "ContainerChannel", Watched)
    found = look_inside(client, environments["1.14.0"].facts.identity, "1.14.0")
    assert not isinstance(found, str), found
    assert found.imported.tensorflow == "1.14.0"
    [config] = seen
    assert (config["NetworkMode"], config["ReadonlyRootfs"], config["CapDrop"]) == ("none", True, ["ALL"])
    assert config["SecurityOpt"] == ["no-new-privileges"]
    assert not client.api.containers(all=True, filters={"label": f"{container.RUN_LABEL}=verify"})


@pytest.mark.parametrize(
    "packages",
    [
        {"pyarrow @ http://127.0.0.1:1/pyarrow-12.0.1.tar.gz\nx": "1.0"},
        {"pyarrow": "12.0.1\nx @ http://127.0.0.1:1/x.tar.gz"},
    ],
)
def test_an_image_of_the_users_own_whose_packages_have_odd_names_or_versions_is_refused(
    there: docker.DockerClient, tmp_path: Path, packages: dict[str, str]
) -> None:
    """These would be lines of a file that an installer on the host reads."""
    imported = {"tensorflow": "2.0.0", "numpy": "1.18.5", "cuda_build": False}
    answer = {"python": "3.7.16", "distributions": packages, "unrecorded": [], "files": [], "imported": imported}
    (tmp_path / "python3").write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
    (tmp_path / "python3").chmod(0o755)
    (tmp_path / "Dockerfile").write_text(f"FROM {NAME}\nCOPY python3 /usr/local/bin/\n")
    made, _ = there.images.build(path=str(tmp_path), rm=True)
    try:
        with pytest.raises(EnvironmentFailed, match=r"its answer is no inventory: distributions.*should match pattern"):
            own_image.find_own_image(there, "mine", made.id, BuildLog(tmp_path / "log"), "")
    finally:
        there.api.remove_image(made.id)


def test_verify_of_an_image_that_is_wrong_ends_with_5_and_advice(there: docker.DockerClient, images: Images) -> None:
    made = make(there)
    done = images("verify", "--base", BASE)
    assert done.returncode == 5
    assert f"{made.tag}: not what was built" in done.stderr
    assert "`tfcompare images build` again" in done.stderr
    assert "wrong" in done.stdout
    assert "Traceback" not in done.stderr


def test_an_archive_that_does_not_fit_is_refused_before_it_is_begun(
    there: docker.DockerClient, images: Images, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make(there)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=5))
    done = images("save", tmp_path / "images.tar", "--base", BASE)
    assert done.returncode == 2
    assert "its disk has 5 B free; free some space" in done.stderr
    assert not list(tmp_path.glob("*.tar*"))


def test_a_save_that_cannot_be_written_leaves_nothing(
    there: docker.DockerClient, images: Images, tmp_path: Path
) -> None:
    make(there)
    done = images("save", tmp_path / "nowhere" / "images.tar", "--base", BASE)
    assert done.returncode == 2
    assert "No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr
    done = images("save", tmp_path, "--base", BASE)
    assert done.returncode == 2
    assert f"{tmp_path} is a folder: name a file" in done.stderr


def test_half_an_archive_is_no_archive(there: docker.DockerClient, images: Images, tmp_path: Path) -> None:
    make(there)
    whole = tmp_path / "images.tar"
    saved(images, whole)
    with tarfile.open(whole) as tar:
        assert "manifest.json" in tar.getnames()
    half = tmp_path / "half"
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    done = images("load", half)
    assert done.returncode == 2
    assert f"{half}: not a complete archive of images" in done.stderr


def test_an_archive_that_the_engine_cannot_read_is_told_as_such(
    there: docker.DockerClient, images: Images, tmp_path: Path
) -> None:
    made = make(there)
    whole = tmp_path / "images.tar"
    saved(images, whole)
    forget(there, made)

    def drop_layers(members: dict[str, bytes]) -> None:
        text = members["manifest.json"]
        members["manifest.json"] = json.dumps([{**entry, "Layers": []} for entry in json.loads(text)]).encode()

    done = images("load", rewrite(whole, tmp_path / "broken.tar", drop_layers))
    assert done.returncode == 5
    assert f"{made.tag}: the engine could not load it (" in done.stderr
    assert made.tag not in tags(there)
