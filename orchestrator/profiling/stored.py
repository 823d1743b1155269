"""The files of a stored profile, and how they are read.

Every report checks whether a folder holds a profile, so this module imports nothing that measures.
"""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.formats import PROFILE, NoFormat, OtherFormat
from orchestrator.model.profile import ProfiledArm
from orchestrator.profiling.model import Heading, ProfileResult, stem
from orchestrator.results.damaged import damage_error, format_error
from orchestrator.results.run_folder import refuse_strangers

PROFILE_FILE = "profile.json"
# Each file has at most this size; the line in which a profile arrives has at most a quarter of it.
MOST_BYTES = 2**28

HEADING, ARM = TypeAdapter(Heading), TypeAdapter(ProfiledArm)


def read_profile(path: Path) -> ProfileResult:
    """Read a profile from its folder."""
    refuse_strangers(path)
    try:
        heading = HEADING.validate_json(_read(path / PROFILE_FILE))
        paths = [
            path / "profiles" / f"{stem(case, target)}.json" for case in heading.cases for target in heading.targets
        ]
        arms = tuple(ARM.validate_json(_read(file)) for file in paths if file.exists())
    except OSError as error:
        raise UsageError(
            f"{path} holds no profile ({error.strerror}); `tfcompare profile --output FOLDER` makes one"
        ) from error
    except ValidationError as error:
        raise damage_error(path, error) from error
    except (NoFormat, OtherFormat) as error:
        raise format_error(path, error) from error
    return ProfileResult(heading=heading, arms=arms, path=path)


def _read(path: Path) -> bytes:
    return PROFILE.unstamp(files.read_named(path, MOST_BYTES))
