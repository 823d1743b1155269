"""Reads the file that holds the whole state of a search, a question or an answer, with the mark of its format."""

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.formats import Format, NoFormat, OtherFormat
from orchestrator.results.damaged import damage_error, format_error

T = TypeVar("T")


def read_stamped(path: Path, format: Format, adapter: TypeAdapter[T], most_bytes: int, missing: str) -> T:
    """Return the content of a file, which is no link; `missing` explains a folder that lacks it."""
    try:
        return adapter.validate_json(format.unstamp(files.read(path.parent, path, most_bytes, names=None)))
    except FileNotFoundError as error:
        raise UsageError(f"{path.parent} {missing}") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        raise damage_error(path, error) from error
    except (NoFormat, OtherFormat) as error:
        raise format_error(path, error) from error
