"""The image of a target without TensorFlow: it has no number, and so it is named after its backend."""

from pathlib import Path
from unittest.mock import MagicMock

import pytest
from docker.errors import ImageNotFound

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
