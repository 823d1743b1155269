"""The contents of an image as a CycloneDX document, which is identical for identical recipes whenever it is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

from orchestrator.catalog import lockfile
from orchestrator.catalog.lockfile import Pin
from orchestrator.catalog.version import Flavour
from orchestrator.engines.docker.image import Recipe
from orchestrator.errors import UsageError
from orchestrator.terminal import strict_json

if TYPE_CHECKING:
    from cyclonedx.model import HashType
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component


def pins(flavour: Flavour) -> tuple[Pin, ...]:
    """Return all packages that are installed.

    If the locks of the installer and the version both name a package, the version's entry counts.
    """
    both = [*lockfile.read_lock(flavour.pip_lock), *lockfile.read_lock(flavour.lock)]
    return tuple({pin.name: pin for pin in both}.values())


def describe_package(pin: Pin) -> Component:
    """Return a package of a lock, with the hashes of all files that may be installed."""
    from cyclonedx.model.component import Component, ComponentType
    from packageurl import PackageURL

    url = PackageURL("pypi", None, pin.name, pin.number)
    return Component(
        type=ComponentType.LIBRARY, name=pin.name, version=pin.number, bom_ref=url.to_string(), purl=url,
        hashes=_list_hashes(*pin.hashes),
    )  # fmt: skip


def write_document(bom: Bom) -> str:
    """Return a document as JSON, without the time at which it was written."""
    from cyclonedx.output.json import JsonV1Dot6

    stated = json.loads(JsonV1Dot6(bom).output_as_string())
    # The time says nothing about the contents, and would make two documents of the same image differ.
    stated["metadata"].pop("timestamp", None)
    return strict_json.dump(stated, indent=2) + "\n"


def document(flavour: Flavour, recipe: Recipe) -> str:
    try:
        from cyclonedx.model import Property
        from cyclonedx.model.bom import Bom
        from cyclonedx.model.component import Component, ComponentType
    except ModuleNotFoundError as error:
        raise UsageError("an SBOM needs CycloneDX's library: pip install 'tfcompare[sbom]'") from error

    name, _, digest = recipe.base.partition("@")
    base = Component(
        type=ComponentType.CONTAINER, name=name, bom_ref=f"base:{recipe.base}", version=digest or None,
        hashes=_list_hashes(digest.removeprefix("sha256:")) if digest else (),
    )  # fmt: skip
    python = Component(
        type=ComponentType.PLATFORM, name="python", version=flavour.python.number, bom_ref="python",
    )  # fmt: skip
    image = Component(
        type=ComponentType.CONTAINER, name="tfcompare", version=recipe.tag.partition(":")[2], bom_ref=recipe.tag,
        properties=[Property(name=label, value=value) for label, value in recipe.labels.items() if value],
    )  # fmt: skip
    parts = [base, python, *map(describe_package, pins(flavour))]
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"tfcompare:{recipe.spec}"), components=parts)
    bom.metadata.component = image
    bom.register_dependency(image, parts)
    return write_document(bom)


def _list_hashes(*digests: str) -> list[HashType]:
    from cyclonedx.model import HashAlgorithm, HashType

    return [HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in digests]
