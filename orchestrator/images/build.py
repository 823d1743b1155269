"""Builds the images of several versions at the same time without running them."""

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from orchestrator.catalog.user_data import cache
from orchestrator.catalog.version import Version
from orchestrator.engines.docker.client import asking, connect_engine
from orchestrator.engines.docker.engine import DockerEngine
from orchestrator.errors import EnvironmentFailed, Interrupted, UsageError
from orchestrator.measure.prepare import make_ready
from orchestrator.options import EngineOptions
from orchestrator.terminal.strict_json import pick
from orchestrator.terminal.view import View


@dataclass(frozen=True, kw_only=True)
class BuiltImage:
    """The result for one version; without a tag the build failed, and `reason` says why."""

    version: Version
    tag: str = ""
    identity: str = ""
    new: bool = False
    size: int = 0
    seconds: float = 0.0
    reason: str = ""

    @property
    def outcome(self) -> str:
        if not self.tag:
            return "failed"
        return "built" if self.new else "ready"

    def as_object(self) -> dict[str, object]:
        names = "version=version.number outcome tag? id=identity? size? reason"
        return {**pick(self, names), "seconds": round(self.seconds, 3)}


def build_all(
    versions: tuple[Version, ...], options: EngineOptions, view: View, at_once: int | None = None
) -> tuple[BuiltImage, ...]:
    """Build the images of versions, and return a result for each, including those that failed.

    Raise EngineUnavailable before any build if there is no engine.
    """
    # The folder is created by the first line that a build prints.
    logs = cache() / "builds" / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    with closing(connect_engine()) as client, closing(DockerEngine(options)) as engine:
        try:
            environments = make_ready(versions, engine, logs, view, at_once)
        except KeyboardInterrupt as stop:
            raise Interrupted("interrupted; finished images and build steps are kept") from stop
        images = []
        for version in versions:
            result = environments[version.number]
            if isinstance(result, EnvironmentFailed):
                images.append(BuiltImage(version=version, reason=str(result)))
                continue
            facts = result.environment.facts
            with asking(f"{version.number}: looking at its image", EnvironmentFailed):
                size = int(client.api.inspect_image(facts.identity)["Size"])
            image = BuiltImage(
                version=version,
                # An image that is used unchanged keeps its name.
                tag=facts.details.get("tag") or facts.details["image"],
                identity=facts.identity,
                new=result.made,
                size=size,
                seconds=result.seconds,
            )
            images.append(image)
    return tuple(images)


def add_name(images: Sequence[BuiltImage], name: Callable[[str], str]) -> None:
    """Give each existing image an additional name, which is taken from any image that had it."""
    with closing(connect_engine()) as client:
        for image in images:
            if image.tag:
                called = name(image.version.number)
                with asking(f"{image.version.number}: cannot be called {called!r}", UsageError):
                    client.api.tag(image.identity, *split_name(called), force=True)


def split_name(name: str) -> tuple[str, str | None]:
    """Split an image's name into repository and tag; the colon of a registry's port begins no tag."""
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return f"{folder}{slash}{last}", tag or None
