"""The image of a target without TensorFlow: it has no number, and so it is named after its backend."""

from pathlib import Path
from unittest.mock import MagicMock

import pytest
from docker.errors import ImageNotFound

from orchestrator import catalog
from orchestrator.catalog.changed import find_changed
from orchestrator.engines.docker import image


def test_an_image_of_another_backend_is_named_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TFCOMPARE_DATA", str(tmp_path))
    version = find_changed("keras==3.15.1 jax==0.10.2 backend=jax", "cpu")
    [flavour] = version.flavours
    flavour.lock.parent.mkdir(parents=True)
    flavour.lock.write_text(f"keras==3.15.1 \\\n    --hash=sha256:{64 * '0'}\n")
    client = MagicMock()
    client.images.get.side_effect = ImageNotFound("none")
    client.api.images.return_value = []
    made = image.recipe(client, version, flavour, None)
    assert made.tag == f"tfcompare:jax-cpu-{made.spec[:12]}"
    assert made.target == "keras==3.15.1+jax==0.10.2"
    assert made.labels["org.opencontainers.image.title"] == "tfcompare Keras on jax"
    # Wheels that only pip on this machine finds are in the context of its build.
    assert made.linked == flavour.lock
    dockerfile = made.files["Dockerfile"].decode()
    assert "COPY lock.txt *.whl /tmp/build/" in dockerfile
    assert "--find-links /tmp/build -r /tmp/build/lock.txt" in dockerfile


def test_an_image_of_a_version_gets_no_such_wheels():
    client = MagicMock()
    version = catalog.find_version("2.20.0")
    assert version
    made = image.recipe(client, version, version.on("cpu")[0], None)
    assert made.linked is None
    assert b"--find-links" not in made.files["Dockerfile"]
