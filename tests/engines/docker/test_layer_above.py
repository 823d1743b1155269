"""An image of a target with other packages: a layer above that of its version, with nothing but the difference."""

import json
from dataclasses import replace
from pathlib import Path

import docker

from orchestrator.catalog.version import TargetChanges, Version
from orchestrator.engines.build_log import BuildLog
from orchestrator.engines.docker import image
from tests.engines.docker.conftest import MakeEngine
from tests.engines.docker.private_version import private
from tests.support.packages import locked, wheel

LIST = ["python", "-m", "pip", "list", "--format", "json"]


def other(version: Version, folder: Path, *packages: Path) -> Version:
    """The version with other packages, as a target has it that pins them."""
    folder.mkdir()
    lock = folder / "lock.txt"
    lock.write_text(f"# {folder}\n{locked(*packages)}")
    [usual] = version.flavours
    changes = TargetChanges(name="other", definition="of other packages")
    return replace(version, flavours=(replace(usual, lock=lock, like=usual),), changes=changes)


def test_a_target_gets_a_layer_above_its_version_which_replaces_adds_and_removes(
    client: docker.DockerClient, engine: MakeEngine, tmp_path: Path
) -> None:
    made = private(tmp_path)
    kept = [made.packages / f"little_{name}-1.0-py3-none-any.whl" for name in ("one", "two")]
    more = [wheel(made.packages, f"little_{number}") for number in ("three", "four")]
    lock = made.version.flavours[0].lock
    lock.write_text(f"# {tmp_path}\n{locked(*kept, *more)}")
    newer, added = wheel(made.packages, "little_one", "2.0"), wheel(made.packages, "little_five")
    target = other(made.version, tmp_path / "target", newer, kept[1], more[0], added)
    own = engine(wheelhouse=made.packages)
    assert "to be built from" in own.outlook(target).text
    above = own.prepare(target, BuildLog(tmp_path / "above")).facts
    below = own.prepare(made.version, BuildLog(tmp_path / "below")).facts
    try:
        # The image of the version was built first, and is there for others.
        assert not (tmp_path / "below").exists()
        layers = [client.images.get(one.identity).attrs["RootFS"]["Layers"] for one in (below, above)]
        assert layers[1][: len(layers[0])] == layers[0]
        assert len(layers[1]) == len(layers[0]) + 2
        labels = [client.images.get(one.identity).labels for one in (below, above)]
        assert image.TARGET not in labels[0]
        assert (labels[1][image.TARGET], labels[1][image.ABOVE]) == ("lock", labels[0][image.SPEC_LABEL])
        listed = json.loads(client.containers.run(above.identity, LIST, network_mode="none", remove=True))
        assert {each["name"]: each["version"] for each in listed if each["name"] != "pip"} == {
            "little-one": "2.0", "little-two": "1.0", "little-three": "1.0", "little-five": "1.0",
        }  # fmt: skip
        assert {name: number for name, number in above.packages.items() if name.startswith("little")} == {
            "little-one": "2.0", "little-two": "1.0", "little-three": "1.0", "little-five": "1.0",
        }  # fmt: skip
        config = client.images.get(above.identity).attrs["Config"]
        assert (config["User"], config["WorkingDir"], config["Cmd"]) == ("65534", "/tmp", ["python"])
        assert "ready" in own.outlook(target).text
        assert own.prepare(target, BuildLog(tmp_path / "again")).facts.identity == above.identity
        assert above.details["base"] == below.details["base"]
    finally:
        for one in (above, below):
            client.api.remove_image(one.identity, force=True)


def test_a_target_that_shares_too_little_is_built_from_its_base(
    client: docker.DockerClient, engine: MakeEngine, tmp_path: Path
) -> None:
    made = private(tmp_path)
    packages = [wheel(made.packages, "little_one", "2.0"), wheel(made.packages, "little_two", "2.0")]
    target = other(made.version, tmp_path / "target", *packages)
    own = engine(wheelhouse=made.packages)
    facts = own.prepare(target, BuildLog(tmp_path / "log")).facts
    try:
        assert "building" in (tmp_path / "log").read_text()
        assert (tmp_path / "log").read_text().count("Successfully tagged") == 1
    finally:
        client.api.remove_image(facts.identity, force=True)
