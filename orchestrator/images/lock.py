"""Looks up the digest of a base's tag at its registry.

The engine makes the request, so that its mirrors, proxies and credentials apply.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import docker
import requests
from docker.errors import APIError

from orchestrator.catalog.version import FlavourName, Version
from orchestrator.engines import build_errors
from orchestrator.terminal.strict_json import pick

State = Literal["new", "unchanged", "CHANGED", "pinned", "failed"]


@dataclass(frozen=True, kw_only=True)
class LockRequest:
    """A base, its known digest, and the versions that are built on it."""

    image: str
    known: str
    versions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Answer:
    image: str
    digest: str
    known: str
    versions: tuple[str, ...]
    # This is the error of the registry or of the connection, if there was one.
    wrong: str = ""

    @property
    def state(self) -> State:
        if self.wrong:
            return "failed"
        if "@" in self.image:
            return "pinned"
        if not self.known:
            return "new"
        return "unchanged" if self.known == self.digest else "CHANGED"

    def as_object(self) -> dict[str, object]:
        return pick(self, "image digest known state versions wrong")


def bases(
    versions: Iterable[Version], name: FlavourName, override: str | None, digests: Mapping[str, str]
) -> tuple[LockRequest, ...]:
    """Return each base once, with the versions that use it.

    `digests` are those in the user's file; a base from `override` can get its digest only from there.
    """
    bases_by_image: dict[str, tuple[str, list[str]]] = {}
    for version in versions:
        found = []
        for flavour in version.on(name)[:1]:
            if override is None:
                found.append((flavour.image, flavour.digest))
            else:
                image = override.replace("{python}", flavour.python.number)
                found.append((image, digests.get(image, "")))
        if version.build and name == "gpu":
            image, _, digest = version.build.image.partition("@")
            found.append((image, digest))
        for image, digest in found:
            bases_by_image.setdefault(image, (digest, []))[1].append(version.number)
    return tuple(
        LockRequest(image=image, known=digest, versions=tuple(used)) for image, (digest, used) in bases_by_image.items()
    )


def resolve_bases(client: docker.DockerClient, asked: Collection[LockRequest]) -> Iterator[Answer]:
    """Look up the digest of each base; a base that fails does not keep the others from being looked up."""
    for base in asked:
        digest, wrong = base.image.partition("@")[2], ""
        if not digest:
            try:
                digest = str(client.images.get_registry_data(base.image).id)
            except APIError as error:
                wrong = why(base.image, str(error.explanation or error))
            except requests.Timeout:
                # The engine waits longer for a registry than we wait for the engine.
                wrong = why(base.image, "i/o timeout")
        yield Answer(image=base.image, digest=digest, known=base.known, versions=base.versions, wrong=wrong)


def why(image: str, message: str) -> str:
    """Explain the engine's message in the user's terms, with advice."""
    if cause := build_errors.of_image(message, "", base=image, python=""):
        return f"{cause} ({' '.join(message.split())})"
    # Some registries also deny access to an image that they do not have.
    advice = "; check its name, or log in with `docker login`" if "denied" in message.lower() else ""
    return f"{image}: its registry returned no digest ({' '.join(message.split())}){advice}"
