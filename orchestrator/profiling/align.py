"""The functions of several profiles side by side, whatever the versions call their files."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from orchestrator.model.profile import CallTimes, Function, Profile

# A function with at most this many later calls was called to build something.
MOST_BUILDING_CALLS = 2


# The same file has different names in different versions. Each pattern is applied to the result of the one before.
MOVED = (
    (re.compile(r"^tensorflow_core/"), "tensorflow/"),
    (re.compile(r"^tensorflow/python/keras/"), "keras/"),
    (re.compile(r"^(tf_)?keras/src/"), "keras/"),
    (re.compile(r"\.py$"), ""),
)


@dataclass(frozen=True)
class Split:
    """A profile in three parts: what builds, what every step does once, and the rest."""

    build_ns: int
    train_ns: int
    other_ns: int
    iterations: int

    @property
    def step_ms(self) -> float:
        """The time of a step without the build, to which every percentage refers."""
        return (self.train_ns + self.other_ns) / self.iterations / 1e6

    @property
    def train_ms(self) -> float:
        return self.train_ns / self.iterations / 1e6

    @property
    def other_ms(self) -> float:
        return self.other_ns / self.iterations / 1e6


def is_building(function: Function) -> bool:
    return function.later.calls <= MOST_BUILDING_CALLS


def split_profile(profile: Profile) -> Split:
    """Split a profile into build, train and other.

    Build is everything until the third call, and functions called once or twice after it. Train is functions called
    once per step.
    """
    build, train, other = 0, 0, 0
    for function in profile.functions:
        build += function.start.own_ns
        if is_building(function):
            build += function.later.own_ns
        elif function.later.calls == profile.iterations:
            train += function.later.own_ns
        else:
            other += function.later.own_ns
    return Split(build, train, other, profile.iterations)


@dataclass(frozen=True)
class FunctionCell:
    """The calls and the time of a function per step in one version."""

    calls: float
    own_ms: float
    cumulative_ms: float


@dataclass(frozen=True)
class FunctionRow:
    """A function across versions: one cell per version, None if it is not called.

    The file and the line are those in the last version that calls it.
    """

    file: str
    line: int
    name: str
    cells: tuple[FunctionCell | None, ...]


Key = tuple[str, str]
Figure = Callable[[FunctionCell], float]


def own(cell: FunctionCell) -> float:
    return cell.own_ms


def cumulative(cell: FunctionCell) -> float:
    return cell.cumulative_ms


def module(file: str) -> str:
    """Return a file's name without the parts that changed between versions."""
    for pattern, instead in MOVED:
        file = pattern.sub(instead, file)
    return file


def align_profiles(profiles: Sequence[Profile]) -> tuple[FunctionRow, ...]:
    """Return one row per function, across all versions.

    Functions are matched by module and name, and the rest by a name that is unmistakable.
    """
    rows: dict[Key, list[Function | None]] = {}
    for position, profile in enumerate(profiles):
        named = _by_key(profile.functions)
        moved = _match_moved([key for key in rows if key not in named], [key for key in named if key not in rows])
        for key, function in named.items():
            rows.setdefault(moved.get(key, key), [None] * len(profiles))[position] = function
    return tuple(_row(functions, profiles) for functions in rows.values())


def _match_moved(gone: Sequence[Key], new: Sequence[Key]) -> dict[Key, Key]:
    """Map new functions to old ones that have moved.

    A function may now be in a file of the same name, or a method of a class of the same name. If two functions are
    possible, neither is chosen.
    """
    moves: dict[Key, Key] = {}
    for shorten in (_by_file, _by_class):
        candidates = {side: [key for key in keys if shorten(key)] for side, keys in (("gone", gone), ("new", new))}
        counts = {side: Counter(map(shorten, keys)) for side, keys in candidates.items()}
        unique_old = {shorten(key): key for key in candidates["gone"] if counts["gone"][shorten(key)] == 1}
        for key in candidates["new"]:
            name = shorten(key)
            if counts["new"][name] == 1 and name in unique_old and unique_old[name] not in moves.values():
                moves.setdefault(key, unique_old[name])
    return moves


def _by_file(key: Key) -> Key | None:
    return key[0].rpartition("/")[2], key[1]


def _by_class(key: Key) -> Key | None:
    return ("", key[1]) if "." in key[1] else None


def _by_key(functions: Iterable[Function]) -> dict[Key, Function]:
    """Return the later functions; those that have the same name in the same file are merged."""
    by_key: dict[Key, Function] = {}
    for function in functions:
        if is_building(function):
            continue
        key = (module(function.file), function.name)
        if first := by_key.get(key):
            later = CallTimes(
                calls=first.later.calls + function.later.calls,
                own_ns=first.later.own_ns + function.later.own_ns,
                cumulative_ns=first.later.cumulative_ns + function.later.cumulative_ns,
            )
            function = replace(first, later=later)
        by_key[key] = function
    return by_key


def _row(functions: Sequence[Function | None], profiles: Sequence[Profile]) -> FunctionRow:
    last = next(function for function in reversed(functions) if function)
    cells = (
        _cell(function.later, profile.iterations) if function else None
        for function, profile in zip(functions, profiles, strict=True)
    )
    return FunctionRow(last.file, last.line, last.name, tuple(cells))


def _cell(spent: CallTimes, iterations: int) -> FunctionCell:
    return FunctionCell(
        spent.calls / iterations, spent.own_ns / iterations / 1e6, spent.cumulative_ns / iterations / 1e6
    )


def value(cell: FunctionCell | None, figure: Figure) -> float:
    return figure(cell) if cell else 0.0


def growth(row: FunctionRow, figure: Figure) -> float:
    """Return by how many milliseconds per step a function grew, compared with the first version.

    The version in which it grew most counts. With a single version, this is the time that the function takes.
    """
    first, *others = (value(cell, figure) for cell in row.cells)
    return max(others) - first if others else first


def grown(rows: Iterable[FunctionRow], figure: Figure, splits: Sequence[Split]) -> tuple[FunctionRow, ...]:
    """Return the functions that are new or have grown, largest first.

    Growth is a share of the version's step, so that the slowest of several versions does not hide the others.
    """
    steps = [parts.step_ms or 1.0 for parts in splits]

    def part(row: FunctionRow) -> float:
        first, *others = (value(cell, figure) for cell in row.cells)
        return max((after - first) / step for after, step in zip(others, steps[1:], strict=True)) if others else first

    return _largest(rows, part)


def shrunk(rows: Iterable[FunctionRow]) -> tuple[FunctionRow, ...]:
    """Return the functions that are gone, or that by themselves take less and in no version more; largest first."""

    def part(row: FunctionRow) -> float:
        first, *others = (value(cell, own) for cell in row.cells)
        return first - min(others) if others else 0.0

    return _largest((row for row in rows if growth(row, own) <= 0), part)


def _largest(rows: Iterable[FunctionRow], by: Callable[[FunctionRow], float]) -> tuple[FunctionRow, ...]:
    return tuple(sorted((row for row in rows if by(row) > 0), key=lambda row: (-by(row), row.file, row.name)))
