"""Formats sizes of images, and adds them up so that shared layers are counted once."""

from collections.abc import Iterable

import docker

# A step of an image's history has a time, a command and a size; images that share a layer share its step.
Step = tuple[int, str, int]


def format_size(size: int) -> str:
    for unit, bytes_ in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_:
            return f"{size / bytes_:.1f} {unit}"
    return f"{size} B"


def steps(client: docker.DockerClient, images: Iterable[str]) -> set[Step]:
    return {
        (step["Created"], step["CreatedBy"], step["Size"]) for image in images for step in client.api.history(image)
    }


def add_up(counted: Iterable[Step]) -> int:
    return sum(size for _, _, size in set(counted))
