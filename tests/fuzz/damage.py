"""Strategies that damage what is right: most random input is refused at its first byte and tests nothing behind it."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

TEXTS = st.one_of(
    st.text(max_size=30),
    # What has a meaning somewhere: paths, selections, numbers, control characters, half a surrogate pair.
    st.sampled_from(
        [
            "",
            "..",
            "/",
            "a/../../b",
            "x[y=z]",
            "2.13.0",
            "nan",
            "1e999",
            "\x1b[2J",
            "\ud800",
            "\0",
            "9" * 5000,
            "[" * 300,
        ]
    ),
)
NUMBERS = st.one_of(
    st.integers(min_value=-(2**70), max_value=2**70),
    st.sampled_from([-1, 0, 1, 2**31, 2**62, 2**63, 2**64, 10**400]),
    st.floats(allow_nan=True, allow_infinity=True),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


def damaged_bytes(sample: bytes) -> st.SearchStrategy[bytes]:
    """Change, insert, remove or repeat a few bytes of a sample, or cut its end off."""
    position = st.integers(min_value=0, max_value=len(sample))
    edit = st.tuples(position, st.sampled_from(["set", "insert", "remove", "repeat", "cut"]), st.binary(max_size=8))
    return st.lists(edit, min_size=1, max_size=4).map(lambda edits: _edit_bytes(sample, edits))


def _edit_bytes(sample: bytes, edits: list[tuple[int, str, bytes]]) -> bytes:
    data = bytearray(sample)
    for position, kind, new in edits:
        end = position + len(new)
        if kind == "set":
            data[position:end] = new
        elif kind == "insert":
            data[position:position] = new
        elif kind == "remove":
            del data[position:end]
        elif kind == "repeat":
            data[position:position] = data[max(0, position - 64 * len(new)) : position]
        else:
            del data[position:]
    return bytes(data)


def damaged_text(sample: str) -> st.SearchStrategy[str]:
    """Exchange a few stretches of a text, e.g. of a TOML file, by other texts or by other stretches of it."""
    position = st.integers(min_value=0, max_value=len(sample))
    other = st.one_of(TEXTS, st.tuples(position, st.integers(0, 40)).map(lambda cut: sample[cut[0] : cut[0] + cut[1]]))
    edit = st.tuples(position, st.integers(min_value=0, max_value=20), other)
    return st.lists(edit, min_size=1, max_size=3).map(lambda edits: _edit_text(sample, edits))


def _edit_text(sample: str, edits: list[tuple[int, int, str]]) -> str:
    for position, length, new in edits:
        sample = sample[:position] + new + sample[position + length :]
    return sample


def damaged_json(sample: Any) -> st.SearchStrategy[Any]:
    """Exchange, remove, repeat or add a few values anywhere in a nested sample."""
    steps = list(_paths(sample))
    edit = st.tuples(st.integers(min_value=0, max_value=len(steps) - 1), st.sampled_from(list(EDITS)), VALUES)
    return st.lists(edit, min_size=1, max_size=3).map(
        lambda edits: _edit_json(sample, [(steps[number], kind, value) for number, kind, value in edits])
    )


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*before, key)
        yield from _paths(inner, (*before, key))


def _exchange(container: Any, key: Any, value: Any) -> None:
    container[key] = value


def _remove(container: Any, key: Any, value: Any) -> None:
    del container[key]


def _repeat(container: Any, key: Any, value: Any) -> None:
    if isinstance(container, list):
        container.insert(key, copy.deepcopy(container[key]))
    else:
        container[f"{key} "] = container[key]


def _add(container: Any, key: Any, value: Any) -> None:
    if isinstance(container, list):
        container.insert(key, value)
    else:
        container["more"] = value


EDITS: dict[str, Callable[[Any, Any, Any], None]] = {
    "exchange": _exchange,
    "remove": _remove,
    "repeat": _repeat,
    "add": _add,
}


def _edit_json(sample: Any, edits: list[tuple[tuple[Any, ...], str, Any]]) -> Any:
    value = copy.deepcopy(sample)
    for path, kind, new in edits:
        container = value
        try:
            for key in path[:-1]:
                container = container[key]
            EDITS[kind](container, path[-1], new)
        except (KeyError, IndexError, TypeError):
            # An earlier edit has taken this place away.
            continue
    return value


def dump(value: Any) -> bytes:
    """Write JSON as another program might: with NaN, with infinite numbers, with half a surrogate pair."""
    return json.dumps(value).encode()
