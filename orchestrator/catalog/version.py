"""The definition of a version: one pinned TensorFlow, and how it is installed for each kind of device."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FlavourName = Literal["cpu", "gpu"]


@dataclass(frozen=True, kw_only=True)
class Python:
    """A Python that versions run on: the image that provides it and the pip that installs locks into it."""

    number: str
    image: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Cuda:
    """The CUDA that a GPU flavour was built for.

    `compute` lists the compute capabilities that it has code for; the last also has PTX, which drivers can compile for
    newer GPUs. `driver` is the oldest driver that runs it, and `jit_driver` the oldest that compiles its PTX. GPUs from
    the compute capability `broken_from` on fail nevertheless, as `broken` says. `libraries` is the CUDA of its
    libraries, and `knows` the newest compute capability that these have code for.
    """

    number: str
    cudnn: str | None
    compute: tuple[str, ...]
    driver: str
    jit_driver: str
    broken_from: str | None
    broken: str
    libraries: str = ""
    knows: str | None = None


@dataclass(frozen=True, kw_only=True)
class Flavour:
    """The way in which one version is installed for one kind of device, on one Python."""

    name: FlavourName
    python: Python
    lock: Path
    pip_lock: Path
    image: str
    digest: str
    requirements: tuple[str, ...] = ()
    cuda: Cuda | None = None
    # This is the user's own wheel. The lock names it by its digest.
    wheel: Path | None = None
    # A target's flavour with different packages is made from this one, which has most packages in common with it.
    like: "Flavour | None" = None

    @property
    def is_plain(self) -> bool:
        """Whether it needs no image but that of its Python, so that it can be installed in a virtual environment."""
        return self.image == self.python.image


@dataclass(frozen=True, kw_only=True)
class Build:
    """A TensorFlow of another maker: its maker, its image (used as it is), and the CUDA that it was built for."""

    maker: str
    image: str
    cuda: Cuda


@dataclass(frozen=True, kw_only=True)
class TargetChanges:
    """The changes that a target makes to a version: the target's name, and the text that defines it."""

    name: str
    definition: str
    variables: tuple[tuple[str, str], ...] = ()
    image: str = ""
    # The user's own code is that of this commit, or '' for the code as it is now.
    commit: str = ""


@dataclass(frozen=True, kw_only=True)
class Version:
    """One pinned TensorFlow, with one flavour per device and Python, the preferred Python first.

    A target may change it. A user's own image is a version without number and flavours. A version of another maker has
    a build instead of flavours.
    """

    number: str
    aliases: tuple[str, ...]
    keras: str
    flavours: tuple[Flavour, ...]
    # These are known problems of this version, for lists and verdicts.
    notes: tuple[str, ...] = ()
    changes: TargetChanges | None = None
    build: Build | None = None

    @property
    def name(self) -> str:
        """The name of the target."""
        return self.changes.name if self.changes else self.number

    @property
    def short_name(self) -> str:
        return next(iter(self.aliases), self.number)

    @property
    def variables(self) -> dict[str, str]:
        """The variables that this target alone gets."""
        return dict(self.changes.variables) if self.changes else {}

    @property
    def image(self) -> str:
        """The image that is used instead of all that a version installs, or ''."""
        own = self.changes.image if self.changes else ""
        return own or (self.build.image if self.build else "")

    def on(self, name: FlavourName) -> tuple[Flavour, ...]:
        return tuple(flavour for flavour in self.flavours if flavour.name == name)
