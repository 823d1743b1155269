"""The table of versions as written in its file: the values each key may hold, and the line of an invalid one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from packaging.version import InvalidVersion
from packaging.version import Version as Number
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from orchestrator import files
from orchestrator.errors import UsageError


def _number(text: str) -> str:
    try:
        Number(text)
    except InvalidVersion as error:
        raise ValueError(f"{text!r} is no version number, like 2.13.0") from error
    return text


def _digest(text: str) -> str:
    if text and not re.fullmatch(r"sha256:[0-9a-f]{64}", text):
        raise ValueError(f"{text!r} is no digest: sha256: and 64 hexadecimal digits, or nothing where none is known")
    return text


def _capability(text: str) -> str:
    if not re.fullmatch(r"\d+\.\d", text):
        raise ValueError(f"{text!r} is no compute capability, like 8.6")
    return text


VersionNumber = Annotated[str, AfterValidator(_number)]
Digest = Annotated[str, AfterValidator(_digest)]
Capability = Annotated[str, AfterValidator(_capability)]


class _VersionTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PythonTable(_VersionTable):
    image: str
    digest: Digest
    pip: VersionNumber
    pyarrow: VersionNumber


class CudaTable(_VersionTable):
    """The properties of every version that was built with one CUDA."""

    driver: VersionNumber
    jit_driver: VersionNumber
    knows: Capability | None = None
    # GPUs from this capability on are known to fail, however the wheel was built.
    broken_from: Capability | None = None
    broken: str = ""
    packages: tuple[str, ...] = ()


class SourceTable(_VersionTable):
    """A package that TensorFlow's own releases need and that has no wheel: the one file that may be built."""

    version: VersionNumber
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    # Its metadata lists these requirements, so that nothing has to be built to find them.
    requires: tuple[str, ...] = ()


class FlavourTable(_VersionTable):
    pythons: tuple[str, ...] = Field(min_length=1)
    requirements: tuple[str, ...] = Field(min_length=1)
    image: str | None = None
    digest: Digest = ""
    cuda: str | None = None
    libraries: str | None = None
    cudnn: str | None = None
    compute: tuple[Capability, ...] = ()


class BuildTable(_VersionTable):
    """An image that is used as it is, instead of flavours that are installed."""

    maker: str
    image: str
    digest: Digest = ""
    cuda: str
    cudnn: str | None = None
    compute: tuple[Capability, ...] = Field(min_length=1)


class VersionTable(_VersionTable):
    aliases: tuple[str, ...] = ()
    keras: str
    notes: tuple[str, ...] = ()
    cpu: FlavourTable | None = None
    gpu: FlavourTable | None = None
    build: BuildTable | None = None


class Catalogue(_VersionTable):
    python: dict[VersionNumber, PythonTable] = Field(default_factory=dict)
    cuda: dict[VersionNumber, CudaTable] = Field(default_factory=dict)
    source: dict[str, SourceTable] = Field(default_factory=dict)
    version: dict[VersionNumber, VersionTable] = Field(default_factory=dict)

    def find_libraries(self, flavour: FlavourTable) -> tuple[str, ...]:
        """Return the packages with CUDA's libraries that are installed next to a flavour's own."""
        return self.cuda[flavour.libraries].packages if flavour.libraries else ()


def read_table(path: Path, beside: Catalogue | None = None) -> Catalogue:
    """Read and validate a table of versions.

    If the table extends another one, entries may refer to the Pythons and CUDAs of that one as well.
    """
    tables, text = files.read_toml(path, "the table of versions")
    try:
        catalogue = Catalogue.model_validate(tables)
    except ValidationError as error:
        first = error.errors()[0]
        where = tuple(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{path}, {format_position(text, where)}: {message}") from error
    for where, wrong in _inconsistencies(catalogue, beside or Catalogue()):
        raise UsageError(f"{path}, {format_position(text, where)}: {wrong}")
    return catalogue


def _inconsistencies(catalogue: Catalogue, beside: Catalogue) -> Iterator[tuple[tuple[str, ...], str]]:
    pythons, cudas = beside.python | catalogue.python, beside.cuda | catalogue.cuda
    owner = {name: number for number, version in beside.version.items() for name in (number, *version.aliases)}
    for number, version in catalogue.version.items():
        if number in owner:
            yield ("version", number), f"the version {number} is in both tables"
        for name in (number, *version.aliases):
            if (other := owner.setdefault(name, number)) != number:
                yield ("version", number, "aliases"), f"{name!r} already means {other}: an alias has one version"
        if version.build and (version.cpu or version.gpu):
            yield ("version", number, "build"), "a build is an image that is used as it is: it has no cpu and no gpu"
        if version.build and version.build.cuda not in cudas:
            yield ("version", number, "build", "cuda"), _unknown_cuda(version.build.cuda)
        for flavour, table in (("cpu", version.cpu), ("gpu", version.gpu)):
            where = ("version", number, flavour)
            if table is None:
                continue
            if absent := [python for python in table.pythons if python not in pythons]:
                yield (*where, "pythons"), f'Python {absent[0]} has no table [python."{absent[0]}"]'
            for key, cuda in (("cuda", table.cuda), ("libraries", table.libraries)):
                if cuda is not None and cuda not in cudas:
                    yield (*where, key), _unknown_cuda(cuda)
            if flavour == "gpu" and (table.cuda is None or not table.compute):
                yield where, "a GPU flavour needs `cuda` and `compute`: without them no GPU can be judged"


def _unknown_cuda(number: str) -> str:
    return f'CUDA {number} has no table [cuda."{number}"]'


def format_position(text: str, where: tuple[str, ...]) -> str:
    """Return a readable position in a table: the line, and the keys that lead to it."""
    return f"line {line_of(text, where)} ({'.'.join(where)})"


def line_of(text: str, where: tuple[str, ...]) -> int:
    """Return the line that states the value at `where`, or else its nearest enclosing key.

    The text is searched because tomllib does not report line numbers.
    """
    section: tuple[str, ...] = ()
    best, depth = 1, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[([^\[\]]+)\]", line):
            section = reached = _keys(header[1])
        elif key := re.match(r'\s*("[^"]*"|[\w-]+)\s*=', line):
            reached = (*section, *_keys(key[1]))
        else:
            continue
        if len(reached) > depth and where[: len(reached)] == reached:
            best, depth = number, len(reached)
    return best


def _keys(dotted: str) -> tuple[str, ...]:
    return tuple(quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|([\w-]+)', dotted))
