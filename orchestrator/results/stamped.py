"""Reads the file that holds the whole state of a search or a question, with the mark of its format."""

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.formats import Format, NoFormat, OtherFormat
from orchestrator.results.damaged import damage_error, format_error

T = TypeVar("T")


def read_stamped(path: Path, format: Format, adapter: TypeAdapter[T], most_bytes: int, missing: str) -> T:
    """Return the content of a file; `missing` explains a folder that lacks it."""
    try:
        return adapter.validate_json(format.unstamp(files.read_named(path, most_bytes)))
    except FileNotFoundError as error:
        raise UsageError(f"{path.parent} {missing}") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        raise damage_error(path, error) from error
    except (NoFormat, OtherFormat) as error:
        raise format_error(path, error) from error
