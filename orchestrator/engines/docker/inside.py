"""The inventory of an image, which workloads/image_inventory.py reports from a container like a worker's.

The image is not trusted, and its answer may be anything.
"""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import docker
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator import files as confined
from orchestrator.bundled import WORKLOADS
from orchestrator.catalog.lockfile import NAME
from orchestrator.catalog.user_data import cache
from orchestrator.contract import ContractError
from orchestrator.engines.docker import container
from orchestrator.engines.worker.channel import ChannelClosed, ChannelTimeout
from orchestrator.engines.worker.events import LONGEST_TEXT, Amount, Text, clean
from orchestrator.errors import EnvironmentFailed

SCRIPT = "image_inventory.py"
# The script reads gigabytes and imports TensorFlow, perhaps from a cold disk.
TIMEOUT_S = 900

# Both are written to files that an installer reads, where a space or a line end begins something else.
PackageName = Annotated[str, Field(pattern=rf"\A{NAME}\z", max_length=LONGEST_TEXT)]
PackageNumber = Annotated[str, Field(pattern=r"\A[!-~]*\z", max_length=LONGEST_TEXT)]


class ImagePart(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class Listed(ImagePart):
    """A number of files, with the names of the first ones."""

    count: Amount
    first: list[Text]


class Files(ImagePart):
    """The comparison of a folder's files with what their packages recorded."""

    checked: Amount
    changed: Listed
    missing: Listed
    added: Listed


class Imported(ImagePart):
    """The versions that the packages state, or why they cannot be imported."""

    error: Text = ""
    tensorflow: Text = ""
    numpy: Text = ""
    cuda_build: bool | None = None
    cuda_version: Text = ""
    # These are the compute capabilities that it has code for, as far as it says so.
    compute: list[Annotated[str, Field(pattern=r"\A\d{1,2}\.\d\z")]] = Field(default=[], max_length=50)


class Inside(ImagePart):
    python: PackageNumber
    distributions: dict[PackageName, PackageNumber]
    unrecorded: list[PackageName]
    files: list[Files]
    imported: Imported


class NoInventory(Exception):
    """The answer from inside is not an inventory; the message says why."""


def parse_answer(answer: str) -> Inside:
    try:
        return Inside.model_validate(json.loads(answer))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        parts = (str(clean(str(part), 40)) for part in first["loc"])
        location = ".".join(part if part.isprintable() else repr(part) for part in parts)
        raise NoInventory(f"its answer is no inventory: {location or 'all of it'}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise NoInventory(f"its answer is no inventory: {error}") from error


def look_inside(
    client: docker.DockerClient, image_id: str, number: str, *, own: bool = False, runtime: str = ""
) -> Inside | str:
    """Return the inventory of an image, or why there is none; `own` means that tfcompare has not built the image."""
    with _make_folder() as folder:
        # The log is not in the folder that the image may write to, where the image could put a link.
        log, results = Path(folder) / "log", Path(folder) / "results"
        results.mkdir()
        spec = container.Spec(
            image=image_id,
            version=number,
            run="verify",
            workloads=WORKLOADS,
            own_workloads=None,
            results=results,
            gpu=None,
            program=SCRIPT,
            own_image=own,
            runtime=runtime,
        )
        try:
            channel = container.ContainerChannel(client, container.create(client, spec), number, log, results)
        except EnvironmentFailed as error:
            return str(error)
        try:
            return parse_answer(channel.receive(TIMEOUT_S))
        except ChannelTimeout:
            return f"no answer within {TIMEOUT_S} s"
        except ChannelClosed as closed:
            message = confined.read_last_line(log)
            return f"{closed}: {message}" if message else str(closed)
        except (NoInventory, ContractError) as error:
            return str(error)
        finally:
            channel.close()
            # This comes before the folder's own clean-up, which may follow a link that the image has left there.
            confined.remove_tree(results)


def _make_folder() -> tempfile.TemporaryDirectory[str]:
    """Create a temporary folder in the cache.

    If tfcompare runs in a container, the engine sees that folder, but not /tmp.
    """
    with confined.writing(cache(), "TFCOMPARE_CACHE names another folder", EnvironmentFailed):
        cache().mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="verify-", dir=cache())
