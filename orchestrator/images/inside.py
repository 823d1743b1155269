"""The report of workloads/image_inventory.py from inside an image.

The image may be anyone's, and its answer may be anything.
"""

import json

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.engines.worker.events import Amount, Text, clean


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


class Inside(ImagePart):
    python: Text
    distributions: dict[Text, Text]
    unrecorded: list[Text]
    files: list[Files]
    imported: Imported


class NoInventory(Exception):
    """The answer from inside is not an inventory; the message says why."""


def parse(answer: str) -> Inside:
    try:
        return Inside.model_validate(json.loads(answer))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(str(clean(str(part), 40)) for part in first["loc"])
        raise NoInventory(f"its answer is no inventory: {location or 'all of it'}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise NoInventory(f"its answer is no inventory: {error}") from error
