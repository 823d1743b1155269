"""A profile as it is stored, and how it is read.

Every report asks whether it is one, so nothing of what measures is imported here.
"""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchestrator import files
from orchestrator.errors import UsageError
from orchestrator.profiling.model import Heading, Profiled, ProfiledArm, stem
from orchestrator.results.damaged import damage_error
from orchestrator.results.rundir import refuse_strangers

PROFILE_FILE = "profile.json"
# Of each file: the line that a profile comes in has at most a quarter of it.
MOST_BYTES = 2**28

HEADING, ARM = TypeAdapter(Heading), TypeAdapter(ProfiledArm)


def read(path: Path) -> Profiled:
    """Read a profile from its directory."""
    refuse_strangers(path)
    try:
        heading = HEADING.validate_json(files.read_named(path / PROFILE_FILE, MOST_BYTES))
        paths = [
            path / "profiles" / f"{stem(case, version)}.json" for case in heading.cases for version in heading.versions
        ]
        arms = tuple(ARM.validate_json(files.read_named(file, MOST_BYTES)) for file in paths if file.exists())
    except OSError as error:
        raise UsageError(
            f"{path} holds no profile ({error.strerror}); `tfcompare profile --output DIR` makes one"
        ) from error
    except ValidationError as error:
        raise damage_error(path, error) from error
    return Profiled(heading=heading, arms=arms, path=path)
